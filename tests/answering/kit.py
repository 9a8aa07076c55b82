"""What the tests of answering share: a web in virtual time, its mediator, and the truth to compare with."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from fixtures import Behaviour, Fault, Web, virtual
from fixtures.virtual import VirtualTransport
from mediator.answering import Mediator
from mediator.assembly import Settings
from mediator.catalog.model import Catalog, Source
from mediator.driver import Answers
from mediator.output.report import Failure, RelationReport, Report
from mediator.query.scope import unique

T = TypeVar("T")
Rows = Counter[tuple[object, ...]]

# Two of the sites say 404 where there is nothing.
NEVER = 403
GONE = Behaviour(faults=(Fault("error", probability=1.0, status=NEVER),))


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Its result; nothing that it started may be left when it ends."""

    async def watched() -> T:
        result = await main
        left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert not left
        return result

    return virtual.run(watched())


@asynccontextmanager
async def mediating(
    web: Web, settings: Settings | None = None, catalog: Catalog | None = None
) -> AsyncIterator[Mediator]:
    """A mediator of one thread over a web without sockets."""
    transport = VirtualTransport(web)
    async with Mediator(catalog or web.catalog, settings, threads=1, transport=transport) as mediator:
        yield mediator


async def all_of(answers: Answers) -> pa.Table:
    """Every answer of a query that has been started."""
    return pa.Table.from_batches([batch async for batch in answers], answers.schema)


async def ask(mediator: Mediator, sql: str, **said: Any) -> tuple[pa.Table, Report]:
    """One query from its start to its end."""
    async with mediator.answering(sql, **said) as answers:
        table = await all_of(answers)
        return table, answers.report


def truth(tables: Mapping[str, pa.Table], sql: str) -> pa.Table:
    """What DuckDB makes of the statement over all that the sites hold."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()


def rows(table: pa.Table) -> Rows:
    return Counter(listed(table))


def listed(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def check_same(found: pa.Table, true: pa.Table, ordered: bool = False) -> None:
    assert found.column_names == unique(true.column_names)
    if ordered:
        assert listed(found) == listed(true)
    else:
        assert rows(found) == rows(true)


def of(report: Report, relation: str) -> RelationReport:
    return next(r for r in report.relations if r.relation == relation)


def failures(report: Report) -> list[tuple[str, Failure]]:
    return [(r.relation, f) for r in report.relations for f in r.failures]


def sources_with(catalog: Catalog, **said: Any) -> Catalog:
    """The same relations from sources of which this is said."""
    return replace(catalog, sources={n: _with(s, said) for n, s in catalog.sources.items()})


@contextmanager
def changed(web: Web, name: str, behaviour: Behaviour) -> Iterator[None]:
    """For as long as the block lasts an endpoint behaves like this."""
    before = web.endpoints[name].behaviour
    web.behave(name, behaviour)
    try:
        yield
    finally:
        web.behave(name, before)


def becomes(web: Web, name: str, other: Web) -> None:
    """From now on an endpoint shows what the other web's shows."""
    web.endpoints[name]._site = other.endpoints[name]._site


def asked_again(web: Web, *names: str) -> dict[str, int]:
    """What these endpoints were asked for more than once, however often they had to be asked each time."""
    return {
        f"{name} {lookup}": n
        for name in names or web.counters
        for lookup, n in web.counters[name].lookups.items()
        if n > 1
    }


def _with(source: Source, said: Mapping[str, Any]) -> Source:
    return replace(source, **said)
