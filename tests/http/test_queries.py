"""Queries over HTTP: asked, read in every format, watched, steered, asked again, ended."""

from __future__ import annotations

import asyncio
import csv
import io
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fault, Fixed
from fixtures.web import Web
from mediator.catalog.model import Catalog
from mediator.query.model import Query
from mediator.query.parameters import Parameters
from mediator.query.understand import understand
from pipeline.errors import NoSpark
from pipeline.spread import explaining
from tests.http.asking import Client, rows_of
from tests.http.serving import Served, serving

BOOKS = "SELECT isbn, title, year FROM books"
OFFERS = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served) as client:
        yield client


def titles(web: Web) -> Counter[tuple[object, ...]]:
    table = web.tables["books"].select(["isbn", "title", "year"])
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


async def test_a_query_is_made_and_its_results_are_read_as_often_as_wanted(client: Client, web: Web) -> None:
    made = await client.ask(BOOKS)
    assert made.status == 201
    assert made.headers["location"] == made.json["links"]["self"]
    first = await client.call("GET", made.json["links"]["results"])
    again = await client.call("GET", made.json["links"]["results"])
    assert [r for r in first.lines if r["type"] != "progress"] == [
        r for r in again.lines if r["type"] != "progress"
    ]
    found = Counter((r["isbn"], r["title"], r["year"]) for r in rows_of(first.lines))
    assert found == titles(web)
    start, end = first.lines[0], first.lines[-1]
    assert start["columns"] == [
        {"name": "isbn", "type": "VARCHAR"},
        {"name": "title", "type": "VARCHAR"},
        {"name": "year", "type": "INTEGER"},
    ]
    assert (end["type"], end["status"], end["rows"]) == ("end", "complete", 300)


async def test_every_format_has_the_same_rows(client: Client, web: Web) -> None:
    made = await client.ask(BOOKS)
    where = made.json["links"]["results"]
    await client.ended(made.json["id"])
    wanted = titles(web)
    lines = (await client.call("GET", where, accept="application/x-ndjson")).lines
    assert Counter(tuple(r.values()) for r in rows_of(lines)) == wanted
    arrays = (await client.call("GET", f"{where}?shape=arrays")).lines
    assert Counter(map(tuple, rows_of(arrays))) == wanted
    told = (await client.call("GET", where, accept="text/event-stream")).events
    assert Counter(tuple(r.values()) for r in rows_of([e.data for e in told])) == wanted
    text = (await client.call("GET", where, accept="text/csv")).body.decode()
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["isbn", "title", "year"]
    assert Counter((i, t, int(y) if y else None) for i, t, y in rows) == wanted
    arrow = (await client.call("GET", where, accept="application/vnd.apache.arrow.stream")).body
    table = pa.ipc.open_stream(arrow).read_all()
    assert Counter(zip(*(c.to_pylist() for c in table.columns), strict=True)) == wanted
    parquet = (await client.call("GET", f"{where}?format=parquet")).body
    assert pq.read_table(io.BytesIO(parquet)).equals(table)


async def test_an_arrow_stream_ends_with_the_end_record(client: Client) -> None:
    reply = await client.call(
        "POST", "/v1/queries", {"sql": BOOKS}, accept="application/vnd.apache.arrow.stream"
    )
    assert (reply.status, reply.headers["content-type"]) == (200, "application/vnd.apache.arrow.stream")
    *rows, last = pa.ipc.open_stream(reply.body).iter_batches_with_custom_metadata()
    assert all(batch.custom_metadata is None for batch in rows)
    assert last.batch.num_rows == 0
    assert b'"status":"complete"' in last.custom_metadata[b"mediator.end"]


async def test_pages_are_followed_to_the_end(client: Client, web: Web) -> None:
    made = await client.ask(BOOKS)
    following, rows, pages = f"{made.json['links']['results']}?format=json&limit=70", [], 0
    while following:
        page = (await client.call("GET", following)).json
        rows += page["rows"]
        pages += 1
        following = page.get("next")
    assert Counter(tuple(r.values()) for r in rows) == titles(web)
    assert page["end"]["status"] == "complete"
    assert pages >= 5


async def test_sql_alone_is_a_query_too(client: Client) -> None:
    async with client._session.post(
        "/v1/queries",
        data="SELECT 1 AS one",
        headers={"Content-Type": "application/sql", "Accept": "text/csv"},
    ) as response:
        assert await response.text() == "one\n1\n"


async def test_values_are_never_sql(client: Client) -> None:
    said = {"parameters": {"title": "x' OR 'a' = 'a"}}
    records = await client.records("SELECT title FROM books WHERE title = $title", **said)
    assert rows_of(records) == []


@pytest.mark.parametrize(
    ("said", "status", "kind", "words"),
    [
        ({"sql": "SELEC title"}, 400, "unparsable", "begins with SELECT"),
        ({"sql": "SELECT titel FROM books"}, 400, "unknown-column", "did you mean title?"),
        ({"sql": "SELECT * FROM bokos"}, 400, "unknown-relation", "did you mean books?"),
        ({"sql": "SELECT year + title FROM books"}, 400, "type-mismatch", "INTEGER"),
        ({"sql": "DELETE FROM books"}, 400, "unsupported", "only SELECT"),
        ({"sql": "SELECT * FROM reviews"}, 422, "unanswerable", "join it with books"),
        ({"sql": BOOKS, "polcy": "rank"}, 422, "invalid-request", "polcy"),
        ({"sql": BOOKS, "policy": "best"}, 422, "invalid-request", "there is no 'best'"),
        ({"sql": BOOKS, "budget": {"rows": 0}}, 422, "invalid-request", "budget.rows"),
        ({"sql": BOOKS, "pause": ["nobody"]}, 422, "invalid-request", "nobody"),
        ({"sql": BOOKS, "prefer": {"yaer > 3": 2.0}}, 400, "unknown-column", "did you mean year?"),
        ({"sql": BOOKS, "stalled_after": 3}, 422, "invalid-request", "goes with partials"),
        ({}, 422, "invalid-request", "sql"),
        ([], 422, "invalid-request", "object"),
    ],
)
async def test_a_bad_query_is_told_before_any_byte_of_an_answer(
    client: Client, said: object, status: int, kind: str, words: str
) -> None:
    for accept in ("application/json", "application/x-ndjson"):
        reply = await client.call("POST", "/v1/queries", said, accept=accept)
        assert reply.status == status, reply.body
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json["type"].endswith(f"/{kind}")
        assert words in f"{reply.json['detail']} {reply.json.get('hint', '')}"


async def test_a_mistake_has_its_place(client: Client) -> None:
    reply = await client.ask("SELECT title,\n       yaer\nFROM books")
    assert (reply.json["line"], reply.json["column"], reply.json["position"]) == (2, 8, 21)


async def test_what_nobody_offers_is_refused(client: Client) -> None:
    reply = await client.call("POST", "/v1/queries", {"sql": BOOKS}, accept="image/png")
    assert reply.status == 406
    assert "application/x-ndjson" in reply.json["hint"]


async def test_a_budget_of_rows_ends_the_answer_and_says_so(client: Client) -> None:
    records = await client.records(BOOKS, budget={"rows": 7})
    assert len(rows_of(records)) == 7
    assert records[-1]["status"] == "partial"
    assert "budget.rows" in records[-1]["report"]["stopped"]


async def test_an_aggregate_is_the_same_over_http(client: Client, web: Web) -> None:
    records = await client.records("SELECT count(*) AS n, max(year) AS latest FROM books")
    years = web.tables["books"]["year"].to_pylist()
    assert rows_of(records) == [{"n": 300, "latest": max(y for y in years if y is not None)}]


async def test_explain_plans_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes is of the query's time, all of it."""
    planned = list[str]()

    def noted(sql: str, catalog: Catalog, parameters: Parameters = ()) -> Query:
        planned.append(sql)
        return understand(sql, catalog, parameters)

    monkeypatch.setattr("mediator.answering.understand", noted)
    with serving(web.catalog) as served:
        async with Client(served) as client:
            said = (await client.call("POST", "/v1/explain", {"sql": OFFERS})).json
    assert said["stages"]
    assert said["estimate"]["line"]
    assert planned == [OFFERS]


async def test_explain_asks_nothing(web: Web) -> None:
    web.reset()
    with serving(web.catalog) as served:
        async with Client(served) as client:
            said = (await client.call("POST", "/v1/explain", {"sql": OFFERS})).json
            assert said["answerable"]
            (stage, *_) = said["stages"]
            by_alias = {a["alias"]: a["chosen"] for a in stage["aliases"]}
            assert by_alias["o"]["binds"] == [{"field": "isbn", "from": "b.isbn"}]
            assert said["estimate"]["calls"]["high"] > 0
            refused = await client.call("POST", "/v1/explain", {"sql": "SELECT * FROM reviews"})
            assert refused.status == 422
    assert web.requests == 0


async def test_explain_says_how_another_engine_would_run_it(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise NoSpark("there is no Java in /usr/lib/jvm")

    web.reset()
    monkeypatch.setattr(explaining, "find_java", none)
    with serving(web.catalog) as served:
        async with Client(served) as client:
            assert "engine" not in (await client.call("POST", "/v1/explain", {"sql": OFFERS})).json
            found = await client.call("POST", "/v1/explain", {"sql": OFFERS, "engine": "spark"})
            refused = await client.call("POST", "/v1/explain", {"sql": OFFERS, "engine": "spork"})
    there = found.json["engine"]
    assert (there["engine"], there["lines"][0]) == ("spark", "On Spark")
    (block,) = there["blocks"]
    assert [read["relation"] for read in block["reads"]] == ["books", "offers"]
    assert block["main"]["cells"] >= 1
    assert "/usr/lib/jvm" not in found.body.decode(), "the server's own house is not for clients"
    assert refused.status == 422


async def test_what_can_be_asked_is_told(client: Client) -> None:
    relations = {r["name"]: r for r in (await client.call("GET", "/v1/relations")).json["relations"]}
    (by_isbn,) = relations["offers"]["methods"]
    assert (by_isbn["kind"], by_isbn["required"], by_isbn["batch_size"]) == ("index", ["isbn"], 20)
    assert len(by_isbn["mirrors"]) == 2
    assert "/" not in relations["offers"]["origin"]
    one = (await client.call("GET", "/v1/relations/offers")).json
    assert one["fields"] == relations["offers"]["fields"]
    assert (await client.call("GET", "/v1/relations/nothing")).status == 404
    sources = {s["name"] for s in (await client.call("GET", "/v1/sources")).json["sources"]}
    assert {m["source"] for m in by_isbn["mirrors"]} <= sources


async def test_what_is_held_is_told_and_not_asked_again(web: Web) -> None:
    with serving(web.catalog) as served:
        async with Client(served) as client:
            assert (await client.call("GET", "/v1/cache")).json == {"relations": []}
            await client.records(OFFERS)
            held = {h["relation"]: h for h in (await client.call("GET", "/v1/cache")).json["relations"]}
            assert held["books"]["rows"] == 300
            (way,) = held["offers"]["ways"]
            assert (way["bind_fields"], way["lookups"], way["fresh"]) == (["isbn"], 300, 300)
            for max_age, asks in ((None, False), (0, True)):
                end = (await client.records(OFFERS, max_age=max_age))[-1]
                assert end["status"] == "complete"
                assert [bool(r["asked"]) for r in end["report"]["relations"]] == [asks, asks]


SLOW = Behaviour(latency=Fixed(0.3), concurrency=1)


@pytest.fixture
def slow() -> AsyncIterator[tuple[Web, Served]]:
    """Offers that come one after another, each after some time."""
    behaviours = {"offers_north": replace(SLOW), "offers_south": replace(SLOW)}
    with book_trade(300, behaviours=behaviours) as web, serving(web.catalog) as served:
        yield web, served  # type: ignore[misc]


async def test_a_query_that_runs_is_watched_and_cancelled(slow: tuple[Web, Served]) -> None:
    web, served = slow
    async with Client(served) as client:
        made = (await client.ask(OFFERS, goal="first_rows")).json
        where = made["links"]["self"]
        while not (standing := (await client.call("GET", where)).json)["rows"]:
            assert standing["status"] == "running"
        assert standing["report"]["complete"] is None
        live = (await client.call("GET", made["links"]["explain"])).json["live"]
        assert any(s["asked"] for s in live["sources"])
        assert live["blocks"][0]["signatures"]
        ended = (await client.call("DELETE", where)).json
        assert ended["status"] == "cancelled"
        assert ended["report"]["stopped"]
        records = (await client.call("GET", made["links"]["results"])).lines
        assert records[-1]["status"] == "cancelled"
        assert len(rows_of(records)) == ended["rows"]
        assert (await client.call("DELETE", where)).status == 204
        assert (await client.call("GET", where)).status == 404
        assert (await client.call("GET", made["links"]["results"])).status == 404
        while web.endpoints["offers_north"].counters.open or web.endpoints["offers_south"].counters.open:
            await asyncio.sleep(0.005)


async def test_a_query_that_runs_is_steered(slow: tuple[Web, Served]) -> None:
    _, served = slow
    async with Client(served) as client:
        made = (await client.ask(OFFERS)).json
        where = made["links"]["self"]
        bad = await client.call("PATCH", where, {"pause": ["nobody"]})
        assert (bad.status, bad.json["type"].rsplit("/", 1)[1]) == (422, "invalid-request")
        sources = [s["name"] for s in (await client.call("GET", "/v1/sources")).json["sources"]]
        change = {"prefer": {"b.year > 2020": 5.0}, "pause": sources[:1], "boost": {sources[1]: 2.0}}
        steered = (await client.call("PATCH", where, change)).json["steering"]
        assert steered == {"prefer": {"b.year > 2020": 5.0}, "pause": sources[:1], "boost": {sources[1]: 2.0}}
        resumed = (await client.call("PATCH", where, {"resume": sources[:1]})).json["steering"]
        assert resumed["pause"] == []
        await client.call("PATCH", where, {"stop": "enough"})
        ended = await client.ended(made["id"])
        assert ended["status"] == "partial"
        assert "enough" in ended["report"]["stopped"]
        assert (await client.call("PATCH", where, {"stop": "enough"})).status == 409


async def test_a_retry_asks_only_what_failed_and_gives_only_what_that_adds() -> None:
    failing = Behaviour(faults=(Fault("error", probability=0.5),))
    behaviours = {"offers_north": failing, "offers_south": failing}
    with book_trade(200, behaviours=behaviours) as web:
        slack = {n: replace(s, attempts=1) for n, s in web.catalog.sources.items()}
        with serving(replace(web.catalog, sources=slack)) as served:
            async with Client(served) as client:
                made = (await client.ask(OFFERS)).json
                before = await client.ended(made["id"])
                assert before["status"] == "partial"
                failed = sum(len(f["bindings"]) for r in before["report"]["relations"] for f in r["failures"])
                assert failed
                notes = [
                    r
                    for r in (await client.call("GET", made["links"]["results"])).lines
                    if r["type"] == "note"
                ]
                assert all(n["relation"] == "offers" for n in notes)
                assert notes
                web.behave("offers_north", Behaviour())
                web.behave("offers_south", Behaviour())
                web.endpoints["books"].reset()
                reply = await client.call("POST", made["links"]["retry"], accept="application/x-ndjson")
                assert reply.status == 200, reply.body
                after = reply.lines
                assert after[-1]["status"] == "complete"
                asked = {r["relation"]: r["asked"] for r in after[-1]["report"]["relations"]}
                assert asked["offers"] == failed
                assert web.endpoints["books"].counters.requests == 0
                first = rows_of((await client.call("GET", made["links"]["results"])).lines)
                again = await client.records(OFFERS)
                together = Counter((r["title"], r["price"]) for r in [*first, *rows_of(after)])
                assert together == Counter((r["title"], r["price"]) for r in rows_of(again))
                # Everything was given by the two of them.
                third = await client.call(
                    "POST", f"{reply.headers['location']}/retry", accept="application/x-ndjson"
                )
                assert (rows_of(third.lines), third.lines[-1]["status"]) == ([], "complete")


async def test_history_and_saved_queries(served: Served, client: Client) -> None:
    saved = await client.call("PUT", "/v1/saved/recent", {"sql": "SELECT title FROM books WHERE year > $y",
                                                           "parameters": {"y": "2020"}})  # fmt: skip
    assert saved.status == 200, saved.body
    assert [s["name"] for s in (await client.call("GET", "/v1/saved")).json["saved"]] == ["recent"]
    made = await client.call("POST", "/v1/saved/recent/queries", {"parameters": {"y": "2100"}})
    assert made.status == 201, made.body
    assert (await client.ended(made.json["id"]))["rows"] == 0
    latest = (await client.ask(BOOKS)).json
    listed = (await client.call("GET", "/v1/queries?limit=1")).json
    assert [q["id"] for q in listed["queries"]] == [latest["id"]]
    assert listed["next"]
    before = (await client.call("GET", listed["next"])).json
    assert [q["id"] for q in before["queries"]] == [made.json["id"]]
    bad = await client.call("PUT", "/v1/saved/bad", {"sql": "SELECT * FROM reviews"})
    assert bad.status == 422
    assert (await client.call("DELETE", "/v1/saved/recent")).status == 204
    assert (await client.call("POST", "/v1/saved/recent/queries")).status == 404


async def test_health_and_metrics(client: Client) -> None:
    await client.records("SELECT title FROM books LIMIT 1")
    assert (await client.call("GET", "/healthz")).status == 200
    assert (await client.call("GET", "/readyz")).status == 200
    text = (await client.call("GET", "/metrics")).body.decode()
    assert "# TYPE" in text
