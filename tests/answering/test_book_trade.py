"""The book trade answers as DuckDB does over all that its sites hold, by every way into every relation."""

from __future__ import annotations

import pytest

from fixtures import Web, book_trade, book_trade_web
from mediator.answering import Mediator
from mediator.output.report import Report
from tests.answering.kit import ask, check_same, in_virtual_time, mediating, truth
from tests.answering.statements import BY_NAME, STATEMENTS, Statement

SIZE = 120


@pytest.fixture(scope="module")
def calm() -> Web:
    return book_trade_web(SIZE, book_page=25)


@pytest.fixture(scope="module")
def demo() -> Web:
    return book_trade_web(SIZE, behaviours="demo", book_page=25)


def test_the_statements_ask_for_something(calm: Web) -> None:
    empty = {s.name for s in STATEMENTS if not truth(calm.tables, s.sql).num_rows}
    assert empty == {"nobody", "never"}


def _check(web: Web, statement: Statement, policy: str = "rank") -> Report:
    async def main() -> Report:
        async with mediating(web) as mediator:
            found, report = await ask(mediator, statement.sql, policy=policy)
        check_same(found, truth(web.tables, statement.sql), statement.ordered)
        return report

    web.reset()
    report = in_virtual_time(main())
    assert report.complete, report.lines()
    assert not report.stopped
    return report


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_calm(calm: Web, statement: Statement) -> None:
    report = _check(calm, statement)
    assert not any(r.failed for r in report.relations)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_demo(demo: Web, statement: Statement) -> None:
    """Slow mirrors, stalls, a flaky source that limits its visitors: the same answers, later."""
    _check(demo, statement)


@pytest.mark.parametrize("policy", ["lottery", "naive", "random", "fixed"])
@pytest.mark.parametrize("name", ["five relations", "two inputs", "same author", "with"])
def test_any_policy(calm: Web, name: str, policy: str) -> None:
    _check(calm, BY_NAME[name], policy)


@pytest.mark.parametrize(
    "name", ["packed mirrors", "five relations", "two inputs", "in binds", "with", "top"]
)
async def test_over_real_sockets(name: str) -> None:
    statement = BY_NAME[name]
    async with book_trade(SIZE, book_page=25) as web, Mediator(web.catalog) as mediator:
        found, report = await ask(mediator, statement.sql)
        check_same(found, truth(web.tables, statement.sql), statement.ordered)
        assert report.complete, report.lines()


async def test_all_at_once_over_real_sockets() -> None:
    """One mediator, one after the other: what was asked for one query serves the next."""
    async with book_trade(SIZE, book_page=25) as web, Mediator(web.catalog) as mediator:
        for statement in STATEMENTS:
            found, report = await ask(mediator, statement.sql)
            check_same(found, truth(web.tables, statement.sql), statement.ordered)
            assert report.complete, (statement.name, report.lines())
        assert max(web.counters["authors"].lookups.values()) == 1
        assert max(web.counters["holdings"].lookups.values()) == 1
        assert max(web.counters["reviews"].lookups.values()) == 1
