"""What the server allows: each limit is told when it is met, with what it is and the way out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from api.http import desk
from api.http.limits import Limits
from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fixed
from fixtures.web import Web
from tests.http.asking import Client, Reply, rows_of
from tests.http.serving import serving

BOOKS = "SELECT isbn, title FROM books"
OFFERS = "SELECT b.isbn, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
MANY = "SELECT a.title AS one, b.title AS other FROM books a, books b"  # 3 MB
PATIENCE = 60.0
OTHERS = 4  # replies while a long statement is looked at; a server that does nothing else meanwhile gives one


@pytest.fixture(scope="module")
def sites() -> Iterator[Web]:
    with book_trade(300) as web:
        yield web


@asynccontextmanager
async def asked(web: Web, **limits: Any) -> AsyncIterator[Client]:
    """A client of a server with these limits."""
    with serving(web.catalog, limits=Limits(**limits)) as served:
        async with Client(served) as client:
            yield client


def problem(reply: Reply, status: int, kind: str) -> dict[str, Any]:
    """The document of a refusal, which says what to do."""
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = reply.json
    assert (found["status"], found["type"].rpartition("/")[2]) == (status, kind)
    assert found["hint"]
    return found


def end_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    assert records[-1]["type"] == "end"
    return records[-1]


async def running(client: Client) -> int:
    listed = await client.call("GET", "/v1/queries?status=running")
    return len(listed.json["queries"])


# Requests


async def test_a_body_of_more_bytes_is_not_read(sites: Web) -> None:
    async with asked(sites, body=2_000) as client:
        reply = await client.ask(BOOKS + " " * 2_000)
        assert "2,000 bytes" in problem(reply, 413, "too-large")["hint"]
        assert (await client.ask(BOOKS)).status == 201


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/queries"), ("PUT", "/v1/saved/long"), ("POST", "/v1/explain")]
)
async def test_a_statement_of_more_characters_is_not_parsed(sites: Web, method: str, path: str) -> None:
    async with asked(sites, statement=100) as client:
        reply = await client.call(method, path, {"sql": BOOKS + " " * 100})
        assert "100" in problem(reply, 413, "too-large")["hint"]
        assert (await client.call(method, path, {"sql": BOOKS})).status < 300


async def test_others_are_answered_while_a_statement_is_explained(sites: Web) -> None:
    async with asked(sites) as client, asyncio.TaskGroup() as group:
        long = f"SELECT title FROM books WHERE year IN ({', '.join(['1'] * 10_000)})"
        explained = group.create_task(client.call("POST", "/v1/explain", {"sql": long}))
        assert await healthy(client, explained) > OTHERS


LONG = {
    "a list": f"SELECT title FROM books WHERE year IN ({', '.join(['1'] * 10_000)})",
    "conditions": f"SELECT title FROM books WHERE {' OR '.join(f'year = {n}' for n in range(1_500))}",
    "columns": f"SELECT {', '.join(['title'] * 3_500)} FROM books",
}


@pytest.mark.parametrize("name", LONG)
async def test_others_are_answered_while_a_statement_is_planned(sites: Web, name: str) -> None:
    async with asked(sites) as client, asyncio.TaskGroup() as group:
        planned = group.create_task(client.ask(LONG[name]))
        others = await healthy(client, planned)
        assert planned.result().status < 500
        assert others > OTHERS


@pytest.mark.parametrize("deep", [f"title{'[1]' * 49}", f"{'(' * 199}year{')' * 199}"])
async def test_as_much_within_one_another_as_is_parsed(sites: Web, deep: str) -> None:
    async with asked(sites) as client:
        assert (await client.ask(f"SELECT {deep} FROM books")).status < 500


@pytest.mark.parametrize("deep", ["[1]" * 1_200, "[1][2]" * 40])
async def test_more_subscripts_than_anybody_writes_are_not_parsed(sites: Web, deep: str) -> None:
    async with asked(sites) as client:
        reply = await client.ask(f"SELECT title{deep} FROM books")
        assert (reply.status, reply.json["type"].rpartition("/")[2]) == (400, "unparsable")


async def test_more_brackets_than_anybody_writes_are_not_parsed(sites: Web) -> None:
    async with asked(sites) as client:
        reply = await client.ask(f"SELECT {'(' * 5_000}year{')' * 5_000} FROM books")
        assert (reply.status, reply.json["type"].rpartition("/")[2]) == (400, "unparsable")


async def healthy(client: Client, during: asyncio.Task[Any]) -> int:
    """How often `/healthz` was answered."""
    times = 0
    while not during.done():
        assert (await client.call("GET", "/healthz")).status == 200
        times += 1
    return times


# Queries


async def test_so_many_queries_at_once_and_there_is_room_when_one_has_ended(sites: Web) -> None:
    with book_trade(30) as web:
        web.behave("books", Behaviour(latency=Fixed(20.0)))
        async with asked(web, queries=2) as client:
            ids = [(await client.ask(BOOKS)).json["id"] for _ in range(2)]
            reply = await client.ask(BOOKS)
            told = problem(reply, 429, "too-many-queries")
            assert "2" in told["hint"]
            assert int(reply.headers["retry-after"]) >= 1
            await client.call("DELETE", f"/v1/queries/{ids[0]}")
            assert (await client.ask(BOOKS)).status == 201


async def test_a_budget_of_rows_is_met_to_the_row(sites: Web) -> None:
    async with asked(sites) as client:
        records = await client.records(BOOKS, budget={"rows": 7})
        assert len(rows_of(records)) == 7
        assert end_of(records)["status"] == "partial"
        assert "budget.rows" in end_of(records)["report"]["stopped"]


async def test_a_budget_of_calls_is_kept(sites: Web) -> None:
    with book_trade(30) as web:
        async with asked(web) as client:
            records = await client.records(OFFERS, budget={"calls": 2})
            assert web.requests <= 2
            assert end_of(records)["status"] == "partial"


async def test_a_budget_of_bytes_is_kept(sites: Web) -> None:
    with book_trade(300) as web:
        async with asked(web) as client:
            records = await client.records(OFFERS, budget={"bytes": 1_000})
            assert end_of(records)["status"] == "partial"
            assert web.requests < 15


async def test_a_budget_of_seconds_is_kept_and_the_servers_own_is_never_exceeded() -> None:
    with book_trade(30) as web:
        web.behave("offers_north", Behaviour(latency=Fixed(20.0)))
        web.behave("offers_south", Behaviour(latency=Fixed(20.0)))
        async with asked(web, seconds=1.0) as client:
            for said in ({}, {"budget": {"seconds": 0.5}}, {"budget": {"seconds": 1e6}}):
                records = await client.records(OFFERS, **said)
                assert end_of(records)["status"] == "partial"
                assert "seconds" in end_of(records)["report"]["stopped"]


LARGEST = {"calls": 2**53, "rows": 2**53, "bytes": 2**53, "seconds": 1e9}


@pytest.mark.parametrize("name", LARGEST)
async def test_a_budget_larger_than_anything_is_none(sites: Web, name: str) -> None:
    async with asked(sites) as client:
        records = await client.records(BOOKS, budget={name: LARGEST[name]})
        assert end_of(records)["status"] == "complete"
        for more in (LARGEST[name] * 2, 2**63, 2**64, 10**30):
            reply = await client.ask(BOOKS, budget={name: more})
            assert (reply.status, reply.json["errors"][0]["field"]) == (422, f"budget.{name}")


async def test_a_query_that_nobody_reads_ends_in_its_time(sites: Web) -> None:
    async with asked(sites, seconds=1.0) as client:
        made = await client.ask(MANY, on_disconnect="cancel")
        assert made.status == 201
        deadline = time.monotonic() + PATIENCE
        while await running(client) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        assert not await running(client)


async def test_what_is_found_at_once_and_not_told_in_time_is_left_out_and_said(sites: Web) -> None:
    """All of the rows are there long before the limit, and nobody reads them until it has passed."""
    async with asked(sites) as client:
        numbered = f"SELECT row_number() OVER () AS n, one, other FROM ({MANY})"
        for cancelled in (False, True):
            made = await client.ask(
                numbered, on_disconnect="cancel", budget={"seconds": 30.0 if cancelled else 4.0}
            )
            path = f"/v1/queries/{made.json['id']}"
            while not (await client.call("GET", path)).json["rows"]:
                await asyncio.sleep(0.05)
            if cancelled:
                await client.call("DELETE", path)
            while (await client.call("GET", path)).json["status"] == "running":
                await asyncio.sleep(0.05)
            records = (await client.call("GET", f"{path}/results", accept="application/x-ndjson")).lines
            end = end_of(records)
            assert end["status"] == ("cancelled" if cancelled else "partial")
            assert 0 < len(rows_of(records)) == end["rows"]
            if not cancelled:
                assert end["rows"] < 300 * 300
                assert "may take 4 s, and what was found by then was not all told" in end["report"]["stopped"]


# Results


async def test_results_that_are_too_large_end_with_what_was_found(sites: Web) -> None:
    async with asked(sites, result_bytes=1_000_000) as client:
        made = await client.ask(MANY)
        status = await client.ended(made.json["id"])
        assert status["status"] == "partial"
        assert "1,000,000 bytes" in status["report"]["stopped"]
        assert status["rows"] > 0
        assert len(rows_of(await client.records(MANY))) == 300 * 300  # whoever reads as they come has all


async def test_results_are_kept_for_a_while_and_then_gone(
    sites: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_SWEEP", 0.05)
    async with asked(sites, kept_seconds=0.3) as client:
        made = await client.ask(BOOKS)
        assert (await client.ended(made.json["id"]))["results"] == "kept"
        where = made.json["links"]
        await gone(client, where["self"])
        for method, path in (("GET", "results"), ("GET", "explain"), ("POST", "retry")):
            problem(await client.call(method, where[path]), 410, "gone")
        status = (await client.call("GET", where["self"])).json
        assert (status["status"], status["rows"]) == ("complete", 300)


async def test_the_oldest_results_go_first_where_there_is_no_room(
    sites: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_SWEEP", 0.05)
    async with asked(sites, kept_bytes=30_000) as client:
        where = []
        for _ in range(4):
            made = await client.ask(BOOKS)
            await client.ended(made.json["id"])
            where.append(made.json["links"]["self"])
        await gone(client, where[0])
        assert (await client.call("GET", where[-1])).json["results"] == "kept"


async def gone(client: Client, where: str) -> None:
    """When the results of a query are not kept any more."""
    deadline = time.monotonic() + PATIENCE
    while (await client.call("GET", where)).json["results"] == "kept":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("format_", ["ndjson", "sse", "arrow", "csv", "json", "parquet"])
async def test_a_place_within_an_entry_that_has_fewer_rows(sites: Web, format_: str) -> None:
    async with asked(sites) as client:
        made = await client.ask(BOOKS)
        await client.ended(made.json["id"])
        results = made.json["links"]["results"]
        assert (await client.call("GET", f"{results}?format={format_}&after=0.999999999")).status < 500
