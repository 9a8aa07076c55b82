"""Two keys at one server: what belongs to one is not there for the other, and each has its own scopes and quotas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.http.keys import Key, Keyring, Quota, add, remove
from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fault, Fixed
from fixtures.web import Web
from tests.http.asking import Client, Reply
from tests.http.serving import Served, serving

BOOKS = "SELECT isbn, title FROM books"
OFFERS = "SELECT b.isbn, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
EVERYTHING = frozenset({"query", "read", "metrics"})
OPEN = {"/healthz", "/readyz"}
PATIENCE = 60.0
# What a route wants; a new one is to be put here.
SCOPES: dict[tuple[str, str], str | None] = {
    ("POST", "/v1/queries"): "query",
    ("GET", "/v1/queries"): "query",
    ("GET", "/v1/queries/{id}"): "query",
    ("PATCH", "/v1/queries/{id}"): "query",
    ("DELETE", "/v1/queries/{id}"): "query",
    ("GET", "/v1/queries/{id}/results"): "query",
    ("GET", "/v1/queries/{id}/explain"): "query",
    ("POST", "/v1/queries/{id}/retry"): "query",
    ("GET", "/v1/saved"): "query",
    ("GET", "/v1/saved/{name}"): "query",
    ("PUT", "/v1/saved/{name}"): "query",
    ("DELETE", "/v1/saved/{name}"): "query",
    ("POST", "/v1/saved/{name}/queries"): "query",
    ("POST", "/v1/explain"): "query",
    ("GET", "/v1/relations"): "read",
    ("GET", "/v1/relations/{name}"): "read",
    ("GET", "/v1/sources"): "read",
    ("GET", "/v1/sources/{name}"): "read",
    ("GET", "/v1/cache"): "read",
    ("GET", "/metrics"): "metrics",
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
}
BODIES: dict[tuple[str, str], object] = {
    ("POST", "/v1/queries"): {"sql": BOOKS},
    ("PUT", "/v1/saved/{name}"): {"sql": BOOKS},
    ("POST", "/v1/explain"): {"sql": BOOKS},
    ("PATCH", "/v1/queries/{id}"): {"stop": "enough"},
}


@dataclass
class House:
    served: Served
    web: Web
    file: Path
    tokens: dict[str, str]

    def client(self, name: str) -> Client:
        return Client(self.served, self.tokens[name])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    file = tmp_path_factory.mktemp("keys") / "keys.yaml"
    tokens = {name: add(file, name, EVERYTHING) for name in ("alice", "bob")}
    tokens |= {scope: add(file, scope, frozenset({scope})) for scope in ("query", "read", "metrics")}  # type: ignore[arg-type]
    with book_trade(60) as web, serving(web.catalog, keyring=Keyring.load(file)) as served:
        yield House(served, web, file, tokens)


@pytest.fixture
async def alice(house: House) -> AsyncIterator[Client]:
    async with house.client("alice") as client:
        yield client


@pytest.fixture
async def bob(house: House) -> AsyncIterator[Client]:
    async with house.client("bob") as client:
        yield client


def is_problem(reply: Reply, status: int, kind: str) -> None:
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["type"].endswith(f"/{kind}")


async def made(client: Client, sql: str = BOOKS, **said: Any) -> str:
    reply = await client.ask(sql, **said)
    assert reply.status == 201, reply.body
    return str(reply.json["id"])


async def until(said: str, true: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await true():
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.02)


# What belongs to one


OF_A_QUERY = [
    ("GET", "", None),
    ("GET", "/results", None),
    ("GET", "/results?format=json", None),
    ("GET", "/results?format=parquet", None),
    ("GET", "/results?format=sse&after=1", None),
    ("GET", "/explain", None),
    ("POST", "/retry", None),
    ("PATCH", "", {"stop": "enough"}),
    ("PATCH", "", {"pause": ["catalogue"]}),
    ("DELETE", "", None),
]


@pytest.mark.parametrize(("method", "path", "said"), OF_A_QUERY)
async def test_a_query_that_has_ended_is_not_there_for_another(
    alice: Client, bob: Client, method: str, path: str, said: object
) -> None:
    id_ = await made(alice)
    await alice.ended(id_)
    reply = await bob.call(method, f"/v1/queries/{id_}{path}", said)
    never = await bob.call(method, f"/v1/queries/q_never{path}", said)
    is_problem(reply, 404, "not-found")
    assert reply.body.replace(id_.encode(), b"q_never") == never.body  # nothing tells that it exists
    assert (await alice.call("GET", f"/v1/queries/{id_}")).json["status"] == "complete"


@pytest.mark.parametrize(("method", "path", "said"), OF_A_QUERY)
async def test_a_query_that_runs_is_not_there_for_another(
    house: House, alice: Client, bob: Client, method: str, path: str, said: object
) -> None:
    with book_trade(30) as web:
        web.behave("books", Behaviour(latency=Fixed(30.0)))
        with serving(web.catalog, keyring=Keyring.load(house.file)) as served:
            async with (
                Client(served, house.tokens["alice"]) as alice,
                Client(served, house.tokens["bob"]) as bob,
            ):
                id_ = await made(alice)
                is_problem(await bob.call(method, f"/v1/queries/{id_}{path}", said), 404, "not-found")
                assert (await alice.call("GET", f"/v1/queries/{id_}")).json["status"] == "running"


@pytest.mark.parametrize(("method", "path", "said"), OF_A_QUERY)
async def test_a_query_whose_results_are_gone_is_not_there_for_another(
    house: House, alice: Client, bob: Client, method: str, path: str, said: object
) -> None:
    id_ = await made(alice)
    await alice.ended(id_)
    await on_loop(house.served, lambda: house.served.desk.runs.pop(id_).journal.close())
    is_problem(await bob.call(method, f"/v1/queries/{id_}{path}", said), 404, "not-found")
    assert (await alice.call("GET", f"/v1/queries/{id_}")).json["results"] == "gone"


async def on_loop(served: Served, work: Any) -> None:
    async def call() -> None:
        work()

    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), served.loop))


async def test_lists_have_ones_own_and_a_place_in_anothers_list_leads_to_ones_own(
    alice: Client, bob: Client
) -> None:
    of_alice = [await made(alice) for _ in range(3)]
    of_bob = [await made(bob) for _ in range(3)]
    page = (await alice.call("GET", "/v1/queries?limit=1")).json
    assert page["queries"][0]["id"] == of_alice[-1]
    for path in ("/v1/queries?limit=500", page["next"].replace("limit=1", "limit=500")):
        shown = {query["id"] for query in (await bob.call("GET", path)).json["queries"]}
        assert not shown & set(of_alice)
    shown = {query["id"] for query in (await bob.call("GET", "/v1/queries?limit=500")).json["queries"]}
    assert shown >= set(of_bob)


async def test_saved_queries_are_ones_own_under_one_name(alice: Client, bob: Client) -> None:
    at = "/v1/saved/ours"
    await alice.call("PUT", at, {"sql": BOOKS})
    for method, path in (("GET", at), ("DELETE", at), ("POST", f"{at}/queries")):
        is_problem(await bob.call(method, path), 404, "not-found")
    assert (await bob.call("GET", "/v1/saved")).json["saved"] == []
    await bob.call("PUT", at, {"sql": "SELECT 1 AS n FROM books"})
    assert (await alice.call("GET", at)).json["request"]["sql"] == BOOKS
    assert (await bob.call("DELETE", at)).status == 204
    assert (await alice.call("GET", at)).status == 200


# Who may do what


def routes(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Every method and path of the document."""
    return [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]


async def test_every_route_wants_a_key_and_its_own_scope(house: House, alice: Client) -> None:
    document = (await alice.call("GET", "/openapi.json")).json
    assert set(routes(document)) == set(SCOPES)
    async with (
        Client(house.served) as nobody,
        Client(house.served, "mk_wrong") as wrong,
        house.client("query") as query,
        house.client("read") as read,
        house.client("metrics") as metrics,
    ):
        clients = {"query": query, "read": read, "metrics": metrics}
        for (method, path), scope in SCOPES.items():
            where = path.replace("{id}", "q_never").replace("{name}", "none")
            said = BODIES.get((method, path))
            for stranger in (nobody, wrong):
                reply = await stranger.call(method, where, said)
                if scope is None:
                    assert reply.status == 200
                else:
                    is_problem(reply, 401, "unauthorized")
                    assert reply.headers["www-authenticate"].startswith("Bearer")
            for having, client in clients.items():
                reply = await client.call(method, where, said)
                if scope in (None, having):
                    assert reply.status not in (401, 403), (method, path, reply.body)
                else:
                    is_problem(reply, 403, "forbidden")


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/", "/v1", "/v1/queries/", "/healthz/", "/nope"])
async def test_nothing_else_is_open(house: House, path: str) -> None:
    async with Client(house.served) as nobody:
        is_problem(await nobody.call("GET", path), 401, "unauthorized")


async def test_a_key_that_is_removed_opens_nothing_soon(house: House) -> None:
    token = add(house.file, "carol", EVERYTHING)
    async with Client(house.served, token) as carol:

        async def let_in() -> bool:
            return (await carol.call("GET", "/v1/queries")).status == 200

        async def kept_out() -> bool:
            return not await let_in()

        await until("the key is known", let_in)
        remove(house.file, "carol")
        await until("the key is forgotten", kept_out)


# Quotas


@asynccontextmanager
async def slow(tmp_path: Path, **quota: int) -> AsyncIterator[tuple[House, Client]]:
    """A server whose sites take their time, and a client with this quota."""
    file = tmp_path / "keys.yaml"
    tokens = {"alice": add(file, "alice", EVERYTHING, Quota(**quota)), "bob": add(file, "bob", EVERYTHING)}
    with book_trade(30) as web:
        web.behave("books", Behaviour(latency=Fixed(30.0)))
        with serving(web.catalog, keyring=Keyring.load(file)) as served:
            house = House(served, web, file, tokens)
            async with house.client("alice") as client:
                yield house, client


async def test_so_many_at_once_and_cancelled_ones_make_room(tmp_path: Path) -> None:
    async with slow(tmp_path, concurrent=2) as (house, alice):
        ids = [await made(alice) for _ in range(2)]
        for attempt in (
            alice.ask(BOOKS),
            alice.call("POST", "/v1/queries", {"sql": BOOKS}, accept="text/csv"),
        ):
            reply = await attempt
            is_problem(reply, 429, "too-many-queries")
            assert reply.json["hint"]
            assert int(reply.headers["retry-after"]) >= 1
        await alice.call("PUT", "/v1/saved/one", {"sql": BOOKS})
        is_problem(await alice.call("POST", "/v1/saved/one/queries"), 429, "too-many-queries")
        async with house.client("bob") as bob:
            await made(bob)
        assert (await alice.call("DELETE", f"/v1/queries/{ids[0]}")).json["status"] == "cancelled"
        again = await made(alice)
        await alice.call("PATCH", f"/v1/queries/{again}", {"stop": "enough"})

        async def there_is_room() -> bool:
            return (await alice.ask(BOOKS)).status == 201

        await until("there is room again", there_is_room)


async def test_clients_that_leave_make_room(tmp_path: Path) -> None:
    async with slow(tmp_path, concurrent=1) as (house, _):
        for accept in ("application/x-ndjson", "text/event-stream", "text/csv"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), house.client("alice") as leaving:
                    await leaving.call("POST", "/v1/queries", {"sql": BOOKS}, accept=accept)

            async def there_is_room() -> bool:
                return house.served.desk.meter.running(Key("alice", "", EVERYTHING)) == 0

            await until("there is room again", there_is_room)


async def test_bad_and_failed_queries_make_room(tmp_path: Path) -> None:
    async with slow(tmp_path, concurrent=1) as (house, alice):
        house.web.behave("books", Behaviour())
        for bad in ("SELEC", "SELECT nothing FROM books", "SELECT * FROM reviews"):
            assert (await alice.ask(bad)).status >= 400
        failed = await made(alice, "SELECT CAST(title AS INT) AS n FROM books")
        assert (await alice.ended(failed))["status"] == "failed"
        house.web.behave("books", Behaviour(faults=(Fault("error", probability=1.0, status=404),)))
        partial = await made(alice, "SELECT title FROM books", max_age=0)
        assert (await alice.ended(partial))["status"] == "partial"

        async def there_is_room() -> bool:
            return (await alice.ask(BOOKS)).status == 201

        await until("there is room again", there_is_room)


async def test_so_many_a_minute(tmp_path: Path) -> None:
    async with slow(tmp_path, per_minute=3) as (_, alice):
        for _ in range(3):
            await alice.call("DELETE", f"/v1/queries/{await made(alice)}")
        reply = await alice.ask(BOOKS)
        is_problem(reply, 429, "too-many-queries")
        assert 1 <= int(reply.headers["retry-after"]) <= 60
        is_problem(
            await alice.call("POST", "/v1/queries", {"sql": BOOKS}, accept="text/csv"),
            429,
            "too-many-queries",
        )


@pytest.mark.parametrize("said", [{}, {"budget": {"rows": 100, "calls": 100}}, {"budget": {"rows": 10**9}}])
async def test_what_is_asked_for_never_exceeds_the_quota(tmp_path: Path, said: dict[str, Any]) -> None:
    async with slow(tmp_path, rows=5, calls=3) as (house, alice):
        house.web.behave("books", Behaviour())
        await alice.records(OFFERS, max_age=0, **said)
        assert 1 <= house.web.requests <= 3
        records = await alice.records(BOOKS, **said)
        assert records[-1]["rows"] == 5
        await alice.call("PUT", "/v1/saved/all", {"sql": BOOKS, "budget": {"rows": 50}})
        run = (await alice.call("POST", "/v1/saved/all/queries")).json
        assert (await alice.ended(run["id"]))["rows"] == 5


async def test_a_retry_has_the_quota_of_its_own_time(tmp_path: Path) -> None:
    async with slow(tmp_path) as (house, alice):
        house.web.behave("books", Behaviour(faults=(Fault("error", probability=1.0, status=404),)))
        first = await made(alice)
        assert (await alice.ended(first))["status"] == "partial"
        house.web.behave("books", Behaviour())
        remove(house.file, "alice")
        less = add(house.file, "alice", EVERYTHING, Quota(rows=5))
        async with Client(house.served, less) as later:

            async def known() -> bool:
                return (await later.call("GET", "/v1/queries")).status == 200

            await until("the key is known", known)
            retried = await later.call("POST", f"/v1/queries/{first}/retry", accept="application/json")
            assert retried.status == 201
            assert (await later.ended(retried.json["id"]))["rows"] <= 5
