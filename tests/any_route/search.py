"""Steps a case with interleaving and compares what comes out with DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from unittest.mock import patch

import duckdb
import pyarrow as pa

from mediator.assembly import POLICIES, House, Settings, assemble
from mediator.binding.choice import choose
from mediator.binding.model import Verdict
from mediator.binding.verdict import verdict
from mediator.eddy import contents, dividing, probing
from mediator.eddy.destinations import Destination, Probe, Select
from mediator.eddy.dividing import Division, Figures
from mediator.eddy.eddy import Eddy
from mediator.eddy.floating import AnyOrder
from mediator.eddy.goals.goal import GOALS
from mediator.eddy.policies.random import AtRandom
from mediator.eddy.policies.usual import Usual
from mediator.errors import Unanswerable
from mediator.flow.batch import Signature
from mediator.flow.events import Ask, Cancel, Command, Emit
from mediator.query import predicates
from mediator.query.model import Block, BlockStage, Column, Preference, Query
from mediator.query.preferences import preferred
from mediator.query.understand import understand
from mediator.state.hands import Hands
from tests.any_route.drawing import Case, draw
from tests.any_route.recording import OnRecord
from tests.any_route.sources import Sources, meets

Row = tuple[object, ...]
_MOST_ANSWERS = 150  # where each answer may be a batch of its own, more of them only take longer
_SCHEDULES = 4  # of one case
_PATIENCE = 20_000  # turns; a schedule that needs more is abandoned, and counted


class Wrong(AssertionError):
    """The engine and the oracle disagree, or a promise was broken."""


@dataclass(slots=True)
class Effort:
    """How much there was to find: a search over cases without choices finds nothing."""

    cases: int = 0
    schedules: int = 0
    abandoned: int = 0
    queries: int = 0
    unanswerable: int = 0
    partial: int = 0
    answers: int = 0
    turns: int = 0
    floating: int = 0  # batches to choose among, summed over the turns
    lookups: int = 0
    parked: int = 0
    held: int = 0
    changed: int = 0  # providers, in mid-run and for no reason
    owed: int = 0  # runs that had to look again before the end
    unbuilt: int = 0  # rows that probed again and again instead
    divided: int = 0  # signatures whose batches went apart by what is in them
    kept_back: int = 0  # turns at which rows waited for a site to have room
    put_off: int = 0  # turns at which rows waited for those of others
    bounded: int = 0  # providers that bound a column by an operator
    served: int = 0  # lookups that the SteM answered
    preferred: int = 0  # times that something was, at the start or from then on
    replayed: int = 0  # choices of those that were on record


@dataclass(frozen=True, slots=True)
class Prepared:
    statement: str
    query: Query
    block: Block
    verdict: Verdict
    true: Counter[Row]


@dataclass(slots=True)
class Running:
    prepared: Prepared
    eddy: Eddy
    floating: AnyOrder
    rows: list[Row] = field(default_factory=list)
    left: bool = False  # stopped in the middle
    record: OnRecord | None = None  # of those that somebody looks on at


def search(seed: int, effort: Effort, drawn: Callable[[int], Case] = draw) -> None:
    """Draw the case of this seed, run it in several schedules, and raise `Wrong` if anything is."""
    case = drawn(seed)
    with _remembering():
        prepared = [p for s in case.statements if (p := _prepared(case, s, effort))]
        for schedule in range(_SCHEDULES):
            random = Random(seed * _SCHEDULES + schedule)
            with _eager(random):
                _run(case, prepared, random, effort)
    effort.cases += 1


@contextmanager
def _remembering() -> Iterator[None]:
    """DuckDB is asked once what a condition is of a row: each time takes a millisecond, however few the rows are, and
    schedules of one case ask for the same again and again."""
    asked = predicates._ask
    known: dict[tuple[str, pa.Schema], dict[Row, object]] = {}
    types: dict[tuple[str, pa.Schema], pa.DataType] = {}

    def ask(sql: str, table: pa.Table, text: str) -> pa.Table:
        what = sql, table.schema
        values = known.setdefault(what, {})
        rows: list[Row] = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        missing = [number for number, row in enumerate(rows) if row not in values]
        if missing or what not in types:
            found = asked(sql, table.take(pa.array(missing, pa.int64())), text)["v"]
            types[what] = found.type
            values.update(zip([rows[number] for number in missing], found.to_pylist(), strict=True))
        return pa.table({"v": pa.array([values[row] for row in rows], types[what])})

    with patch.object(predicates, "_ask", ask):
        yield


@contextmanager
def _eager(random: Random) -> Iterator[None]:
    """What pays with many rows alone is done with few, in some schedules."""
    if random.random() < 0.5:
        yield
        return
    with (
        patch.object(probing, "_BEHIND", 0),
        patch.object(contents, "_FIRST", 2),
        patch.object(contents, "_HOP", -1.0),
        patch.object(contents, "best_division", _any_division),
        patch.object(Usual, "survey", _survey),
        patch.object(AtRandom, "survey", _survey),
    ):
        yield


def _survey(
    _: object, signature: Signature, legal: Sequence[Destination], rows: int
) -> tuple[int, dict[Destination, float]] | None:
    """Now and then, whatever the policy: the same for the same, so that it can be replayed."""
    dice = Random(f"{signature} {rows}")
    where = [d for d in legal if isinstance(d, Probe | Select)]
    if len(where) < 2 or dice.random() < 0.5:
        return None
    return rows, {d: dice.random() for d in where}


def _any_division(
    columns: Mapping[Column, pa.Array], counts: Figures, price: Figures
) -> tuple[Division, float] | None:
    """The best one, or any other: what goes apart is a matter of taste."""
    dice = Random(counts.tobytes())
    column = dice.choice(list(columns))
    values = [v for v in columns[column].unique().to_pylist() if v is not None]
    if not values or dice.random() < 0.3:
        return dividing.best_division(columns, counts, price)
    ordered = not isinstance(values[0], str)
    value = dice.choice(values)
    return Division(column, 2, below=value) if ordered else Division(column, 2, groups=((value,),)), 1.0


def _run(case: Case, prepared: list[Prepared], random: Random, effort: Effort) -> None:
    sources = Sources(case, random)
    house = House(lambda: sources.now, hands=_two_hands() if random.random() < 0.1 else Hands())
    waiting = list(prepared)
    running: list[Running] = []
    turns = 0
    while waiting or not all(r.eddy.finished for r in running):
        turns += 1
        if turns > _PATIENCE:
            effort.abandoned += 1
            return
        ready = [r for r in running if not r.eddy.idle or (not r.eddy.finished and not sources.busy)]
        if waiting and (not running or random.random() < 0.05):
            started = _started(waiting.pop(), house, random, effort)
            running.append(started)
            _obey(started, started.eddy.start(), sources)
        elif ready and (not sources.busy or random.random() < 0.7):
            one = random.choice(ready)
            effort.floating += len(one.floating)
            effort.kept_back += one.eddy.backlog.rows > 0
            effort.put_off += one.eddy.unbuilt.waiting > 0
            effort.turns += 1
            _obey(one, one.eddy.turn(random.choice((1, 1, 3))), sources)
            if random.random() < 0.03:
                _change_provider(one, random, effort)
            if (
                random.random() < 0.01 and len(one.floating) < 40
            ):  # each batch is judged by a statement of DuckDB's
                one.eddy.prefer(_preferences(one.prepared, random, effort))
            if random.random() < case.leaving:
                one.left = True
                _obey(one, one.eddy.stop(), sources)
        elif sources.busy:
            sources.step()
        for one in running:
            if one.eddy.idle and not one.eddy.finished:
                _obey(one, one.eddy.turn(), sources)
    for one in running:
        _compare(case, one, effort)
        _replay(case, one, effort)
    unkept = {name for one in running for name in one.eddy.unbuilt.rows}  # nobody can be served from these
    asked_again = [lookup for lookup in sources.asked_again if lookup[0] not in unkept]
    if asked_again and case.healthy and not case.leaving:
        raise Wrong(f"{case.kind} {case.seed}: asked again for {asked_again}")
    effort.schedules += 1
    effort.lookups += sources.flights.total()


def _started(prepared: Prepared, house: House, random: Random, effort: Effort) -> Running:
    order = list(range(len(prepared.block.aliases)))
    random.shuffle(order)
    settings = Settings(
        policy=random.choice(("random", *POLICIES)),
        goal=random.choice(GOALS),
        order=tuple(order),
        seed=random.randrange(1 << 30),
        revisit=random.choice((1, 1, 2, 16)),
        largest_batch=random.choice((1, 2, 7, 1000)),
        room=random.choice((1, 3, 20, 1000)),
        window=random.choice((1, 20, 4_096)),
        slice=random.choice((0.0, 0.01)),
        backlog=random.choice((1, 2, 16)),
        urgent=random.random() < 0.8,
    )
    preferences = _preferences(prepared, random, effort) if random.random() < 0.12 else ()
    floating = AnyOrder(random)
    record = OnRecord(prepared.block, prepared.verdict, settings) if settings.seed % 4 == 0 else None
    watch = record.watch if record is not None else None
    eddy = assemble(
        prepared.block,
        prepared.verdict,
        house,
        settings,
        floating=floating,
        watch=watch,
        preferences=preferences,
    )
    return Running(prepared, eddy, floating, record=record)


def _prepared(case: Case, statement: str, effort: Effort) -> Prepared | None:
    true = answers(f"SELECT * FROM ({statement}) LIMIT {_MOST_ANSWERS + 1}", case.tables)
    if true.total() > _MOST_ANSWERS:
        return None
    query = understand(statement, case.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    effort.queries += 1
    try:
        return Prepared(statement, query, stage.block, verdict(stage.block, statement), true)
    except Unanswerable:
        effort.unanswerable += 1
        return None


def _preferences(prepared: Prepared, random: Random, effort: Effort) -> Sequence[Preference]:
    """Up to three, over one alias or two. Every other value of anything satisfies one."""
    named = [a for a in prepared.block.aliases if a.relation.literal is None]
    fields = [f"{a.name}.{f.name}" for a in named for f in a.relation.fields]
    prefer = {}
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        read = random.sample(fields, min(len(fields), random.choice((1, 1, 2))))
        prefer[f"hash({', '.join(read)}) % 2 = {random.randrange(2)}"] = random.choice((0.1, 2.0, 10.0))
    (found,) = preferred(prepared.query, prefer).values() if prefer else ((),)
    effort.preferred += len(found) > 0
    return found


def _change_provider(one: Running, random: Random, effort: Effort) -> None:
    """Some alias gets its rows in another way from now on, for no reason at all."""
    others = [p for ways in one.eddy.asking.providers for p in ways if p not in one.eddy.asking.chosen]
    if others and not one.eddy.finished:
        effort.changed += one.eddy.rely(random.choice(others))


def _obey(one: Running, commands: list[Command], sources: Sources) -> None:
    for command in commands:
        match command:
            case Ask():  # looked over again, as the driver does: one may have waited for the turn to end
                wanted = one.eddy.asking.still_wanted(command)
                if wanted is not None:
                    sources.ask(wanted, one.eddy.admit)
            case Cancel():
                sources.cancel(command, one.eddy.admit)
            case Emit():
                columns = [
                    one.eddy.run.gather(command.batch, o.column).to_pylist()
                    for o in one.prepared.block.outputs
                ]
                one.rows += zip(*columns, strict=True)
                if (
                    len(one.rows) > one.prepared.true.total()
                ):  # else what goes round in circles is never compared
                    raise Wrong(f"{one.prepared.statement}\n  too many: {len(one.rows)} answers and more")


def _compare(case: Case, one: Running, effort: Effort) -> None:
    got, true, asking = Counter(one.rows), one.prepared.true, one.eddy.asking
    effort.answers += got.total()
    effort.parked += sum(t.parked for t in asking.tallies.values())
    effort.held += sum(t.held for t in asking.tallies.values())
    effort.owed += asking.owed
    effort.unbuilt += sum(one.eddy.unbuilt.rows.values())
    effort.divided += len(one.eddy.contents.divided())
    effort.bounded += sum(not name.isalnum() for p in one.prepared.verdict.chosen for name in p.bind_set)
    effort.served += sum(t.served for t in asking.tallies.values())
    missing = asking.missing()
    where = f"{case.kind} {case.seed}: {one.prepared.statement}"
    if got - true:
        raise Wrong(f"{where}\n  too many {got - true}")
    if one.left:
        return
    if missing and case.healthy:
        raise Wrong(f"{where}: nothing failed, but it says that it lacks {missing}")
    if not missing and got != true:
        raise Wrong(f"{where}\n  too few {true - got}")
    if missing:
        effort.partial += 1
        _check_what_is_missing(case, one, where)


def _replay(case: Case, one: Running, effort: Effort) -> None:
    """What its policy was told makes it decide the same once more."""
    if one.record is not None:
        found = one.record.replayed()
        effort.replayed += found.choices
        if not found.same:
            raise Wrong(
                f"{case.kind} {case.seed}: {found.policy} decides otherwise when replayed: {found.first[0]}"
            )


def _check_what_is_missing(case: Case, one: Running, where: str) -> None:
    """What does not depend on what the report names is there, and nobody else could have provided it."""
    asking = one.eddy.asking
    lacking = [(relation, bind_set, binding) for relation, bind_set, binding, _ in asking.missing()]
    least = answers(one.prepared.statement, _without(case.tables, lacking))
    if least - Counter(one.rows):
        raise Wrong(f"{where}\n  too few {least - Counter(one.rows)}\n  although it lacks only {lacking}")
    failed = {(relation, entry.method) for relation, _, _, entry in asking.missing()}
    names = {a.number: a.relation.name for a in one.prepared.block.aliases}
    barred = [(a, method) for a, name in names.items() for relation, method in failed if relation == name]
    broken = [
        (a, m.name)
        for a in names
        for m in one.prepared.block.aliases[a].relation.methods
        if (a, m.name) in asking.broken
    ]
    proving = [[p for p in ways if p.method.proves == "all"] for ways in one.prepared.verdict.providers]
    if choose(proving, [*barred, *broken]) is not None:
        raise Wrong(f"{where}\n  gave up on {failed}, although there was another way")


def _without(
    tables: dict[str, pa.Table], lacking: list[tuple[str, tuple[str, ...], tuple[object, ...]]]
) -> dict[str, pa.Table]:
    """What the sources hold less every row that the report names as missing."""
    kept = dict(tables)
    for relation, bind_set, binding in lacking:
        rows = [r for r in kept[relation].to_pylist() if not meets(r, bind_set, binding)]
        kept[relation] = pa.Table.from_pylist(rows, schema=kept[relation].schema)
    return kept


def answers(statement: str, tables: dict[str, pa.Table]) -> Counter[Row]:
    for name, table in tables.items():
        _oracle().register(name, table)
    return Counter(_oracle().execute(statement).fetchall())


@cache
def _two_hands() -> Hands:
    """Which share even the smallest probe."""
    return Hands(2, worth=1)


@cache
def _oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
