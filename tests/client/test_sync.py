"""The synchronous client: the same, waited for; and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb
import polars as pl
import pytest

from api.client import (
    AsyncClient,
    AsyncQuery,
    Client,
    Closed,
    End,
    Incomplete,
    IncompleteWarning,
    Query,
    Rows,
    connect,
    errors,
)
from api.client.portal import Portal
from tests.client.conftest import PAGE, House
from tests.client.kit import FAILS, HANGS, bag, eventually, hangs_after, truth

BOOKS = "SELECT isbn, title, year FROM books"
PRIZES = "SELECT b.isbn, p.prize FROM books b JOIN prizes p ON p.isbn = b.isbn"
_NAME = "mediator client"


def threads() -> int:
    return sum(thread.name == _NAME for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    before = threads()
    yield
    gc.collect()
    assert threads() == before


@pytest.mark.parametrize(("of", "like"), [(Client, AsyncClient), (Query, AsyncQuery)])
def test_the_surface_is_the_same(of: type, like: type) -> None:
    """What only one of the two has says why."""
    parts = {"wire", "tries", "starting", "reading", "over"}
    only_async = {*parts, "started"}  # the sync one starts it and waits for that
    only_sync = {"close", "reader"}  # `async with`; what pulls Arrow cannot await
    assert _public(like) - _public(of) <= only_async
    assert _public(of) - _public(like) <= only_sync


def _public(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of) if not name.startswith("_")}


def test_a_table(calm: House, blocking: Client) -> None:
    query = blocking.query(f"{BOOKS} WHERE year > ?", [1990])
    assert bag(query.arrow()) == bag(truth(calm.web, f"{BOOKS} WHERE year > 1990"))
    assert query.complete
    assert query.report()["complete"]
    assert query.polars().height == query.pandas().shape[0] == len(query.rows())
    assert blocking.attach(query.id).status()["status"] == "complete"
    assert [q["id"] for q in blocking.queries(limit=1)] == [query.id]


def test_records_and_batches(blocking: Client) -> None:
    query = blocking.query(BOOKS)
    records = list(query.records())
    assert isinstance(records[-1], End)
    batches = query.batches()
    assert batches.schema().names == ["isbn", "title", "year"]
    assert sum(batch.num_rows for batch in batches) == 300
    assert list(batches) == []


def test_what_can_be_asked(calm: House, blocking: Client) -> None:
    assert {r["name"] for r in blocking.relations()} == set(calm.web.catalog.relations)
    assert blocking.sources()
    assert isinstance(blocking.cache(), dict)
    blocking.save("mine", BOOKS)
    assert blocking.run("mine").arrow().num_rows == 300
    blocking.forget("mine")


def test_errors_are_raised_where_one_asks(blocking: Client) -> None:
    with pytest.raises(errors.UnknownColumn) as caught:
        blocking.query("SELECT nix FROM books")
    assert caught.value.column == 8


def test_a_part_is_never_handed_over_as_the_whole(house: House) -> None:
    house.web.behave("prizes", FAILS)
    with connect(house.url) as client:
        with pytest.warns(IncompleteWarning):
            client.query(PRIZES).arrow()
        with pytest.raises(Incomplete):
            client.query(PRIZES, whole=True).rows()


def test_rows_are_there_before_the_last_exists(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    with connect(house.url) as client, client.query(BOOKS) as query:
        with query.batches() as batches:
            assert next(batches).num_rows == PAGE
        rows = next(record for record in query.records() if isinstance(record, Rows))
        assert len(rows.rows) == PAGE
        assert query.status()["status"] == "running"
    eventually(lambda: house.web.counters["books"].open == 0)


def test_duckdb_and_polars_read_a_query_as_it_comes(calm: House, blocking: Client) -> None:
    reader = blocking.query(BOOKS).reader()  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as connection:
        assert connection.sql("SELECT count(*) FROM reader").fetchall() == [(300,)]
    assert pl.DataFrame(blocking.query(BOOKS)).height == 300


def test_an_iterator_that_is_forgotten_is_closed(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    with connect(house.url) as client:
        query = client.query(BOOKS, on_disconnect="cancel")
        for _ in query.batches():
            break
        gc.collect()
        eventually(lambda: query.status()["status"] == "cancelled")


def test_a_client_that_is_forgotten_is_closed(house: House) -> None:
    house.web.behave("books", HANGS)
    query = connect(house.url).query(BOOKS)
    batches = query.batches()
    assert batches.schema()  # the client is kept as long as anything of it is
    del query, batches
    gc.collect()
    eventually(lambda: threads() == 0)
    eventually(lambda: house.web.counters["books"].open == 0)


def test_after_the_end(calm: House) -> None:
    with connect(calm.url) as client:
        query = client.query(BOOKS)
        batches = query.batches()
        next(batches)
    client.close()
    with pytest.raises(Closed):
        client.relations()
    with pytest.raises(Closed):
        query.arrow()
    with pytest.raises(Closed):
        next(batches)
    batches.close()


def test_many_threads_share_a_client(calm: House, blocking: Client) -> None:
    found: list[int] = []
    workers = [
        threading.Thread(target=lambda: found.append(blocking.query(BOOKS).arrow().num_rows))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [300] * 8


async def test_where_a_loop_is_running_already(calm: House) -> None:
    """As in a notebook, whose cells run in one."""
    with connect(calm.url) as client:
        assert client.query(BOOKS).arrow().num_rows == 300


def waiting(client: Client) -> bool:
    """Whether somebody waits for it."""
    return any(not call.done.done() for call in list(client._portal._calls))


@contextmanager
def interrupted(when: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C, as soon as that holds."""

    def press() -> None:
        eventually(when)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        yield
    finally:
        presser.join()


def test_ctrl_c_cancels_what_is_waited_for(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    counters = house.web.counters["books"]
    with connect(house.url) as client:
        query = client.query(BOOKS)
        with pytest.raises(KeyboardInterrupt), interrupted(lambda: counters.open > 0 and waiting(client)):
            query.arrow()
        assert query.status()["status"] == "cancelled"
        # The client is none the worse for it.
        assert client.query("SELECT 1 AS one").rows() == [{"one": 1}]
    eventually(lambda: counters.open == 0)


def test_ctrl_c_between_two_batches(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    with connect(house.url) as client:
        query = client.query(BOOKS)
        batches = query.batches()
        next(batches)
        with pytest.raises(KeyboardInterrupt), interrupted(lambda: waiting(client)):
            next(batches)
        assert query.status()["status"] == "cancelled"


_SCRIPT = """
import sys
from api.client import connect
query = connect(sys.argv[1]).query("SELECT isbn FROM books")
print(next(query.batches()).num_rows, flush=True)
"""


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(3)", "batches = query.batches(); next(batches); 1 / 0"]
)
def test_a_script_that_closes_nothing_ends_and_leaves_nothing(house: House, end: str) -> None:
    house.web.behave("books", hangs_after(1))
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", _SCRIPT + end, house.url],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.stdout == f"{PAGE}\n"
    assert done.returncode == (3 if "Exit" in end else 1 if end else 0), done.stderr
    assert "Exception ignored" not in done.stderr
    assert "Warning" not in done.stderr
    # It was cancelled: the server asks its sources no more.
    eventually(lambda: house.web.counters["books"].open == 0)


def test_a_portal_that_cannot_be_opened_says_so() -> None:
    class Shut:
        async def __aenter__(self) -> None:
            raise ConnectionError("shut")

        async def __aexit__(self, *_: object) -> None: ...

    with pytest.raises(ConnectionError, match="shut"):
        Portal(Shut())


def test_a_portal_does_not_wait_for_itself(calm: House, blocking: Client) -> None:
    portal = blocking._portal

    async def asks() -> None:
        portal.wait(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="cannot wait"):
        portal.wait(asks())
