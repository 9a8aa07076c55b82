"""Queries that the server runs on Spark."""

from __future__ import annotations

import pytest

from api.http.limits import Limits
from fixtures.web import Web
from pipeline.errors import NoSpark
from pipeline.spread import engine
from tests.http.asking import Client, rows_of
from tests.http.serving import Served, serving

SQL = "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id WHERE b.year > 2015"
pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.timeout(400)]


async def test_the_answers_are_the_same(served: Served) -> None:
    async with Client(served) as client:
        there = await client.records(SQL, engine="spark")
        here = await client.records(SQL)
    assert sorted(map(repr, rows_of(there))) == sorted(map(repr, rows_of(here)))
    assert there[-1]["report"]["complete"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"engine": "spork"}, 422),
        ({"engine": "spark", "partials": True}, 422),
        ({"engine": "spark", "prefer": {"b.year > 2000": 2.0}}, 422),
    ],
)
async def test_what_cannot_be_asked(served: Served, said: dict[str, object], status: int) -> None:
    async with Client(served) as client:
        assert (await client.ask(SQL, **said)).status == status


async def test_no_more_than_the_server_allows(web: Web) -> None:
    with serving(web.catalog, limits=Limits(spark=0)) as served:
        async with Client(served) as client:
            reply = await client.ask(SQL, engine="auto")
            assert reply.status == 429
            assert reply.json["hint"] == "at most 0 at once (--max-spark); leave out engine"
            assert (await client.ask(SQL, engine="local")).status == 201


async def test_a_server_without_spark_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoSpark("Spark needs Java 17 or newer, and there is none here. Install one: ...")

    monkeypatch.setattr(engine, "check_spark", none)
    async with Client(served) as client:
        reply = await client.ask(SQL, engine="spark")
        assert reply.status == 422
        assert reply.json["type"].endswith("/no-spark")
        assert "Java" not in str(reply.json)
