"""The server does what its OpenAPI document says, whatever is sent to it: thousands of requests that Schemathesis makes
of the document, with statements, names and ids put in that mean something.

`MEDIATOR_SCHEMA_EXAMPLES` is how many of each operation are made; the rest of the file is what they have found.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.http.app import application
from api.http.limits import Limits
from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fixed
from tests.http.asking import Client
from tests.http.serving import Served, serving

EXAMPLES = int(os.environ.get("MEDIATOR_SCHEMA_EXAMPLES", "60"))
SLOW = "SELECT name, born FROM authors WHERE id IN (1001, 1002)"  # it runs as long as the server lets it
FAILS = "SELECT CAST(title AS INTEGER) FROM books"
STATEMENTS = [
    "SELECT isbn, title, year FROM books",
    "SELECT * FROM books WHERE year > 1990 ORDER BY title LIMIT 5",
    "SELECT publisher, count(*) AS n, avg(year) FROM books GROUP BY publisher",
    "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn WHERE b.year > 2015",
    "SELECT title, [year, NULL] AS l, {'a': title} AS s, year / 0 AS q FROM books LIMIT 3",
    "SELECT title FROM books WHERE year > $year",
    "SELECT title FROM books WHERE year > ? AND title <> ?",
    FAILS,
    "SELECT * FROM prizes UNION ALL SELECT title, year, isbn FROM books",
    "SELECT * FROM reviews",
    "SELECT nothing FROM books",
    "SELEC title FROM books",
    SLOW,
]
ASKED = {("POST", "/v1/queries"), ("PUT", "/v1/saved/{name}"), ("POST", "/v1/explain")}
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "parameters": st.sampled_from([{"year": 2000}, [2000, "x"], {"year": None}, {}, []]),
    "goal": st.sampled_from(["all_rows", "first_rows", "fewest_calls"]),
    "policy": st.sampled_from(["foresight", "lottery", "nobody"]),
    "prefer": st.sampled_from([{"year > 2000": 2.0}, {"b.year > 2000": 1}, {"price <": 1}]),
    "pause": st.sampled_from([["catalogue"], ["prices_north", "readers"], ["nobody"]]),
    "boost": st.sampled_from([{"prices_south": 3.0}, {"nobody": 2}]),
    "budget": st.fixed_dictionaries(
        {},
        optional={
            "calls": st.integers(0, 10**6),
            "rows": st.integers(1, 10**6),
            "bytes": st.integers(0, 10**9),
            "seconds": st.floats(0.01, 1e6),
        },
    ),
    "max_age": st.floats(0, 1e6),
    "partials": st.booleans(),
    "on_disconnect": st.sampled_from(["cancel", "keep"]),
}
STEERING: dict[str, st.SearchStrategy[Any]] = {
    "prefer": st.sampled_from([{"born > 1950": 2.0}, {}, {"nothing = 1": 1.0}, {"SELECT": 1.0}]),
    "pause": st.sampled_from([["who_is_who"], ["nobody"], []]),
    "resume": st.sampled_from([["who_is_who"], ["nobody"]]),
    "boost": st.sampled_from([{"who_is_who": 2.0}, {"nobody": 1.0}]),
    "stop": st.just("enough"),
}
ACCEPTED = [
    "*/*", "application/json", "application/x-ndjson", "text/event-stream", "text/csv", "image/png",
    "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet", "text/csv;q=0.5, application/json",
]  # fmt: skip
CONFORMS = [status_code_conformance, content_type_conformance, response_schema_conformance]
FORMATS = ["ndjson", "sse", "arrow", "csv", "parquet", "json"]
PLACES = ["0", "0.5", "1", "2", "1.0", "99", "-1", "x", ""]

DOCUMENT: dict[str, Any] = application(lambda: None).openapi()  # type: ignore[arg-type, return-value]
OPERATIONS = [(m.upper(), path) for path, methods in DOCUMENT["paths"].items() for m in methods]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with book_trade(40) as web:
        web.behave("authors", Behaviour(latency=Fixed(60.0)))
        with serving(web.catalog, limits=Limits(seconds=1.0, queries=100_000)) as found:
            yield found


@pytest.fixture(scope="module")
def schema(served: Served) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served) as client:
        yield client


def asked() -> st.SearchStrategy[dict[str, Any]]:
    """A query that may well be run."""
    return st.fixed_dictionaries({"sql": st.sampled_from(STATEMENTS)}, optional=OPTIONS)


def save_one(served: Served) -> None:
    """A query under a name that `likely` puts in."""
    body = json.dumps({"sql": STATEMENTS[0]}).encode()
    said = Request(f"{served.url}/v1/saved/one", body, {"Content-Type": "application/json"}, method="PUT")
    with urlopen(said):
        pass


class Queries:
    """Some that are there, to be named: one is complete, one has failed, one runs."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._ids: dict[str, str] = {}

    def one(self, statement: str) -> str:
        """Its id; it is begun anew where it was deleted, or runs no more though it should."""
        run = self._served.desk.runs.get(self._ids.get(statement, ""))
        if run is None or (statement == SLOW and run.over.is_set()):
            body = json.dumps({"sql": statement, "on_disconnect": "keep"}).encode()
            asked = Request(f"{self._served.url}/v1/queries", body, {"Content-Type": "application/json"})
            with urlopen(asked) as response:
                self._ids[statement] = json.load(response)["id"]
        return self._ids[statement]


def likely(draw: Any, case: Case, queries: Queries) -> None:
    """Puts in what means something, here and there."""
    where = case.operation.method.upper(), case.operation.path
    if "id" in case.path_parameters and draw(st.integers(0, 9)):
        case.path_parameters["id"] = queries.one(draw(st.sampled_from([STATEMENTS[0], FAILS, SLOW])))
    if "name" in case.path_parameters and draw(st.integers(0, 4)):
        case.path_parameters["name"] = draw(
            st.sampled_from(["one", "books", "catalogue", "a.b-c_d", "nobody"])
        )
    if where in ASKED and draw(st.integers(0, 4)):
        case.body, case.media_type = draw(asked()), "application/json"
    elif where == ("POST", "/v1/saved/{name}/queries") and draw(st.integers(0, 2)):
        case.body, case.media_type = draw(st.fixed_dictionaries({}, optional=OPTIONS)), "application/json"
    elif where == ("PATCH", "/v1/queries/{id}") and draw(st.integers(0, 2)):
        case.body, case.media_type = draw(st.fixed_dictionaries({}, optional=STEERING)), "application/json"
    if where == ("GET", "/v1/queries/{id}/results"):
        query = {
            "format": st.sampled_from(FORMATS),
            "after": st.sampled_from(PLACES),
            "limit": st.integers(1, 50),
        }
        case.query.update(draw(st.fixed_dictionaries({"wait": st.floats(0, 0.2)}, optional=query)))
        if draw(st.booleans()):
            case.headers["Last-Event-ID"] = draw(st.sampled_from(PLACES[:-1]))
    if draw(st.booleans()):
        case.headers["Accept"] = draw(st.sampled_from(ACCEPTED))


def check(case: Case, response: Response) -> None:
    """What is promised of every response."""
    said = f"{case.as_curl_command()}\n{response.status_code} {response.content[:500]!r}"
    kind = response.headers.get("content-type", [""])[0].partition(";")[0]
    assert response.status_code < 500, said
    if response.status_code >= 400:
        assert kind == "application/problem+json", said
        told = response.json()
        assert told["status"] == response.status_code, said
        assert told["type"].startswith("https://mediator.invalid/problems/"), said
        assert told["title"], said
        assert told["detail"], said
    elif kind == "application/json":
        json.loads(response.content)
        case.validate_response(response, checks=CONFORMS)
    if kind == "application/x-ndjson":
        records = [json.loads(line) for line in response.content.splitlines()]
        assert (records[0]["type"], records[-1]["type"]) == ("start", "end"), said
        assert "problems/internal" not in json.dumps(records[-1]), said


def may_break_off(case: Case) -> bool:
    """Whether rows alone are asked for."""
    wanted = str(case.query.get("format") or case.headers.get("Accept"))
    return any(kind in wanted for kind in ("csv", "arrow", "parquet"))


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_does_what_the_document_says(
    served: Served, schema: BaseSchema, method: str, path: str
) -> None:
    operation: APIOperation = schema[path][method]
    queries = Queries(served)
    seen: Counter[int] = Counter()

    def strategy(mode: GenerationMode) -> st.SearchStrategy[Case]:
        return operation.as_strategy(generation_mode=mode)

    cases = strategy(GenerationMode.POSITIVE)
    if operation.body or operation.query:
        cases |= strategy(GenerationMode.NEGATIVE)

    @settings(
        max_examples=EXAMPLES, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases, st.data())
    def conforms(case: Case, data: st.DataObject) -> None:
        likely(data.draw, case, queries)
        if path == "/v1/saved/{name}/queries":
            save_one(served)
        try:
            response = case.call(base_url=served.url, timeout=60)
        except OSError as error:
            if "prematurely" in str(error) and may_break_off(case):
                return  # as is right for what has no place for an error
            raise
        seen[response.status_code] += 1
        check(case, response)

    conforms()
    print(f"{method} {path}: {dict(sorted(seen.items()))}")


# What the document says


def test_the_document_has_all_formats_of_results() -> None:
    ways = [
        DOCUMENT["paths"]["/v1/queries/{id}/results"]["get"]["responses"]["200"],
        DOCUMENT["paths"]["/v1/queries"]["post"]["responses"].get("200", {}),
    ]
    streams = {"application/x-ndjson", "text/event-stream", "application/vnd.apache.arrow.stream", "text/csv"}
    for way in ways:
        assert streams <= set(way.get("content", {}))


def test_the_document_has_what_is_answered() -> None:
    paths = DOCUMENT["paths"]
    assert "204" in paths["/v1/queries/{id}"]["delete"]["responses"]
    assert "204" in paths["/v1/saved/{name}"]["delete"]["responses"]
    assert "text/plain" in paths["/metrics"]["get"]["responses"]["200"]["content"]
    assert "text/plain" in paths["/v1/queries"]["post"]["requestBody"]["content"]


# Values that are hard to write


@pytest.mark.parametrize(
    "number", ["1e30", "10" + "0" * 29, str(2**63), str(-(2**63) - 1), "NaN", "-Infinity", "1e999"]
)
async def test_numbers_that_json_or_its_readers_do_not_have(
    client: Client, served: Served, number: str
) -> None:
    body = f'{{"sql": "SELECT title FROM books WHERE year < $y", "parameters": {{"y": {number}}}}}'
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(served.url) as session:
        made = await session.post("/v1/queries", data=body, headers=headers)
        told = await made.json(content_type=None)
    if number == "1e30":
        assert made.status == 201, told
        assert told["request"]["parameters"] == {"y": 1e30}
    else:
        assert made.status in (400, 422), told
    assert (await client.call("GET", "/v1/queries")).status == 200


UNWRITTEN = [
    "DATE 'infinity'",
    "DATE '20000-01-01'",
    "TIMESTAMP '0044-03-15 (BC) 00:00:00'",
    "TIMESTAMPTZ '-infinity'",
    "[DATE 'infinity']",
    "{'at': TIMESTAMP 'infinity'}",
    "INTERVAL 1 MONTH",
    "union_value(a := 1)",
]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("value", UNWRITTEN)
async def test_values_that_python_does_not_have(client: Client, value: str, format_: str) -> None:
    made = await client.ask(f"SELECT {value} AS v FROM books LIMIT 2")
    if made.status == 400:
        return  # to say so is all right
    assert (await ended(client, made.json["id"]))["status"] == "complete"
    reply = await client.call("GET", f"{made.json['links']['results']}?format={format_}")
    assert reply.status < 500


@pytest.mark.parametrize("depth", [30, 150])
async def test_types_that_lie_deep(client: Client, depth: int) -> None:
    deep = f"{'STRUCT(a ' * depth}INT{')' * depth}"
    assert (await client.ask(f"SELECT CAST(NULL AS {deep}) AS v FROM books")).status < 500


@pytest.mark.parametrize(
    ("deep", "status"),
    [(f"title{'[1]' * 600} = 'a'", 400), (f"title = '{'a' * 2_000}'", 422), ("(" * 900, 400)],
)
async def test_preferences_that_lie_deep(client: Client, deep: str, status: int) -> None:
    assert (await client.ask("SELECT title FROM books", prefer={deep: 1})).status == status


@pytest.mark.parametrize("format_", ["ndjson", "sse", "csv", "arrow", "json"])
async def test_whoever_comes_back_after_the_end_is_not_kept_waiting(client: Client, format_: str) -> None:
    made = await client.ask("SELECT title FROM books")
    results = made.json["links"]["results"]
    last = (await client.call("GET", results)).lines[-1]["id"]
    async with asyncio.timeout(30.0):
        reply = await client.call("GET", f"{results}?format={format_}&after={last}&wait=0.1")
    if format_ == "sse":
        assert (reply.status, reply.body) == (204, b"")
        return
    assert reply.status == 200
    if format_ == "ndjson":
        assert [record["type"] for record in reply.lines] == ["start", "end"]
    elif format_ == "json":
        assert "next" not in reply.json
        assert reply.json["rows"] == []
        assert reply.json["end"]["status"] == "complete"


@pytest.mark.parametrize("place", ["-1", "x", "1.", ".5", "1.2.3", "1e3", "9" * 16, "٣"])
async def test_what_never_was_a_place_is_refused(client: Client, place: str) -> None:
    made = await client.ask("SELECT title FROM books")
    results = made.json["links"]["results"]
    for format_ in FORMATS:
        reply = await client.call("GET", f"{results}?format={format_}&after={place}")
        assert reply.status == 400, reply.body
    if place.isascii():
        reply = await client.call("GET", results, headers={"Last-Event-ID": place})
        assert reply.status == 400, reply.body


async def ended(client: Client, id_: str) -> dict[str, Any]:
    """The status of a query once it has ended, without a look at its rows."""
    while True:
        status = (await client.call("GET", f"/v1/queries/{id_}")).json
        if status["status"] != "running":
            return dict(status)
        await asyncio.sleep(0.02)
