"""Clients that vanish, that take nothing, and that come back: nothing is left behind, nobody else notices, and nothing
is lost or repeated."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import statistics
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from random import Random
from time import perf_counter
from typing import Any

import pyarrow as pa
import pytest

from api.http.limits import Limits
from api.http.run import Run
from api.http.stream import Streamed
from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fixed
from fixtures.web import Web
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation
from tests.http.asking import Client, events, rows_of
from tests.http.serving import Served, serving

WAITING = "SELECT b.title, r.stars FROM books b JOIN reviews r ON r.isbn = b.isbn"
ABORTS = 200
_PATIENCE = 20.0


def numbers(rows: int) -> Catalog:
    """A relation that needs no site: so many numbers, each with a text that takes some room."""
    found = pa.record_batch(
        {"n": pa.array(range(rows)), "text": pa.array([f"number {n:_>60}" for n in range(rows)])}
    )
    scan = AccessMethod("scan", "scan", (), None)
    fields = (Field("n", pa.int64()), Field("text", pa.string()))
    return Catalog({"numbers": Relation("numbers", fields, (scan,), literal=found)})


def ask(
    served: Served, sql: str, accept: str = "application/x-ndjson", room: int | None = None
) -> socket.socket:
    """A query that is streamed to a raw socket, of which nothing has been read yet."""
    sock = socket.socket()
    if room is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    sock.settimeout(_PATIENCE)
    sock.connect(("127.0.0.1", served.port))
    body = json.dumps({"sql": sql}).encode()
    head = f"POST /v1/queries HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
    sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def abort(sock: socket.socket) -> None:
    """Gone at once, as when a process is killed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def until(said: str, true: Any) -> float:
    """Wait until it is so; in how many seconds."""
    began = perf_counter()
    wait = threading.Event()
    while not true():
        assert perf_counter() - began < _PATIENCE, said
        wait.wait(0.0005)
    return perf_counter() - began


@contextmanager
def watched() -> Iterator[list[float]]:
    """When each reader's generator was closed."""
    closed: list[float] = []
    told = Streamed._told

    async def seen(self: Streamed) -> Any:
        try:
            async for chunk in told(self):
                yield chunk
        finally:
            closed.append(perf_counter())

    Streamed._told = seen  # type: ignore[method-assign]
    try:
        yield closed
    finally:
        Streamed._told = told  # type: ignore[method-assign]


def tell(what: str, seconds: list[float]) -> None:
    seconds = sorted(seconds)
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    print(
        f"{what}: median {1e3 * statistics.median(seconds):.1f} ms, p99 {1e3 * p99:.1f} ms of {len(seconds)}"
    )


def test_a_client_that_vanishes_while_it_waits_takes_its_lookups_along() -> None:
    never = Behaviour(latency=Fixed(3_600.0))
    with (
        book_trade(40, behaviours={"reviews": never}) as web,
        serving(web.catalog) as served,
        watched() as closed,
    ):
        reviews = web.endpoints["reviews"].counters
        asks, closes = [], []
        for number in range(ABORTS):
            sock = ask(served, WAITING)
            while b'"start"' not in sock.recv(1 << 16):
                pass
            until("the reviews are asked for", lambda: reviews.open)
            abort(sock)
            began = perf_counter()
            asks.append(until("its lookups are called back", lambda: not reviews.open))
            until("its generator is closed", lambda n=number: len(closed) > n)
            closes.append(closed[number] - began)
        tell("lookups called back", asks)
        tell("generators closed", closes)
        left_nothing(served)


def test_a_client_that_vanishes_while_it_is_full_is_let_go() -> None:
    with serving(numbers(400_000)) as served, watched() as closed:
        closes = []
        for number in range(ABORTS):
            sock = ask(served, "SELECT n, text FROM numbers", room=4_096)
            until("there is a query", lambda n=number: len(served.desk.runs) > n)
            run = list(served.desk.runs.values())[-1]
            until("it is full", lambda r=run: r.journal.waits)
            began = perf_counter()
            abort(sock)
            until("its generator is closed", lambda n=number: len(closed) > n)
            closes.append(closed[number] - began)
            until("its query has ended", run.over.is_set)
            assert run.status == "cancelled"
        tell("generators closed", closes)
        left_nothing(served)


def left_nothing(served: Served) -> None:
    """No reader, no query, no task."""
    runs = list(served.desk.runs.values())
    until("every query has ended", lambda: all(run.over.is_set() for run in runs))
    until("every reader has gone", lambda: not any(run.readers or run.journal.readers for run in runs))
    gc.collect()

    async def tasks() -> list[str]:
        return [
            repr(task) for task in asyncio.all_tasks() if "conduct" in repr(task) or "_pump" in repr(task)
        ]

    def left() -> list[str]:
        return asyncio.run_coroutine_threadsafe(tasks(), served.loop).result(_PATIENCE)

    until("every end is noted, and no task is left", lambda: not left())


async def test_readers_that_stall_cost_little_and_are_dropped_while_others_read_on() -> None:
    limits = Limits(stalled=2.0)
    with serving(numbers(300_000), limits=limits) as served, ExitStack() as sockets:
        for _ in range(100):
            sockets.enter_context(closing(ask(served, "SELECT n, text FROM numbers", room=4_096)))
        largest = 0
        async with Client(served) as client:
            while (
                not (runs := _runs(served)) or len(runs) < 100 or not all(run.over.is_set() for run in runs)
            ):
                largest = max([largest, *(run.journal.size for run in runs)])
                records = await client.records("SELECT count(*) AS n FROM numbers")
                assert (rows_of(records), records[-1]["status"]) == ([{"n": 300_000}], "complete")
        assert 0 < largest <= 1 << 20
        assert {run.status for run in runs} == {"cancelled"}
        left_nothing(served)


def _runs(served: Served) -> list[Run]:
    return [run for run in list(served.desk.runs.values()) if "text" in run.sql]


async def test_event_streams_that_are_cut_anywhere_go_on_without_loss_or_repetition() -> None:
    """One query, read by one client whose connection is cut a thousand times."""
    rows = 30_000
    random = Random(7)
    with serving(numbers(rows)) as served:
        async with Client(served) as client:
            made = (await client.ask("SELECT n FROM numbers")).json
            where, last, got, cuts = made["links"]["results"], None, [], 0
            over = False
            while not over:
                text, over = cut(served, where, last, random.randrange(0, 30_000) if cuts < 1_000 else 10**9)
                cuts += 1
                for event in events(text):
                    last = event.id or last
                    if event.kind == "rows":
                        got += [row["n"] for row in event.data["rows"]]
                    over = over or event.kind == "end"
                if over and cuts < 1_000:  # from anywhere that was told before
                    over = False
                    last, got = None, []
            assert sorted(got) == list(range(rows))
            assert cuts >= 1_000


def cut(served: Served, where: str, last: str | None, most: int) -> tuple[str, bool]:
    """What comes until so many bytes have come, or all."""
    with socket.create_connection(("127.0.0.1", served.port), _PATIENCE) as sock:
        resume = f"Last-Event-ID: {last}\r\n" if last else ""
        head = f"GET {where} HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n{resume}\r\n"
        sock.sendall(head.encode())
        received = b""
        while len(received) < most:
            some = sock.recv(1 << 16)
            if not some:
                break
            received += some
        received = received[:most]
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    _, _, body = received.partition(b"\r\n\r\n")
    return body.decode(), False


@pytest.mark.parametrize("after", ["99999", "x", "1.2.3", "-1", "1e5"])
async def test_an_event_that_never_was_is_said_to_be_none(after: str) -> None:
    with serving(numbers(10)) as served:
        async with Client(served) as client:
            made = (await client.ask("SELECT n FROM numbers")).json
            await client.ended(made["id"])
            reply = await client.call("GET", f"{made['links']['results']}?after={after}")
            assert reply.status in (400, 410), reply.body
            assert reply.json["hint"]


async def test_a_server_that_shuts_down_ends_every_stream_with_its_last_record(web: Web) -> None:
    never = Behaviour(latency=Fixed(3_600.0))
    with book_trade(40, behaviours={"reviews": never}) as stuck, serving(stuck.catalog) as served:
        async with Client(served) as client, asyncio.TaskGroup() as group:
            reading = [group.create_task(client.records(WAITING)) for _ in range(5)]
            kept = (await client.ask(WAITING)).json
            reading.append(group.create_task(client.records(WAITING)))
            while sum(run.readers for run in served.desk.runs.values()) < len(reading):
                await asyncio.sleep(0.005)
            await asyncio.to_thread(served.stop)
        for task in reading:
            end = task.result()[-1]
            assert (end["type"], end["status"]) == ("end", "partial")
            assert end["report"]["stopped"] == "the server is shutting down"
        assert kept["status"] == "running"
    assert web is not stuck
