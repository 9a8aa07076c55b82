"""What is measured, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

import pyarrow.parquet as pq

from bench import priming
from bench.cell import Cell
from bench.cell import run as run_locally
from bench.contestants import Entry
from bench.contestants import ours as local
from bench.local import HEADLINE
from bench.result import Result
from bench.shapes import shape
from bench.spark import cores, lookups
from bench.spark.ours import Ran, plan_of
from bench.spark.rivals import Tuning, tunings
from bench.spark.stage import Stage
from bench.spark.trade import NAMES, Laid, laid
from pipeline.cells.wings import main_of
from pipeline.spread.plan import Plan
from pipeline.spread.stream import Pace

_TINY = Pace(1, 1, 1)  # one piece of the log in a micro-batch


def sql(stage: Stage, result: Result) -> None:
    """Beside plain batch Spark SQL."""
    for name in NAMES:
        there = stage.lay(name, stage.scale.rows)
        said, tuning = _tuned(stage, there)
        runs: list[Ran] = []
        theirs = partial(stage.batch, there, tuning)
        seconds = stage.turns({"ours": _kept(stage, there, runs), "Spark SQL": theirs})
        ending = "" if name == "uniform" else f"_{name}"
        best = _raced(result, f"sql {name}", seconds)
        result.figures[f"vs_spark_sql{ending}"] = best["ours"] / best["Spark SQL"]
        first = min(ran.first for ran in runs[-max(1, stage.scale.rounds) :])
        result.figures[f"first_result_vs_spark_sql{ending}"] = first / best["Spark SQL"]
        result.detail[f"sql {name}"] |= {
            "spark_is": said,
            "first_s": round(first, 3),
            "epochs": len(runs[-1].epochs),
        }
        result.curves.setdefault("answers", {})[name] = [(0.0, 0), *runs[-1].answers]


def streams(stage: Stage, result: Result) -> None:
    """Beside Spark's own stream-stream joins."""
    five, two = (stage.lay("uniform", rows) for rows in (stage.scale.streamed_five, stage.scale.streamed))
    for figure, there in (("vs_spark_stream_join", two.pair()), ("vs_spark_stream_join_five", five)):
        seconds = stage.turns({"ours": _kept(stage, there, []), "stream join": partial(stage.streams, there)})
        best = _raced(result, there.name.replace("uniform", "streams"), seconds)
        result.figures[figure] = best["ours"] / best["stream join"]


def local_engine(stage: Stage, result: Result) -> None:
    """Beside the local engine, whose rows are in its memory, and whose answers stay there."""
    for name, rows in (("small", stage.scale.small), ("large", stage.scale.large)):
        each = rows // 3
        there = laid(shape("int", each), stage.folder / f"local-{name}")
        entry = local(HEADLINE)
        cell = Cell("int", each, stage.scale.cores, (entry,), 2)
        seconds = stage.turns(
            {"ours": _kept(stage, there, []), "local": partial(_locally, cell, entry)},
        )
        best = _raced(result, f"local {name}", seconds)
        result.figures[f"vs_local_{name}"] = best["ours"] / best["local"]
        result.detail[f"local {name}"]["rows"] = rows


def skew(stage: Stage, result: Result) -> None:
    """How even the work is, by the rows that each slot's cells are told; and how even the cells are."""
    there = stage.lay("skewed", stage.scale.rows // 5)
    details = result.detail["skew"] = {}
    slots = stage.scale.cores
    for cells in (slots, 8 * slots):
        plan = plan_of(there, slots, cells)
        told = _told(plan, there)
        by_slot = Counter[int]()
        for cell, rows in told.items():
            by_slot[cell % slots] += rows
        details[f"{cells} cells"] = {
            "fullest slot ÷ mean": round(_fullest(by_slot), 3),
            "fullest cell ÷ mean": round(_fullest(told), 3),
            "with wings": len(plan.cells),
            "shares": [d.share for cube in plan.cubes.values() for d in main_of(cube).dimensions],
        }
        if cells == slots:
            result.figures["skew_balance"] = _fullest(by_slot)


def _fullest(told: Mapping[int, int]) -> float:
    return max(told.values()) * len(told) / sum(told.values())


def epochs(stage: Stage, result: Result) -> None:
    """Micro-batches that bring a thousand rows or fewer."""
    there = stage.lay("uniform", 500 * stage.scale.epochs)
    ran = stage.ours(there, pace=_TINY)
    took = [after - before for before, after in zip(ran.epochs[1:], ran.epochs[2:], strict=False)]
    result.figures["epoch_overhead_s"] = median(took)
    result.detail["epochs"] = {"epochs": len(ran.epochs), "worst_s": round(max(took), 3), "rows": there.rows}


def primed(stage: Stage, result: Result) -> None:
    """A query by a process that has a profile, beside one that knows nothing."""
    figure, detail = priming.measured(stage.session, 2 if stage.scale.rounds > 1 else 1)
    result.figures["primed_vs_cold"] = figure
    result.detail["primed"] = detail


PARTS: Mapping[str, Callable[[Stage, Result], None]] = {
    "epochs": epochs,
    "lookups": lookups.lookups,
    "skew": skew,
    "sql": sql,
    "streams": streams,
    "local": local_engine,
    "cores": cores.cores,
    "primed": primed,
}


def _kept(stage: Stage, there: Laid, runs: list[Ran]) -> Callable[[], float]:
    def run() -> float:
        runs.append(stage.ours(there))
        return runs[-1].seconds

    return run


def _locally(cell: Cell, entry: Entry) -> float:
    return run_locally(cell).best(entry)


def _tuned(stage: Stage, there: Laid) -> tuple[str, Tuning]:
    """The settings with which plain Spark SQL is fastest."""
    tried = {
        name: min(stage.batch(there, tuning) for _ in range(1 + (stage.scale.rounds > 0)))
        for name, tuning in tunings(stage.scale.cores).items()
    }
    name = min(tried, key=lambda name: tried[name])
    return name, tunings(stage.scale.cores)[name]


def _raced(result: Result, race: str, seconds: Mapping[str, list[float]]) -> dict[str, float]:
    best = {name: min(rounds) for name, rounds in seconds.items()}
    result.detail[race] = {
        "best_s": {name: round(s, 3) for name, s in best.items()},
        "median_s": {name: round(median(s), 3) for name, s in seconds.items()},
    }
    result.curves[race] = best
    return best


def _told(plan: Plan, there: Laid) -> Counter[int]:
    """Rows that each cell is told."""
    found = Counter[int](dict.fromkeys(range(len(plan.cells)), 0))
    for name, cube in plan.cubes.items():
        for relation, file in there.files.items():
            for batch in pq.read_table(file).combine_chunks().to_batches():
                for cell, places in cube.cells_of(relation, batch):
                    found[plan.first[name] + cell] += len(places)
    return found
