"""What things cost here: measured on one core, with the pipeline's own parts, and with Spark round them."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Seconds, and bytes where it says so. Rows are of two 64-bit numbers, and answers of three."""

    cut_row: float  # reading a row of Parquet, finding its cell, and packing it
    row_bytes: float  # of a row that is packed
    carry_byte: float  # Spark's part: to Java, the shuffle, the state, and to the cell
    eddy_row: float  # a row that a cell is told: unpacked, stored, indexed, probed
    answer_row: float  # an answer, gathered and written
    memory_row: float  # bytes of a cell's memory for each row that it was told
    epoch: float  # a micro-batch that brings nothing to speak of, to one cell
    cell: float  # for a cell of it, in its slot
    task: float  # for each task of a stage, on the driver
    told_cell: float  # for each cell, on the driver: what it says in each micro-batch

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(rows: int) -> Costs:
    """In a Spark session that has one core. Needs Java."""
    from bench.spark import trade
    from bench.spark.ours import plan_of, spread
    from pipeline.session import local_session
    from pipeline.spread.stream import Pace

    all_at_once = Pace(1 << 40, 1, 1 << 40)
    with tempfile.TemporaryDirectory(prefix="mediator-bench-") as name:
        folder = Path(name)
        few = trade.laid(_pair(rows // 10), folder / "few")
        many = trade.laid(_pair(rows), folder / "many")
        tiny = trade.laid(_pair(5_000), folder / "tiny")
        alone = _alone(plan_of(many, 1), folder / "alone")
        with local_session(1, {"spark.driver.memory": "2g"}) as session:

            def took(laid: trade.Laid) -> Callable[[Path], float]:
                return lambda path: spread(session, laid, path, slots=1, pace=all_at_once).seconds

            def between(cells: int) -> Callable[[Path], float]:
                def run(path: Path) -> float:
                    ran = spread(session, tiny, path, slots=1, cells=cells, pace=Pace(1, 1, 1))
                    return median(b - a for a, b in zip(ran.epochs[1:], ran.epochs[2:], strict=False))

                return run

            took(few)(folder / "warm")
            whole = (_best(took(many), folder / "m") - _best(took(few), folder / "f")) / 0.9
            one, some = _best(between(1), folder / "one"), _best(between(_CELLS), folder / "some")
            task = _task(session)
        python = rows * 2 * (alone["cut_row"] + alone["eddy_row"]) + rows * alone["answer_row"]
        cell = max(0.0, (some - one) / (_CELLS - 1))
        return Costs(
            **alone,
            carry_byte=max(0.0, whole - python) / (2 * rows * alone["row_bytes"]),
            epoch=one - cell,
            cell=cell,
            task=task,
            told_cell=_told_cell(folder / "given"),
        )


_CELLS = 16
_TIMES = 3


def _pair(rows: int) -> Any:
    """Two relations in which each key is once."""
    import numpy as np
    import pyarrow as pa

    from bench.scaling.layouts import LAYOUTS
    from bench.shapes import Shape

    random = np.random.default_rng(1)
    r, s = (pa.table({"a": random.permutation(rows), of: np.arange(rows)}) for of in ("x", "y"))
    return Shape("pair", LAYOUTS["pair"].sql, {"r": r, "s": s})


def _best(run: Callable[[Path], float], path: Path) -> float:
    return min(run(path.with_name(f"{path.name}-{n}")) for n in range(_TIMES))


def _alone(plan: Any, folder: Path) -> dict[str, float]:
    """What is done in Python, with nobody else at work."""
    best: dict[str, float] = {}
    for number in range(_TIMES):
        for name, value in _once(plan, folder / str(number)).items():
            best[name] = min(best.get(name, value), value)
    return best


def _once(plan: Any, folder: Path) -> dict[str, float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipeline.cells.cell import Cell
    from pipeline.cells.envelopes import Over
    from pipeline.cells.packing import packed, unpacked
    from pipeline.spread.cutting import bundled, unbundled
    from pipeline.spread.landing import entries_of_file

    folder.mkdir(parents=True)
    numbers = iter(range(1 << 30))
    entries = [
        entry
        for landed in plan.landed
        for entry, _ in entries_of_file(plan, landed.files[0], landed.lookups, numbers.__next__)
    ]
    rows = sum(landed.rows for landed in plan.landed)
    began = perf_counter()
    bundles = [bundled(plan, [entry], frozenset([0]))[0] for entry in entries]
    cut = perf_counter() - began
    overs = [
        packed(Over(lookup, 0.0, 1.0, tuple(range(len(entries)))), plan.relations)
        for landed in plan.landed
        for lookup in landed.lookups
    ]
    gc.collect()
    before = _resident()
    ((name, cube),) = plan.cubes.items()
    cell = Cell(cube, 0, plan.verdicts[name], plan.settings)
    began = perf_counter()
    envelopes = [unpacked(one, plan.relations) for bundle in bundles for one in unbundled(bytes(bundle))]
    said = cell.epoch([*envelopes, *(unpacked(over, plan.relations) for over in overs)])
    eddy = perf_counter() - began
    table = pa.Table.from_batches(said.answers)
    began = perf_counter()
    pq.write_table(table, folder / "answers.parquet")
    written = perf_counter() - began
    return {
        "cut_row": cut / rows,
        "row_bytes": sum(map(len, bundles)) / rows,
        "eddy_row": eddy / rows,
        "answer_row": written / table.num_rows,
    }


def _memory(plan: Any, folder: Path) -> float:
    """Of the cell, beyond what its process has anyway: in one that does nothing else."""
    few, many = folder / "warm", folder / "memory"
    _once(plan, few)
    before = _resident()
    kept = _once(plan, many)
    held = _resident() - before
    rows = sum(landed.rows for landed in plan.landed)
    del kept
    return max(0, held) / rows


def _resident() -> int:
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _task(session: Any) -> float:
    """Of a job of many tasks that do nothing."""
    few, many = 10, 410

    def run(count: int) -> float:
        began = perf_counter()
        session.range(0, count, 1, count).count()
        return perf_counter() - began

    run(many)
    return max(0.0, min(run(many) for _ in range(_TIMES)) - min(run(few) for _ in range(_TIMES))) / (
        many - few
    )


def _told_cell(folder: Path) -> float:
    """Of writing down what many cells say, and of seeing what that comes to."""
    from pipeline.spread.given import Given, Giving

    folder.mkdir()
    giving, cells, batches = Giving(folder), 1_000, 5
    began = perf_counter()
    for number in range(batches):
        giving.give(Given(number, (), {cell: {"how": "kept", "finished": False} for cell in range(cells)}))
        assert len(giving.cells) == cells
    return (perf_counter() - began) / cells / batches
