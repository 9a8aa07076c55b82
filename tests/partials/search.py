"""Partial answers in random schedules: any aliases out of reach at any moment, against DuckDB and against the answers.

The cases, their sources and the comparison of full answers are those of the any-route search: partial answers must
change nothing there. What is checked of themselves: each is a true row of its sub-block over what the sources hold, no
id is given twice and no rows are open twice, every answer names all open ones that it extends and no others, and none
that was withdrawn, or was opened too late, is part of any answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import count
from random import Random

import sqlglot
from sqlglot import exp

from mediator.assembly import POLICIES, House, Settings, assemble
from mediator.eddy.floating import AnyOrder
from mediator.eddy.goals.goal import GOALS
from mediator.flow.batch import Batch, as_ids
from mediator.flow.events import Ask, Cancel, Command, Emit
from mediator.partials.block import BlockPartials
from mediator.partials.parts import bits
from mediator.query.model import ROW_ID
from mediator.state.hands import Hands
from tests.any_route import search as any_route
from tests.any_route.drawing import Case, draw
from tests.any_route.search import Prepared, Row, Running, Wrong
from tests.any_route.sources import Sources

_SCHEDULES = 3
_PATIENCE = 20_000

Key = tuple[int, tuple[int, ...]]  # the aliases, and the row of each


@dataclass(slots=True)
class Found:
    """How much there was to find."""

    cases: int = 0
    abandoned: int = 0
    given: int = 0
    completed: int = 0
    withdrawn: int = 0
    withdrawn_early: int = 0
    left: int = 0
    left_out: int = 0
    ahead: int = 0  # lookups
    wide: int = 0  # partial answers that join something
    joined: int = 0  # self-joins among them

    def add(self, other: Found) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class Watched:
    """One query with its partial answers, and what is known of them from outside."""

    running: Running
    partials: BlockPartials
    where: str
    may_ask: bool
    open: dict[int, Key] = field(default_factory=dict)
    completed: dict[int, Key] = field(default_factory=dict)
    withdrawn: dict[int, Key] = field(default_factory=dict)
    answers: list[tuple[int, ...]] = field(default_factory=list)  # a row of each alias
    rows: dict[int, list[Row]] = field(default_factory=dict)  # of partial answers, by their aliases
    over: bool = False


def search(seed: int, found: Found, drawn: Callable[[int], Case] = draw) -> None:
    """Draw the case of this seed, run it in several schedules, and raise `Wrong` if anything is."""
    case, effort = drawn(seed), any_route.Effort()
    prepared = [p for s in case.statements if (p := any_route._prepared(case, s, effort))]
    for schedule in range(_SCHEDULES):
        _run(case, prepared, Random(seed * _SCHEDULES + schedule), found, effort)
    found.cases += 1


def _run(
    case: Case, prepared: list[Prepared], random: Random, found: Found, effort: any_route.Effort
) -> None:
    sources = Sources(case, random)
    house = House(lambda: sources.now, hands=Hands())
    waiting, queries = list(prepared), list[Watched]()
    turns = 0
    while waiting or not all(q.over for q in queries):
        turns += 1
        if turns > _PATIENCE:
            found.abandoned += 1
            return
        if waiting and (not queries or random.random() < 0.05):
            queries.append(_started(case, waiting.pop(), house, random))
            _obey(queries[-1], queries[-1].running.eddy.start(), sources)
            if random.random() < 0.5 and not queries[-1].running.eddy.finished:
                _obey(queries[-1], queries[-1].partials.do_without(_aliases(queries[-1], random)), sources)
        ready = [q for q in queries if not q.over and not q.running.eddy.idle]
        if ready and (not sources.busy or random.random() < 0.7):
            _turn(case, random.choice(ready), sources, random)
        elif sources.busy:
            sources.step()
        for query in queries:
            # What comes is taken in step by step, as it is where every reply is a turn of its own.
            eddy = query.running.eddy
            if eddy.idle and not eddy.finished:
                _obey(query, eddy.turn(), sources)
            if not query.over and (eddy.idle or eddy.finished):
                _beside(case, query, sources, random, found)
    for query in queries:
        any_route._compare(case, query.running, effort)
        _check_the_end(case, query, found)
    if sources.asked_again and case.healthy and not case.leaving:
        raise Wrong(f"{case.kind} {case.seed}: asked again for {sources.asked_again}")


def _started(case: Case, prepared: Prepared, house: House, random: Random) -> Watched:
    order = list(range(len(prepared.block.aliases)))
    random.shuffle(order)
    settings = Settings(
        policy=random.choice(("random", *POLICIES)),
        goal=random.choice(GOALS),
        order=tuple(order),
        seed=random.randrange(1 << 30),
        revisit=random.choice((1, 2, 16)),
        largest_batch=random.choice((1, 2, 7, 1000)),
        room=random.choice((1, 3, 20, 1000)),
    )
    floating = AnyOrder(random)
    eddy = assemble(prepared.block, prepared.verdict, house, settings, floating=floating)
    running = Running(prepared, eddy, floating)
    may_ask = random.random() < 0.7
    partials = BlockPartials(
        running.eddy,
        count(1_000_000),
        house.clock,
        house.hands,
        most=random.choice((2, 10, 1_000, 1_000)),
        may_ask=may_ask,
    )
    return Watched(running, partials, f"{case.kind} {case.seed}: {prepared.statement}", may_ask)


def _turn(case: Case, query: Watched, sources: Sources, random: Random) -> None:
    _obey(query, query.running.eddy.turn(random.choice((1, 1, 3))), sources)
    if random.random() < case.leaving and not query.running.eddy.finished:
        query.running.left = True
        _obey(query, query.running.eddy.stop(), sources)


def _beside(case: Case, query: Watched, sources: Sources, random: Random, found: Found) -> None:
    """The eddy is at rest: whatever may happen to partial answers now."""
    partials, eddy = query.partials, query.running.eddy
    if eddy.finished:
        _end(query, sources, found)
        return
    if random.random() < (0.08 if partials.missing else 0.3):
        _obey(query, partials.do_without(_aliases(query, random)), sources)
    if random.random() < 0.8:
        _look(query, sources, random.choice((1, 4, 20)))
    if random.random() < 0.2:
        dead = partials.dead()
        _withdraw(query, dead)
        found.withdrawn_early += len(dead)


def _aliases(query: Watched, random: Random) -> int:
    """Some that are out of reach from now on; now and then none."""
    missing = 0
    for alias in query.running.prepared.block.aliases:
        if alias.relation.literal is None and random.random() < 0.35:
            missing |= 1 << alias.number
    return missing if random.random() < 0.8 else 0


def _look(query: Watched, sources: Sources, hops: int) -> None:
    found, commands = query.partials.turn(hops)
    _obey(query, commands, sources)
    for batch in found:
        ids = query.partials.register.admit(batch)
        mask = batch.signature.spanned
        for id_, rows in zip(ids, _vectors(batch, mask), strict=False):
            if id_ in query.open or id_ in query.completed or id_ in query.withdrawn:
                raise Wrong(f"{query.where}\n  the id {id_} was given twice")
            if (mask, rows) in query.open.values():
                raise Wrong(f"{query.where}\n  {rows} of {mask:b} is open twice")
            query.open[id_] = mask, rows
        if ids:
            query.rows.setdefault(mask, []).extend(_values(query, batch.take(slice(0, len(ids))), mask))
    if len(query.open) > query.partials.register.most:
        raise Wrong(f"{query.where}\n  {len(query.open)} are open, more than may be")


def _end(query: Watched, sources: Sources, found: Found) -> None:
    """As a query does: what failed is done without once more; where nothing failed, what is open is withdrawn."""
    partials, running = query.partials, query.running
    _obey(query, partials.stop(), sources)
    missing = running.eddy.asking.missing()
    if missing and not running.left:
        _withdraw(query, partials.dead())
        _obey(query, partials.do_without(partials.failed(lookups=True)), sources)
        while partials.parts and not partials.idle:
            _look(query, sources, 1)
        partials.stop()
    elif not running.left:
        _withdraw(query, tuple(query.open))
        if partials.register.open:
            raise Wrong(f"{query.where}\n  {partials.register.open} are open after the end")
    query.over = True


def _withdraw(query: Watched, ids: tuple[int, ...]) -> None:
    query.partials.register.withdraw(ids)
    for id_ in ids:
        query.withdrawn[id_] = query.open.pop(id_)


def _obey(query: Watched, commands: list[Command], sources: Sources) -> None:
    eddy, beside = query.running.eddy, query.partials.beside
    for command in commands:
        match command:
            case Ask():
                own = command.number >= 1_000_000
                if own:
                    _check_the_ask(query, command)
                sources.ask(command, beside.admit if own else eddy.admit)
                if not own:
                    _obey(query, beside.leave(command), sources)
            case Cancel():
                sources.cancel(command, beside.admit if command.ask >= 1_000_000 else eddy.admit)
            case Emit():
                _answered(query, command.batch)


def _check_the_ask(query: Watched, ask: Ask) -> None:
    """What is asked ahead is asked as the query itself would ask."""
    ways = {(p.method.name, p.bind_set) for p in query.running.eddy.asking.chosen if p.depends}
    if not query.may_ask:
        raise Wrong(f"{query.where}\n  {ask} was asked, although nothing may be")
    if (ask.method, ask.bind_set) not in ways:
        raise Wrong(f"{query.where}\n  {ask} is a lookup that the query would not send")


def _answered(query: Watched, batch: Batch) -> None:
    eddy, whole = query.running.eddy, query.partials.graph.whole
    columns = [eddy.run.gather(batch, o.column).to_pylist() for o in query.running.prepared.block.outputs]
    query.running.rows += zip(*columns, strict=True)
    named = query.partials.register.extended_by(batch)
    for at, rows in enumerate(_vectors(batch, whole)):
        query.answers.append(rows)
        extended = {i for i, key in query.open.items() if _extends(rows, key)}
        before = {i for i, key in query.completed.items() if _extends(rows, key)}
        said = set(named.get(at, ()))
        if not extended <= said:
            raise Wrong(f"{query.where}\n  an answer extends {extended - said} and does not say so")
        if said - extended - before:
            raise Wrong(f"{query.where}\n  an answer says that it completes {said - extended - before}")
        query.partials.register.complete(tuple(said))
        for id_ in extended:
            query.completed[id_] = query.open.pop(id_)


def _check_the_end(case: Case, query: Watched, found: Found) -> None:
    keys = {mask: {_part(rows, mask) for rows in query.answers} for mask, _ in query.withdrawn.values()}
    for id_, (mask, rows) in query.withdrawn.items():
        if rows in keys[mask]:
            raise Wrong(f"{query.where}\n  {id_} was withdrawn, and an answer has its rows")
    if query.open and not query.running.left and not query.running.eddy.asking.missing():
        raise Wrong(f"{query.where}\n  {len(query.open)} are open after a complete run")
    masks = {m for m, _ in query.open.values()}
    keys = {mask: {_part(rows, mask) for rows in query.answers} for mask in masks}
    for id_, (mask, rows) in query.open.items():
        if rows in keys[mask]:
            raise Wrong(f"{query.where}\n  {id_} is open, and an answer has its rows")
    for mask, partial in query.rows.items():
        _check_true(case, query, mask, partial)
    register = query.partials.register
    found.given += register.given
    found.completed += register.completed
    found.withdrawn += register.withdrawn
    found.left += register.open
    found.left_out += register.left_out
    found.ahead += sum(t.asked for t in query.partials.beside.asking.tallies.values())
    wide = [mask for mask in query.rows if mask.bit_count() > 1]
    found.wide += len(wide)
    names = [a.relation.name for a in query.running.prepared.block.aliases]
    found.joined += sum(len({names[a] for a in bits(m)}) < m.bit_count() for m in wide)


def _check_true(case: Case, query: Watched, mask: int, partial: list[Row]) -> None:
    """The sub-block, asked of DuckDB as a statement of its own."""
    aliases = query.running.prepared.block.aliases
    named = {aliases[a].name for a in bits(mask) if aliases[a].relation.literal is None}
    statement = sqlglot.parse_one(query.running.prepared.statement, read="duckdb")
    tables = [t for t in statement.find_all(exp.Table) if t.alias_or_name in named]
    where = statement.args.get("where")
    conjuncts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else []
    conjuncts = conjuncts or ([where.this] if where else [])
    kept = [c.sql("duckdb") for c in conjuncts if {col.table for col in c.find_all(exp.Column)} <= named]
    ordered = [a for a in bits(mask) if aliases[a].relation.literal is None]
    columns = [f'{aliases[a].name}."{f.name}"' for a in ordered for f in aliases[a].relation.fields]
    listed = ", ".join(f"{t.name} AS {t.alias_or_name}" for t in tables)
    condition = f" WHERE {' AND '.join(f'({c})' for c in kept)}" if kept else ""
    true = any_route.answers(f"SELECT {', '.join(columns)} FROM {listed}{condition}", case.tables)
    unique = Counter(dict.fromkeys(partial, 1)) if _merged(query, mask) else Counter(partial)
    if unique - true:
        raise Wrong(f"{query.where}\n  no rows of {named}: {unique - true}")


def _merged(query: Watched, mask: int) -> bool:
    """Whether a row may have been opened more than once, one after the other."""
    return len(query.withdrawn) + len(query.completed) > 0


def _values(query: Watched, batch: Batch, mask: int) -> list[Row]:
    """All columns of the rows, as the sources hold them."""
    run = query.partials.beside.run
    columns = []
    for number in bits(mask):
        alias = run.block.aliases[number]
        if alias.relation.literal is None:
            for f in alias.relation.fields:
                assert f.name != ROW_ID
                rows = batch.rows[number]
                assert rows is not None
                columns.append(run.view(number).stem.store.gather(f.name, rows).to_pylist())
    return list(zip(*columns, strict=True))


def _vectors(batch: Batch, mask: int) -> list[tuple[int, ...]]:
    columns = []
    for alias in bits(mask):
        rows = batch.rows[alias]
        assert rows is not None
        columns.append(as_ids(rows).tolist())
    return list(zip(*columns, strict=True))


def _part(answer: tuple[int, ...], mask: int) -> tuple[int, ...]:
    return tuple(answer[a] for a in bits(mask))


def _extends(answer: tuple[int, ...], key: Key) -> bool:
    return _part(answer, key[0]) == key[1]
