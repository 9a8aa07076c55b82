"""A mediator that comes after another over the same store, as in another process."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fixtures import Web, book_trade_web
from mediator.answering import Mediator
from mediator.catalog.model import Catalog, Relation
from mediator.errors import StoreError
from mediator.output.report import Report
from tests.answering.kit import ask, becomes, check_same, in_virtual_time, of, truth
from tests.answering.statements import STATEMENTS, Statement
from tests.store.kit import Wall, keeping

LOOKUPS = "SELECT a.name FROM authors a WHERE a.id IN (1001, 1002, 1003, 999999)"
SCAN = "SELECT title, year FROM books"


def answered(
    web: Web, folder: Path, sql: str, wall: Wall | None = None, catalog: Catalog | None = None, **said: float
) -> tuple[pa.Table, Report]:
    """One query of a mediator that is opened for it and closed after it."""

    async def main() -> tuple[pa.Table, Report]:
        async with keeping(web, folder, wall, catalog) as mediator:
            return await ask(mediator, sql, **said)

    return in_virtual_time(main())


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_the_same_query_after_a_restart_asks_nothing(statement: Statement, tmp_path: Path) -> None:
    web = book_trade_web(60, book_page=20)
    first, _ = answered(web, tmp_path, statement.sql)
    asked = web.requests
    again, report = answered(web, tmp_path, statement.sql)
    check_same(again, truth(web.tables, statement.sql), statement.ordered)
    check_same(first, again, statement.ordered)
    assert report.complete
    looked_up = {
        n for n in ("authors", "holdings", "reviews", "libraries", "offers") if f" {n}" in statement.sql
    }
    if len(looked_up) < 2:
        assert web.requests == asked


def test_after_a_restart_a_longer_list_asks_only_for_what_is_new(tmp_path: Path) -> None:
    web = book_trade_web(60)
    answered(web, tmp_path, LOOKUPS)
    asked = web.counters["authors"].requests
    longer = LOOKUPS.replace("(1001,", "(1007, 1001,")
    found, report = answered(web, tmp_path, longer)
    check_same(found, truth(web.tables, longer))
    assert web.counters["authors"].requests == asked + 1
    assert (of(report, "authors").served, of(report, "authors").asked) == (4, 1)


def test_nothing_is_kept_without_a_store(tmp_path: Path) -> None:
    web = book_trade_web(60)

    async def main() -> None:
        for _ in range(2):
            async with Mediator(web.catalog, threads=1) as mediator:
                await mediator.kept()

    in_virtual_time(main())
    assert not list(tmp_path.iterdir())


def test_what_was_fresh_for_an_hour_is_asked_again_after_two(tmp_path: Path) -> None:
    web, wall = book_trade_web(60), Wall()
    hourly = _with_freshness(web.catalog, "authors", 3_600)
    answered(web, tmp_path, LOOKUPS, wall, hourly)
    asked = web.requests
    wall.now += 3_000
    answered(web, tmp_path, LOOKUPS, wall, hourly)
    assert web.requests == asked
    wall.now += 3_000
    found, _ = answered(web, tmp_path, LOOKUPS, wall, hourly)
    check_same(found, truth(web.tables, LOOKUPS))
    assert web.requests == 2 * asked


def test_a_freshness_that_is_declared_shorter_holds_for_what_is_kept_already(tmp_path: Path) -> None:
    web, wall = book_trade_web(60), Wall()
    answered(web, tmp_path, LOOKUPS, wall)
    asked = web.requests
    wall.now += 3_000
    answered(web, tmp_path, LOOKUPS, wall, _with_freshness(web.catalog, "authors", 60))
    assert web.requests == 2 * asked


def test_max_age_counts_from_when_it_was_asked_in_an_earlier_process(tmp_path: Path) -> None:
    web, wall = book_trade_web(60), Wall()
    answered(web, tmp_path, LOOKUPS, wall)
    asked = web.requests
    wall.now += 500
    answered(web, tmp_path, LOOKUPS, wall, max_age=600)
    assert web.requests == asked
    answered(web, tmp_path, LOOKUPS, wall, max_age=400)
    assert web.requests == 2 * asked


@pytest.mark.parametrize("sql", [LOOKUPS, SCAN], ids=["lookups", "a scan"])
def test_what_a_site_has_dropped_is_gone_once_it_was_asked_again(sql: str, tmp_path: Path) -> None:
    web, wall, name = book_trade_web(60, seed=1), Wall(), "authors" if sql == LOOKUPS else "books"
    other = book_trade_web(60, seed=2)
    answered(web, tmp_path, sql, wall)
    becomes(web, name, other)
    wall.now += 100
    answered(web, tmp_path, sql, wall, max_age=10)
    asked = web.requests
    wall.now += 100
    found, _ = answered(web, tmp_path, sql, wall)
    assert web.requests == asked
    check_same(found, truth(other.tables, sql))


def test_a_clock_that_was_set_back_makes_nothing_older_than_what_it_replaced(tmp_path: Path) -> None:
    web, wall = book_trade_web(60, seed=1), Wall()
    other = book_trade_web(60, seed=2)
    answered(web, tmp_path, LOOKUPS, wall)
    becomes(web, "authors", other)
    wall.now -= 10_000
    asked = web.requests
    answered(web, tmp_path, LOOKUPS, wall, max_age=-1)
    assert web.requests == 2 * asked
    found, _ = answered(web, tmp_path, LOOKUPS, wall)
    check_same(found, truth(other.tables, LOOKUPS))


def test_a_changed_declaration_discards_what_was_kept_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web = book_trade_web(60)
    answered(web, tmp_path, LOOKUPS)
    asked = web.requests
    authors = web.catalog.relations["authors"]
    keyless = replace(authors, key=()) if authors.key else replace(authors, key=("id",))
    with caplog.at_level(logging.WARNING):
        found, _ = answered(web, tmp_path, LOOKUPS, catalog=_with(web.catalog, keyless))
    check_same(found, truth(web.tables, LOOKUPS))
    assert web.requests == 2 * asked
    assert "kept of authors is discarded: it is declared otherwise now" in caplog.text


def test_a_spoilt_segment_is_discarded_and_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web = book_trade_web(60)
    answered(web, tmp_path, LOOKUPS)
    asked = web.requests
    for path in (tmp_path / "segments").iterdir():
        path.write_bytes(path.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        found, _ = answered(web, tmp_path, LOOKUPS)
    check_same(found, truth(web.tables, LOOKUPS))
    assert web.requests == 2 * asked
    assert "cannot be read" in caplog.text


def test_a_scan_that_was_broken_off_is_not_kept(tmp_path: Path) -> None:
    web = book_trade_web(60, book_page=5)

    async def broken_off() -> None:
        async with keeping(web, tmp_path) as mediator:
            async with mediator.answering(SCAN) as answers:
                await anext(answers)
            await mediator.kept()

    in_virtual_time(broken_off())
    found, report = answered(web, tmp_path, SCAN)
    check_same(found, truth(web.tables, SCAN))
    assert of(report, "books").served == 0


def test_two_queries_that_share_a_scan_keep_it_once(tmp_path: Path) -> None:
    web = book_trade_web(60, book_page=20)

    async def both() -> None:
        async with keeping(web, tmp_path) as mediator:
            async with mediator.answering(SCAN) as one, mediator.answering(SCAN) as other:
                async for _ in one:
                    pass
                await mediator.kept()
                async for _ in other:
                    pass
            await mediator.kept()

    in_virtual_time(both())
    asked = web.requests
    found, _ = answered(web, tmp_path, SCAN)
    check_same(found, truth(web.tables, SCAN))
    assert web.requests == asked


def test_a_second_mediator_on_one_store_is_told_whose_it_is(tmp_path: Path) -> None:
    web = book_trade_web(60)

    async def main() -> None:
        async with keeping(web, tmp_path):
            with pytest.raises(StoreError, match=r"is in use by process \d+: wait until that ends"):
                async with keeping(web, tmp_path):
                    pass
        async with keeping(web, tmp_path):
            pass

    in_virtual_time(main())


def test_a_store_that_cannot_be_written_is_said_once_and_queries_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web = book_trade_web(60)

    async def main() -> None:
        async with keeping(web, tmp_path) as mediator:
            (tmp_path / "segments").rename(tmp_path / "elsewhere")
            found, report = await ask(mediator, LOOKUPS)
            check_same(found, truth(web.tables, LOOKUPS))
            assert report.complete
            with pytest.raises(StoreError, match="cannot be written"):
                await mediator.kept()
            found, _ = await ask(mediator, SCAN)
            check_same(found, truth(web.tables, SCAN))

    with caplog.at_level(logging.WARNING):
        in_virtual_time(main())
    assert len([r for r in caplog.records if "what comes from now on is not kept" in r.message]) == 1


def _with_freshness(catalog: Catalog, name: str, seconds: float) -> Catalog:
    relation = catalog.relations[name]
    methods = tuple(replace(m, fresh_for=float(seconds)) for m in relation.methods)
    return _with(catalog, replace(relation, methods=methods))


def _with(catalog: Catalog, relation: Relation) -> Catalog:
    return replace(catalog, relations={**catalog.relations, relation.name: relation})
