"""The history: what is noted is there again, to its owner alone, also after a death; files that cannot be used."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.http.history import History, HistoryFailed, Kept
from api.http.problems import Problem

SQL = "SELECT title FROM books"


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class Time:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def begun(history: History, *ids: str, owner: str = "alice", first: float = 1_000_000.0) -> None:
    for n, id_ in enumerate(ids):
        history.started(id_, owner, SQL, {"sql": SQL}, at(first + n))


async def over(history: History, *ids: str, status: str = "complete") -> None:
    for id_ in ids:
        history.ended(id_, status, at(1_000_100.0), 3, 1.5, 0.2, {"complete": True}, None)


async def listed(history: History, owner: str = "alice", status: str | None = None) -> list[str]:
    return [q.id for q in (await history.page(owner, status)).queries]


async def test_what_was_noted_is_there_again(tmp_path: Path) -> None:
    request = {"sql": SQL, "budget": {"calls": 5}, "parameters": {"big": 2**80, "text": 'ü\n"'}}
    path = tmp_path / "history.sqlite"
    async with History.opened(path) as history:
        history.started("q_0", "alice", SQL, request, at(5.25))
        history.started("q_1", "alice", SQL, request, at(6.123456), "q_0")
        past = await history.get("alice", "q_1")
        assert past is not None
        assert (past.status, past.rows, past.finished, past.report) == ("running", 0, None, None)
        history.ended("q_1", "partial", at(9.0), 7, 3.5, 0.25, {"complete": False}, {"status": 500})
    async with History.opened(path, now=Time()) as history:
        past = await history.get("alice", "q_1")
        assert past is not None
        assert (past.id, past.owner, past.sql, past.request) == ("q_1", "alice", SQL, request)
        assert (past.created, past.finished) == (at(6.123456), at(9.0))
        assert (past.status, past.rows, past.seconds, past.first_row) == ("partial", 7, 3.5, 0.25)
        assert (past.report, past.problem, past.retry_of) == ({"complete": False}, {"status": 500}, "q_0")


async def test_memory_forgets() -> None:
    async with History.opened() as history:
        await begun(history, "q_1")
        assert await listed(history) == ["q_1"]
    async with History.opened() as history:
        assert await listed(history) == []


async def test_what_belongs_to_one_is_not_there_for_others() -> None:
    async with History.opened(now=Time()) as history:
        await begun(history, "q_1")
        await history.save("alice", "mine", {"sql": SQL})
        assert await history.get("bob", "q_1") is None
        assert await listed(history, "bob") == []
        assert not await history.forget("bob", "q_1")
        assert await history.saved("bob") == []
        assert await history.saved_one("bob", "mine") is None
        assert not await history.forget_saved("bob", "mine")
        assert await listed(history) == ["q_1"]
        assert len(await history.saved("alice")) == 1


async def test_pages_give_every_query_once_the_latest_first() -> None:
    async with History.opened(now=Time()) as history:
        ids = [f"q_{n}" for n in range(7)]
        await begun(history, *ids)
        for id_ in ("q_a", "q_b"):  # at one moment with the first
            await begun(history, id_)
        await begun(history, "q_other", owner="bob")
        found: list[str] = []
        after = None
        for _ in range(3):
            page = await history.page("alice", after=after, limit=4)
            found += [q.id for q in page.queries]
            after = page.next
            if after is not None:  # what comes and goes meanwhile moves nothing
                await begun(history, f"q_new{len(found)}", first=1_000_050.0 + len(found))
                await history.forget("alice", found[-1])
        assert found == ["q_6", "q_5", "q_4", "q_3", "q_2", "q_1", "q_b", "q_a", "q_0"]
        assert after is None


async def test_a_page_that_holds_all_has_none_after_it() -> None:
    async with History.opened(now=Time()) as history:
        await begun(history, "q_1", "q_2")
        assert (await history.page("alice", limit=2)).next is None
        assert (await history.page("alice", limit=1)).next is not None
        assert (await history.page("nobody")).queries == []


async def test_pages_of_one_status() -> None:
    async with History.opened(now=Time()) as history:
        await begun(history, *(f"q_{n}" for n in range(6)))
        await over(history, "q_1", "q_3", "q_5")
        assert await listed(history, status="running") == ["q_4", "q_2", "q_0"]
        page = await history.page("alice", "complete", limit=2)
        assert [q.id for q in page.queries] == ["q_5", "q_3"]
        rest = await history.page("alice", "complete", after=page.next, limit=2)
        assert ([q.id for q in rest.queries], rest.next) == (["q_1"], None)
        assert await listed(history, status="'; DROP TABLE query; --") == []


@pytest.mark.parametrize("after", ["", "x", "é", "AAAA", "bm90IGEgbnVtYmVy", "////", "\x00", "a" * 201])
async def test_an_after_that_no_page_gave_is_refused(after: str) -> None:
    async with History.opened(now=Time()) as history:
        with pytest.raises(Problem) as raised:
            await history.page("alice", after=after)
        assert (raised.value.status, raised.value.kind) == (422, "invalid-request")


async def test_what_is_forgotten_stays_so_when_it_ends_afterwards() -> None:
    async with History.opened(now=Time()) as history:
        await begun(history, "q_1")
        assert await history.forget("alice", "q_1")
        assert not await history.forget("alice", "q_1")
        await over(history, "q_1")
        assert await listed(history) == []


async def test_saved_queries() -> None:
    time = Time()
    async with History.opened(now=time) as history:
        first = await history.save("alice", "b", {"sql": SQL})
        await history.save("alice", "a", {"sql": SQL})
        time.now += 60
        again = await history.save("alice", "b", {"sql": "SELECT 1"})
        assert (again.created, again.changed) == (first.created, at(time.now))
        assert [s.name for s in await history.saved("alice")] == ["a", "b"]
        one = await history.saved_one("alice", "b")
        assert one == again
        assert again.request == {"sql": "SELECT 1"}
        assert await history.forget_saved("alice", "b")
        assert not await history.forget_saved("alice", "b")
        assert await history.saved_one("alice", "b") is None


async def test_so_many_are_saved_and_no_more() -> None:
    async with History.opened(now=Time(), kept=Kept(saved=2)) as history:
        for name in "ab":
            await history.save("alice", name, {"sql": SQL})
        with pytest.raises(Problem, match="more are not kept"):
            await history.save("alice", "c", {"sql": SQL})
        await history.save("alice", "b", {"sql": "SELECT 2"})
        await history.save("bob", "c", {"sql": SQL})
        assert [s.name for s in await history.saved("alice")] == ["a", "b"]


async def test_the_oldest_of_too_many_are_forgotten_but_none_that_run() -> None:
    async with History.opened(now=Time(), kept=Kept(queries=3)) as history:
        await begun(history, "other", owner="bob")
        await begun(history, "q_0", "q_1", "q_2", "q_3")
        await over(history, "q_1", "q_2", "q_3")
        await begun(history, "q_4", first=1_000_010.0)
        assert await listed(history) == ["q_4", "q_3", "q_2", "q_0"]
        assert await listed(history, "bob") == ["other"]


async def test_what_is_too_old_is_forgotten(tmp_path: Path) -> None:
    time = Time()
    path = tmp_path / "history.sqlite"
    async with History.opened(path, now=time, kept=Kept(seconds=100.0)) as history:
        await begun(history, "q_0", "q_1", "q_2")
        await over(history, "q_0", "q_1")
        time.now += 100.5
        await history.prune()
        assert await listed(history) == ["q_2", "q_1"]
        time.now += 100
        await begun(history, "q_3", first=time.now)
        assert await listed(history) == ["q_3", "q_2"]  # one that runs stays
        await over(history, "q_2", "q_3")
        time.now += 1000
    async with History.opened(path, now=time, kept=Kept(seconds=100.0)) as history:
        assert await listed(history) == []


async def test_many_at_once() -> None:
    async with History.opened(now=Time()) as history:
        ids = [f"q_{n:03}" for n in range(200)]

        async def one(id_: str) -> None:
            await begun(history, id_)
            await over(history, id_)

        async with asyncio.TaskGroup() as tasks:
            for id_ in ids:
                tasks.create_task(one(id_))
        assert sorted([q.id for q in (await history.page("alice", "complete", limit=500)).queries]) == ids


async def test_who_does_not_wait_does_not_undo() -> None:
    async with History.opened(now=Time()) as history:
        hold, held = threading.Event(), threading.Event()

        def wait() -> None:
            held.set()
            hold.wait()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(history._do(wait))
            await asyncio.to_thread(held.wait)
            starting = tasks.create_task(begun(history, "q_1"))
            await asyncio.sleep(0)
            starting.cancel()
            hold.set()
        await begun(history, "q_2", first=1_000_001.0)
        assert (await listed(history))[0] == "q_2"  # and nothing is locked or half written


async def test_an_id_that_is_there_already_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with History.opened(now=Time()) as history:
        await begun(history, "q_1")
        await begun(history, "q_1", owner="bob")
        await history.written()
        assert "UNIQUE" in caplog.text
        assert await listed(history, "bob") == []
        await begun(history, "q_2", first=1_000_001.0)
        assert await listed(history) == ["q_2", "q_1"]


async def test_a_file_that_cannot_be_written_for_a_while_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history.sqlite"
    async with History.opened(path, now=Time()) as history:
        await begun(history, "q_1")
        await history.written()
        await history._do(lambda: history._db.execute("PRAGMA query_only = true"))
        await begun(history, "q_2", first=1_000_001.0)
        with pytest.raises(HistoryFailed, match="readonly"):
            await history.written()
        with pytest.raises(HistoryFailed, match="readonly"):
            await begun(history, "q_3")
        await over(history, "q_1")
        assert await listed(history, status="running") == ["q_1"]  # what is there can be read
        await history._do(lambda: history._db.execute("PRAGMA query_only = false"))
        await history.written()
        await begun(history, "q_4", first=1_000_002.0)
        assert caplog.text.count("cannot be written") == 1
    async with History.opened(path, now=Time()) as history:
        assert await listed(history, status="complete") == ["q_1"]
        assert await listed(history, status="failed") == ["q_4", "q_2"]


def _run_and_die(path: str) -> None:
    async def run() -> None:
        async with History.opened(Path(path), now=Time()) as history:
            await begun(history, "q_1", "q_2")
            await over(history, "q_1")
            await asyncio.sleep(2.0)  # forty times as long as is said
            os._exit(9)

    asyncio.run(run())


async def test_queries_that_were_running_when_the_process_died_have_failed(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    process = multiprocessing.get_context("spawn").Process(target=_run_and_die, args=(str(path),))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == 9
    async with History.opened(path, now=Time()) as history:
        one, two = await history.get("alice", "q_1"), await history.get("alice", "q_2")
        assert one is not None
        assert two is not None
        assert (one.status, one.problem) == ("complete", None)
        assert two.status == "failed"
        assert two.problem is not None
        assert two.problem["detail"] == "The server ended while the query ran"
        assert two.problem["hint"]


async def test_one_server_at_a_time_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    async with History.opened(path, now=Time()) as history:
        await begun(history, "q_1")
        with pytest.raises(HistoryFailed, match="is in use by another process"):
            async with History.opened(path):
                pytest.fail("two have it")
        assert await listed(history, status="running") == ["q_1"]
    async with History.opened(path, now=Time()) as history:
        assert await listed(history, status="failed") == ["q_1"]


def test_a_file_for_its_owner_alone_and_nothing_beside_it_afterwards(tmp_path: Path) -> None:
    async def modes() -> set[int]:
        async with History.opened(tmp_path / "history.sqlite") as history:
            await begun(history, "q_1")
            return {stat.S_IMODE(os.stat(p).st_mode) for p in os.scandir(tmp_path)}

    before = os.umask(0)
    try:
        assert asyncio.run(modes()) == {0o600}
    finally:
        os.umask(before)
    assert [p.name for p in tmp_path.iterdir()] == ["history.sqlite"]


async def refused(path: Path) -> str:
    with pytest.raises(HistoryFailed) as raised:
        async with History.opened(path):
            pytest.fail("it was opened")
    assert str(path) in str(raised.value)
    return str(raised.value)


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.write_bytes(b"not a database, but long enough to be one" * 100)
    said = await refused(path)
    assert "is damaged" in said
    assert "move it away" in said
    assert path.read_bytes().startswith(b"not a database")


async def test_a_file_that_is_damaged_inside(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    async with History.opened(path) as history:
        for n in range(50):
            await history.save("alice", f"name{n}", {"sql": SQL * 50})
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    assert "is damaged" in await refused(path)


async def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    async with History.opened(path) as history:
        for n in range(50):
            await history.save("alice", f"name{n}", {"sql": SQL * 50})
    path.write_bytes(path.read_bytes()[:10_000])
    assert "is damaged" in await refused(path)


async def test_a_database_of_a_later_version_or_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE other (x)")
    db.close()
    assert "is a database of something else" in await refused(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert "by a later version of the mediator (format 99, not 1)" in await refused(path)


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    assert "name a file in a folder that can be written" in await refused(tmp_path / "none" / "h.sqlite")
    assert "cannot be opened" in await refused(tmp_path)


async def test_an_empty_file_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.touch()
    async with History.opened(path) as history:
        assert await listed(history) == []
