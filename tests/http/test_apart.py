"""A server whose statements are run in processes of their own: many queries at once that share what is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fixtures import book_trade
from fixtures.web import Web
from mediator.query import duck
from mediator.query.understand import understand
from mediator.statements import apart
from tests.http.asking import Client, rows_of
from tests.http.serving import Served, serving


@pytest.fixture
def house() -> Iterator[tuple[Web, Served]]:
    with duck.apart(1 << 30), book_trade(300) as web, serving(web.catalog) as served:
        yield web, served


async def test_queries_that_compute_share_what_is_stored(house: tuple[Web, Served]) -> None:
    """Each steps aside in the middle of its turns, while the others build and probe."""
    _, served = house
    async with Client(served) as client:
        plain = "SELECT b.isbn, b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
        everything = rows_of(await client.records(plain, max_age=0))
        assert len(everything) > 300

        async def asked(n: int) -> None:
            digit = str(n % 10)
            thirds = f"length(concat(b.title, '{digit}')) % 3 = {n % 3}"
            sql = f"{plain} WHERE contains(reverse(b.isbn), '{digit}') AND {thirds}"
            # Some must ask anew while others are served what is stored.
            records = await client.records(sql, max_age=0 if n % 4 == 0 else None)
            assert records[-1]["status"] == "complete", records[-1]
            wanted = [r for r in everything if digit in r["isbn"] and (len(r["title"]) + 1) % 3 == n % 3]
            assert _counted(rows_of(records)) == _counted(wanted)

        async with asyncio.TaskGroup() as group:
            for n in range(40):
                group.create_task(asked(n))


def _counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


async def test_what_computes_constants_is_planned_within_the_time_of_the_query(
    house: tuple[Web, Served],
) -> None:
    _, served = house
    hard = "SELECT levenshtein(repeat('ab', 90000), repeat('ba', 90001)) AS n FROM books"
    async with Client(served) as client:
        began = asyncio.get_running_loop().time()
        for path, said in (("queries", {}), ("explain", {})):
            reply = await client.call(
                "POST", f"/v1/{path}", {"sql": hard, "budget": {"seconds": 0.5}, **said}
            )
            assert (reply.status, reply.json["type"].rpartition("/")[2]) == (422, "too-hard"), reply.body
            assert "0.5 s" in reply.json["detail"]
        made = (await client.ask("SELECT title FROM books, range(100000000)", budget={"seconds": 2.0})).json
        bad = {"prefer": {"title = repeat(title, levenshtein(repeat('ab', 90000), repeat('ba', 90001)))": 2}}
        reply = await client.call("PATCH", f"/v1/queries/{made['id']}", bad)
        assert reply.status in (409, 422), reply.body
        assert asyncio.get_running_loop().time() - began < 30.0


async def test_light_statements_need_no_other_process(
    house: tuple[Web, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, served = house

    def refused(*_: object) -> None:
        raise AssertionError("no other process was to be asked")

    monkeypatch.setattr(apart.Apart, "_done", refused)
    async with Client(served) as client:
        records = await client.records(
            "SELECT title, year FROM books WHERE year >= 1990 AND title <> 'Dune' LIMIT 3"
        )
        assert len(rows_of(records)) == 3


def test_a_statement_without_brackets_is_light() -> None:
    with book_trade(10) as web, duck.lightly():
        assert not duck.computes("SELECT title FROM books WHERE year > 1 AND title LIKE 'D%'")
        assert duck.computes("SELECT length(title) FROM books")
        assert duck.computes("SELECT title[1] FROM books")
        assert understand("SELECT length(title) AS n FROM books", web.catalog).schema.names == ["n"]
