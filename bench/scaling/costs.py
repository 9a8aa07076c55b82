"""What things cost here: measured on one core, with the pipeline's own parts, and with Spark round them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.scaling.layouts import LAYOUTS
from bench.shapes import Shape
from bench.spark.ours import landed, plan_of, spread
from bench.spark.trade import Laid, laid
from pipeline.cells.cell import Cell
from pipeline.cells.envelopes import Came, Over
from pipeline.cells.packing import unpacked
from pipeline.session import local_session
from pipeline.spread.cutting import bundled, unbundled
from pipeline.spread.given import Given, Giving
from pipeline.spread.seeding import entries_of_file
from pipeline.spread.stream import Pace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CELLS = 64
_TIMES = 3


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
    with tempfile.TemporaryDirectory(prefix="mediator-bench-") as name:
        folder = Path(name)
        few, many = laid(_pair(rows // 10), folder / "few"), laid(_pair(rows), folder / "many")
        tiny = laid(_pair(5_000), folder / "tiny")
        alone = _alone(many, folder / "alone")
        with local_session(1, {"spark.driver.memory": "2g"}) as session:

            def took(laid: Laid) -> Callable[[Path], float]:
                """All at once: in one micro-batch."""
                pace = Pace(1 << 40, 1, 1 << 40)
                return lambda path: spread(session, laid, path, slots=1, pace=pace).seconds

            def between(cells: int) -> Callable[[Path], float]:
                def run(path: Path) -> float:
                    ran = spread(session, tiny, path, slots=1, cells=cells, pace=Pace(1, 1, 1))
                    return median(b - a for a, b in zip(ran.epochs[1:], ran.epochs[2:], strict=False))

                return run

            took(few)(folder / "warm")
            whole = (_best(took(many), folder / "m") - _best(took(few), folder / "f")) / 0.9
            between(1)(folder / "warm-one")
            turns = [  # in turns, as Java gets faster all the time
                (between(1)(folder / f"one-{n}"), between(_CELLS)(folder / f"some-{n}"))
                for n in range(_TIMES)
            ]
            one, some = (min(took) for took in zip(*turns, strict=True))
            task = _task(session)
        python = many.rows * (alone["cut_row"] + alone["eddy_row"]) + rows * alone["answer_row"]
        cell = max(0.0, (some - one) / (_CELLS - 1))
        return Costs(
            **alone,
            carry_byte=max(0.0, whole - python) / (many.rows * alone["row_bytes"]),
            epoch=one - cell,
            cell=cell,
            task=task,
            told_cell=_told_cell(folder / "given"),
        )


def _pair(rows: int) -> Shape:
    """Two relations in which each key is once."""
    random = np.random.default_rng(1)
    r, s = (pa.table({"a": random.permutation(rows), of: np.arange(rows)}) for of in ("x", "y"))
    return Shape("pair", LAYOUTS["pair"].sql, {"r": r, "s": s})


def _best(run: Callable[[Path], float], path: Path) -> float:
    return min(run(path.with_name(f"{path.name}-{n}")) for n in range(_TIMES))


def _alone(laid: Laid, folder: Path) -> dict[str, float]:
    """What is done in Python, with nobody else at work."""
    best: dict[str, float] = {}
    for number in range(_TIMES):
        for name, value in _once(laid, folder / str(number)).items():
            best[name] = min(best.get(name, value), value)
    return best


def _once(laid: Laid, folder: Path) -> dict[str, float]:
    folder.mkdir(parents=True)
    plan = plan_of(laid, 1)
    numbers = count()
    entries = [
        (one.lookup, entry)
        for one in landed(laid)
        for entry, _ in entries_of_file(plan, one.files[0], one.lookup, numbers.__next__)
    ]
    began = perf_counter()
    bundles = [bundled(plan, [entry])[0] for _, entry in entries]
    cut = perf_counter() - began
    overs = [Over(one.lookup, 0.0, 1.0, tuple(range(len(entries)))) for one in landed(laid)]
    ((_, cube),) = plan.cubes.items()
    cell = Cell(cube, 0, next(iter(plan.verdicts.values())), plan.settings)
    began = perf_counter()
    envelopes = [unpacked(one, plan.relations) for bundle in bundles for one in unbundled(bytes(bundle))]
    said = cell.epoch([*envelopes, *overs])
    eddy = perf_counter() - began
    table = pa.Table.from_batches(said.answers)
    began = perf_counter()
    pq.write_table(table, folder / "answers.parquet")
    written = perf_counter() - began
    stems = {id(view.stem): view.stem for view in cell.eddy.run.views.values()}
    # A cell keeps what it was told, should it be asked for again, beside what its SteMs hold.
    told = sum(one.rows.nbytes for one in envelopes if isinstance(one, Came))
    return {
        "cut_row": cut / laid.rows,
        "row_bytes": sum(map(len, bundles)) / laid.rows,
        "eddy_row": eddy / laid.rows,
        "answer_row": written / table.num_rows,
        "memory_row": (told + sum(stem.size for stem in stems.values())) / laid.rows,
    }


def _task(session: SparkSession) -> float:
    """Of a job of many tasks that do nothing."""
    few, many = 10, 410

    def run(tasks: int) -> float:
        began = perf_counter()
        session.range(0, tasks, 1, tasks).count()
        return perf_counter() - began

    run(many)
    took = {tasks: min(run(tasks) for _ in range(_TIMES)) for tasks in (few, many)}
    return max(0.0, took[many] - took[few]) / (many - few)


def _told_cell(folder: Path) -> float:
    """Of writing down what many cells say, and of seeing what that comes to."""
    folder.mkdir()
    giving, cells, batches = Giving(folder), 1_000, 5
    began = perf_counter()
    for number in range(batches):
        giving.give(Given(number, (), {cell: {"how": "kept", "finished": False} for cell in range(cells)}))
        assert len(giving.cells) == cells
    return (perf_counter() - began) / cells / batches
