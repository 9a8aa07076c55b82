"""Steps a case with interleaving and compares what comes out with DuckDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import duckdb
import pyarrow as pa

from mediator.assembly import POLICIES, House, Settings, assemble
from mediator.binding.verdict import verdict
from mediator.eddy.eddy import Eddy
from mediator.eddy.floating import AnyOrder
from mediator.errors import Unanswerable
from mediator.flow.events import Ask, Cancel, Command, Emit, Event
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand
from tests.any_route.drawing import Case, draw
from tests.any_route.sources import Sources

Row = tuple[object, ...]
_MOST_ANSWERS = 2_000  # where each answer may be a batch of its own, more of them only take longer
_PATIENCE = 200_000  # turns; a case that needs more is taken not to end


class Wrong(AssertionError):
    """The engine and the oracle disagree, or a promise was broken."""


@dataclass(slots=True)
class Effort:
    """How much there was to find: a search over cases without choices finds nothing."""

    cases: int = 0
    queries: int = 0
    unanswerable: int = 0
    partial: int = 0
    answers: int = 0
    turns: int = 0
    floating: int = 0  # batches to choose among, summed over the turns
    lookups: int = 0
    parked: int = 0
    settled: int = 0


@dataclass(slots=True)
class Running:
    statement: str
    block: Block
    eddy: Eddy
    floating: AnyOrder
    rows: list[Row] = field(default_factory=list)


def search(seed: int, effort: Effort) -> None:
    """Draw the case of this seed, run it, and raise `Wrong` if anything is."""
    case = draw(seed)
    random = Random(seed + 1)
    sources = Sources(case.catalog.relations, case.tables, case.failing, random)
    house = House(lambda: sources.now)
    sensible = [s for s in case.statements if _size(s, case.tables) <= _MOST_ANSWERS]
    waiting = [r for s in sensible if (r := _prepared(case, s, house, random, effort))]
    running: list[Running] = []
    turns = 0
    while waiting or not all(r.eddy.finished for r in running):
        turns += 1
        if turns > _PATIENCE:
            raise Wrong(f"seed {seed} does not end: {case.statements}")
        ready = [r for r in running if not r.eddy.idle or not r.eddy.finished and not sources.busy]
        if waiting and (not running or random.random() < 0.05):
            started = waiting.pop()
            running.append(started)
            _obey(started, started.eddy.start(), sources)
        elif ready and (not sources.busy or random.random() < 0.7):
            one = random.choice(ready)
            effort.floating += len(one.floating)
            effort.turns += 1
            _obey(one, one.eddy.turn(random.choice((1, 1, 3))), sources)
        elif sources.busy:
            sources.step()
        for one in running:
            if one.eddy.idle and not one.eddy.finished:
                _obey(one, one.eddy.turn(), sources)
    for one in running:
        _compare(case, one, effort)
    if sources.asked_again and not case.failing:
        raise Wrong(f"seed {seed}: asked again for {sources.asked_again}")
    effort.cases += 1
    effort.lookups += sources.flights.total()


def _prepared(case: Case, statement: str, house: House, random: Random, effort: Effort) -> Running | None:
    query = understand(statement, case.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    effort.queries += 1
    try:
        found = verdict(stage.block, statement)
    except Unanswerable:
        effort.unanswerable += 1
        return None
    order = list(range(len(stage.block.aliases)))
    random.shuffle(order)
    settings = Settings(
        policy=random.choice(("random", *POLICIES)),
        order=tuple(order),
        seed=random.randrange(1 << 30),
        revisit=random.choice((1, 1, 2, 16)),
        largest_batch=random.choice((1, 2, 7, 1000)),
        room=random.choice((1, 2, 5, 1000)),
    )
    floating = AnyOrder(random)
    return Running(statement, stage.block, assemble(stage.block, found, house, settings, floating=floating), floating)


def _obey(one: Running, commands: list[Command], sources: Sources) -> None:
    for command in commands:
        match command:
            case Ask():
                sources.ask(command, one.eddy.admit)
            case Cancel():
                sources.cancel(command.ask, one.eddy.admit)
            case Emit():
                columns = [one.eddy.run.gather(command.batch, o.column).to_pylist() for o in one.block.outputs]
                one.rows += zip(*columns, strict=True)


def _compare(case: Case, one: Running, effort: Effort) -> None:
    got = Counter(one.rows)
    true = _answers(one.statement, case.tables)
    effort.answers += got.total()
    effort.parked += sum(t.parked for t in one.eddy.asking.tallies.values())
    effort.settled += one.eddy.asking.owed
    missing = one.eddy.asking.missing()
    if missing and not case.failing:
        raise Wrong(f"seed {case.seed}: nothing failed, but it says that it lacks {missing}")
    if not missing and got != true:
        raise Wrong(f"seed {case.seed}: {one.statement}\n  too many {got - true}\n  too few {true - got}")
    if missing:
        effort.partial += 1
        lacking = [(relation, bind_set, binding) for relation, bind_set, binding, _ in missing]
        least = _answers(one.statement, _without(case.tables, lacking))
        if got - true or least - got:
            raise Wrong(
                f"seed {case.seed}: {one.statement}\n  too many {got - true}\n"
                f"  too few {least - got}\n  although it lacks only {lacking}"
            )


def _without(
    tables: dict[str, pa.Table], lacking: list[tuple[str, tuple[str, ...], tuple[object, ...]]]
) -> dict[str, pa.Table]:
    """What the sources hold less every row that the report names as missing."""
    kept = dict(tables)
    for relation, bind_set, binding in lacking:
        bound = dict(zip(bind_set, binding, strict=True))
        rows = [r for r in kept[relation].to_pylist() if any(r[f] != v for f, v in bound.items())]
        kept[relation] = pa.Table.from_pylist(rows, schema=kept[relation].schema)
    return kept


def _size(statement: str, tables: dict[str, pa.Table]) -> int:
    ((size,),) = _answers(f"SELECT count(*) FROM (SELECT * FROM ({statement}) LIMIT {_MOST_ANSWERS + 1})", tables)
    return int(str(size))


def _answers(statement: str, tables: dict[str, pa.Table]) -> Counter[Row]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return Counter(connection.execute(statement).fetchall())
