"""A case of the any-route search, answered on Spark: what comes when, in which pieces and micro-batches, is drawn."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from mediator.answering import verdicts_of
from mediator.assembly import POLICIES, Settings
from mediator.errors import Unanswerable
from mediator.query.understand import understand
from pipeline.spread.above import batches_of
from pipeline.spread.drive import Drive
from pipeline.spread.folder import Folder
from pipeline.spread.given import given
from pipeline.spread.plan import Plan, planned
from pipeline.spread.reporting import report
from pipeline.spread.stream import Pace
from tests.any_route.drawing import Case
from tests.any_route.search import Row
from tests.any_route.sources import Sources
from tests.pipeline.portions import moved_on, portions_of

_LOOK = 0.01


@dataclass
class Spread:
    """What became of one statement."""

    rows: Counter[Row] = field(default_factory=Counter)
    lookups: Counter[object] = field(default_factory=Counter)  # how often each was asked of its site
    complete: bool = False
    epochs: int = 0
    cells: int = 0
    anew: int = 0  # cells that were made of Spark's state


class Asking:
    """Askers that ask scripted sources, and write what comes as somebody draws it."""

    def __init__(self, case: Case, plan: Plan, folder: Folder, random: Random) -> None:
        self.sources = Sources(case, random)
        self._plan, self._folder, self._random = plan, folder, random

    def __call__(self) -> None:
        portions = portions_of(self._plan, self._folder, self.sources)
        while self._folder.end is None:
            moved_on(portions, self.sources, self._random)
            if not self.sources.busy:
                time.sleep(_LOOK)
        for portion in portions:
            portion.close()


def staged(statement: str, random: Random) -> str:
    """The same, but one of its relations comes through a WITH that is a stage of its own: once each row, or twice."""
    tree = sqlglot.parse_one(statement, dialect="duckdb")
    table = random.choice(list(tree.find_all(exp.Table)))
    name = table.name
    entry = random.choice(
        (f"SELECT DISTINCT * FROM {name}", f"SELECT * FROM {name} UNION ALL SELECT * FROM {name}")
    )
    table.replace(exp.to_table("told").as_(table.alias or name, table=True))
    return f"WITH told AS ({entry}) {tree.sql('duckdb')}"


def plan_of(case: Case, statement: str, random: Random) -> Plan | None:
    """None where no source can be asked."""
    query = understand(statement, case.catalog)
    try:
        verdicts = verdicts_of(query, case.catalog)
    except Unanswerable:
        return None
    settings = Settings(
        policy=random.choice(("random", *POLICIES)),
        seed=random.randrange(1 << 30),
        largest_batch=random.choice((1, 7, 1000)),
    )
    return planned(
        case.catalog,
        query,
        verdicts,
        settings,
        lambda _, __: random.choice((1.0, 10.0, 1000.0)),
        slots=random.choice((1, 2)),
        askers=random.choice((1, 2, 3)),
        cells=random.choice((1, 2, 3, 4, 6)),
    )


def spread(session: SparkSession, case: Case, statement: str, path: Path, random: Random) -> Spread | None:
    """None where no source can be asked."""
    plan = plan_of(case, statement, random)
    if plan is None:
        return None
    folder = Folder(path)
    folder.begin(plan)
    asking = Asking(case, plan, folder, random)
    pace = Pace(random.choice((1, 2_000, 1 << 20)), random.choice((1, 4)), 1 << 28)
    Drive(session, folder, plan, asking, pace).run()
    return found(plan, folder, asking)


def found(plan: Plan, folder: Folder, asking: Asking) -> Spread:
    """What there is in the folder when it has ended."""
    there = Spread(lookups=Counter(asking.sources.flights), cells=len(plan.cells))
    cells = {}
    for one in given(folder.given):
        there.epochs += one.batch is not None
        there.anew += sum(status["how"] == "anew" for status in one.cells.values())
        cells |= one.cells
        for file in one.files:
            if file.stage in plan.results:
                for batch in batches_of(file.path, plan.stages[file.stage].schema):
                    there.rows.update(zip(*(c.to_pylist() for c in batch.columns), strict=True))
    there.complete = report(plan, folder, cells.values()).complete
    return there
