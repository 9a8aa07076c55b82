"""Queries over real HTTP, and a clock that is put forward: what was read may be used for as long as its site says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from freshness_kit import Changing, changing, in_shifted_time, later

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.store.store import look_at

SCAN = "SELECT k, v FROM r"
LOOKUP = "SELECT k, v FROM r WHERE k IN (1, 2)"
ROWS = [(1, "a"), (2, "b")]


def only(catalog: Catalog, method: str) -> Catalog:
    relation = catalog.relations["r"]
    return replace(catalog, relations={"r": replace(relation, methods=(relation.method(method),))})


async def rows(mediator: Mediator, sql: str, **said: Any) -> list[tuple[int, str]]:
    async with mediator.answering(sql, **said) as answers:
        found = [tuple(row.values()) async for batch in answers for row in batch.to_pylist()]
        assert answers.report.complete, answers.report.lines()
    return sorted(found)


@asynccontextmanager
async def asking(site: Changing, method: str = "scan", **declared: Any) -> AsyncIterator[Mediator]:
    async with Mediator(only(site.catalog(**declared), method), threads=1) as mediator:
        yield mediator


@pytest.mark.parametrize(("method", "sql", "requests"), [("scan", SCAN, 1), ("by_k", LOOKUP, 2)])
def test_what_a_site_vouches_for_is_asked_again_when_that_has_passed(
    method: str, sql: str, requests: int
) -> None:
    async def main() -> None:
        async with (
            changing(headers={"Cache-Control": "max-age=60"}) as site,
            asking(site, method, unsaid=0.0) as mediator,
        ):
            assert await rows(mediator, sql) == ROWS
            await later(30)
            assert await rows(mediator, sql) == ROWS
            assert site.statuses == [200] * requests
            await later(31)
            for _ in range(2):
                assert await rows(mediator, sql) == ROWS
            assert site.statuses == [200] * requests + [304] * requests
            await later(61)
            site.rows = [(2, "changed"), (3, "new")]
            expected = [row for row in site.rows if method == "scan" or row[0] < 3]
            assert await rows(mediator, sql) == expected, "what the site has dropped is gone"

    in_shifted_time(main())


@pytest.mark.parametrize(
    ("headers", "lives"),
    [
        ({"Cache-Control": "max-age=100", "Age": "70"}, 30),
        ({"Cache-Control": "max-age=100, s-maxage=30"}, 30),
        ({"Cache-Control": "private, must-revalidate, max-age=30"}, 30),
    ],
)
def test_headers_are_read_as_rfc_9111_has_them(headers: dict[str, str], lives: float) -> None:
    async def main() -> None:
        async with changing(headers=headers) as site, asking(site, unsaid=0.0) as mediator:
            await rows(mediator, SCAN)
            await later(lives - 2)
            await rows(mediator, SCAN)
            assert len(site.said) == 1
            await later(3)
            await rows(mediator, SCAN)
            assert len(site.said) == 2

    in_shifted_time(main())


@pytest.mark.parametrize("said", ["no-cache", "max-age=0", "max-age=nonsense", "no-cache, max-age=60"])
def test_what_is_stale_at_once_is_asked_again_by_the_next_query(said: str) -> None:
    async def main() -> None:
        async with changing(headers={"Cache-Control": said}) as site, asking(site, unsaid=0.0) as mediator:
            for _ in range(3):
                assert await rows(mediator, SCAN) == ROWS
            assert site.statuses == [200, 304, 304]

    in_shifted_time(main())


def test_a_lookup_lives_as_long_as_the_shortest_of_its_pages() -> None:
    async def main() -> None:
        async with changing(headers={"Cache-Control": "max-age=20"}) as site:
            site.overrides["/scan"] = [
                web.Response(
                    text='{"rows": [[9, "i"]], "then": ["/more"]}', headers={"Cache-Control": "max-age=600"}
                )
            ]
            async with asking(site, unsaid=0.0) as mediator:
                assert await rows(mediator, SCAN) == [*ROWS, (9, "i")]
                await later(19)
                assert await rows(mediator, SCAN) == [*ROWS, (9, "i")]
                assert site.paths == ["/scan", "/more"]
                await later(2)
                assert await rows(mediator, SCAN) == ROWS
                assert site.paths == ["/scan", "/more", "/scan"]

    in_shifted_time(main())


@pytest.mark.parametrize(
    ("declared", "headers", "lives"),
    [
        ({"unsaid": 50.0}, {}, 50),
        ({"unsaid": 50.0}, {"Cache-Control": "max-age=10"}, 10),
        ({"unsaid": 50.0, "fresh_for": 80.0}, {"Cache-Control": "max-age=3600"}, 80),
        ({"fresh_for": 70.0}, {"Cache-Control": "max-age=10"}, 70),
        ({"fresh_for": 70.0}, {"Cache-Control": "no-store"}, 70),
    ],
)
def test_what_is_declared_bounds_what_is_said(
    declared: dict[str, float], headers: dict[str, str], lives: float
) -> None:
    async def main() -> None:
        async with changing(headers=headers) as site, asking(site, **declared) as mediator:
            await rows(mediator, SCAN)
            await later(lives - 2)
            await rows(mediator, SCAN)
            assert len(site.said) == 1
            await later(3)
            await rows(mediator, SCAN)
            assert len(site.said) == 2

    in_shifted_time(main())


def test_a_site_that_is_not_declared_to_be_believed_is_not() -> None:
    async def main() -> None:
        async with changing(headers={"Cache-Control": "max-age=1"}) as site, asking(site) as mediator:
            for _ in range(3):
                assert await rows(mediator, SCAN) == ROWS
                await later(1e6)
            assert len(site.said) == 1

    in_shifted_time(main())


def test_a_query_that_wants_it_fresher_asks_whether_there_is_anything_new() -> None:
    async def main() -> None:
        async with changing() as site, asking(site, "by_k") as mediator:
            assert await rows(mediator, LOOKUP) == ROWS
            await later(100)
            assert await rows(mediator, LOOKUP, max_age=200.0) == ROWS
            assert await rows(mediator, LOOKUP, max_age=50.0) == ROWS
            assert site.statuses == [200, 200, 304, 304]
            await later(30)
            assert await rows(mediator, LOOKUP, max_age=50.0) == ROWS
            assert len(site.said) == 4, "a 304 is as good as a reply"
            await later(30)
            site.rows = [(1, "z")]
            assert await rows(mediator, LOOKUP, max_age=50.0) == [(1, "z")]
            assert await rows(mediator, LOOKUP) == [(1, "z")]

    in_shifted_time(main())


# What outlives the process


class Wall:
    now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def keeping(site: Changing, folder: Path, wall: Wall, **declared: float) -> AsyncIterator[Mediator]:
    catalog = only(site.catalog(**(declared or {"unsaid": 0.0})), "by_k")
    async with Mediator(catalog, threads=1, store=folder, wall=wall) as mediator:
        yield mediator


@pytest.mark.parametrize(("passed", "requests"), [(50, 2), (70, 4)])
def test_what_the_site_said_holds_after_a_restart(tmp_path: Path, passed: float, requests: int) -> None:
    """What was remembered to tell versions apart is not kept: it is all fetched again then."""

    async def main() -> None:
        wall = Wall()
        async with changing(headers={"Cache-Control": "max-age=60"}) as site:
            async with keeping(site, tmp_path, wall) as mediator:
                assert await rows(mediator, LOOKUP) == ROWS
            wall.now += passed
            async with keeping(site, tmp_path, wall) as mediator:
                assert await rows(mediator, LOOKUP) == ROWS
            assert site.statuses == [200] * requests

    in_shifted_time(main())


def test_what_may_not_be_stored_is_not_on_the_disk(tmp_path: Path) -> None:
    async def main() -> None:
        rows_ = [(1, "a secret of the first"), (2, "a secret of the second")]
        # However long it was under way, and though no time goes by until the restart.
        async with changing(headers={"Cache-Control": "no-store"}, rows=rows_, delay=0.02) as site:
            async with keeping(site, tmp_path, Wall()) as mediator:
                for _ in range(2):
                    assert await rows(mediator, LOOKUP) == rows_
                await mediator.kept()
                assert len(site.said) == 4
            assert look_at(tmp_path, "r").rows == 0
            async with keeping(site, tmp_path, Wall()) as mediator:
                assert await rows(mediator, LOOKUP) == rows_
            assert len(site.said) == 6

    in_shifted_time(main())
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert written
    assert not any(b"a secret" in file.read_bytes() for file in written)


@pytest.mark.parametrize(
    ("now", "requests"), [({"unsaid": 0.0}, 4), ({"unsaid": 90.0}, 2), ({"fresh_for": 9e9}, 2)]
)
def test_what_was_kept_for_ever_is_not_once_the_site_is_believed(
    tmp_path: Path, now: dict[str, float], requests: int
) -> None:
    async def main() -> None:
        wall = Wall()
        async with changing() as site:
            async with keeping(site, tmp_path, wall, batch_size=1) as mediator:
                await rows(mediator, LOOKUP)
            wall.now += 60
            async with keeping(site, tmp_path, wall, **now) as mediator:
                assert await rows(mediator, LOOKUP) == ROWS
            assert len(site.said) == requests

    in_shifted_time(main())


def test_what_may_be_stored_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with changing(headers={"Cache-Control": "private, max-age=60"}) as site:
            async with keeping(site, tmp_path, Wall()) as mediator:
                await rows(mediator, LOOKUP)
            assert look_at(tmp_path, "r").rows == 2

    in_shifted_time(main())
