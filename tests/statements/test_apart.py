"""Statements in processes of their own: the same rows and errors as here, whatever becomes of the processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from mediator.errors import Unsupported
from mediator.query import duck
from mediator.statements.apart import Apart, TooMuch
from mediator.statements.database import NotOne
from mediator.statements.patience import Interrupted, Patience

MEMORY = 64 << 20
ENDLESS = "SELECT count(*) AS n FROM range(100000000000)"
DEAF = "SELECT levenshtein(repeat('ab', 60000), repeat('ba', 60001)) AS n FROM range(1000) AS t(v)"
BOOKS = pa.table({"title": ["Dune", None, "Emma"], "year": pa.array([1965, 1990, None], pa.int32())})


@pytest.fixture
def apart() -> Iterator[Apart]:
    with Apart(MEMORY, 2) as made:
        yield made


def processes(within: str) -> list[int]:
    """That have this in their command line or environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if within.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue  # it has ended meanwhile
    return found


def until(true: Callable[[], bool], said: str) -> None:
    by = time.monotonic() + 20.0
    while not true():
        assert time.monotonic() < by, said
        time.sleep(0.01)


def impatient(seconds: float) -> Patience:
    patience = Patience()
    losing = threading.Timer(seconds, patience.lose)
    losing.daemon = True
    losing.start()
    return patience


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title, year + 1 AS next FROM books ORDER BY year NULLS FIRST",
        "SELECT list(title) AS titles, {'a': max(year)} AS most FROM books",
        "SELECT * FROM books WHERE false",
        "SELECT a.title FROM books a, books b, range(5000)",
        "SELECT 'x'::BLOB AS b, 1.50::DECIMAL(9, 2) AS d, DATE '2020-02-29' AS day, NULL AS nothing",
    ],
)
def test_rows_are_the_same_as_here(apart: Apart, sql: str) -> None:
    here = duck.run(sql, {"books": BOOKS})
    found, seconds = apart.run(sql, {"books": BOOKS}, None)
    assert found.schema == here.schema
    assert found.to_pylist() == here.to_pylist()
    assert 0.0 <= seconds < 10.0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nope FROM books",
        "SELECT title::INT FROM books",
        "SELECT 1 FROM",
        "SELECT error(title) FROM books",
    ],
)
def test_errors_are_the_same_as_here(apart: Apart, sql: str) -> None:
    with pytest.raises(duckdb.Error) as here:
        duck.run(sql, {"books": BOOKS})
    with pytest.raises(duckdb.Error) as there:
        apart.run(sql, {"books": BOOKS}, None)
    assert type(there.value) is type(here.value)
    assert duck.fault(there.value) == duck.fault(here.value)
    assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


def test_descriptions_are_the_same_as_here(apart: Apart) -> None:
    schemas = {"books": BOOKS.schema}
    sql = "SELECT title, length(title) + $1, year AS y FROM books"
    assert apart.describe(sql, schemas, [3]) == duck.names(sql, schemas, [3])
    with pytest.raises(NotOne):
        apart.describe("SELECT 1; SELECT 2", schemas, None)
    with pytest.raises(duckdb.Error) as here:
        duck.names("SELECT max(nope) FROM books", schemas)
    with pytest.raises(duckdb.Error) as there:
        apart.describe("SELECT max(nope) FROM books", schemas, None)
    assert duck.fault(there.value) == duck.fault(here.value)
    assert duck.fault(there.value).position is not None


def test_a_worker_loads_nothing_more_for_its_first_statement(apart: Apart) -> None:
    """Each of them would, and be busier with that than with what it is asked."""
    (worker,) = apart.idle
    before = _loaded(worker.pid)
    apart.describe("SELECT length(title) + $1 AS n FROM books", {"books": BOOKS.schema}, [1])
    apart.describe("SELECT upper(title) FROM books", {"books": BOOKS.schema}, None)
    apart.run("SELECT list(title) AS t, max(year) AS y FROM books", {"books": BOOKS}, None)
    with pytest.raises(duckdb.Error):
        apart.run("SELECT title::INT AS n FROM books", {"books": BOOKS}, None)
    assert apart.idle == [worker]
    assert _loaded(worker.pid) == before


def _loaded(pid: int) -> set[str]:
    """The libraries of a process."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split()[-1] for line in maps if line.endswith(".so")}


def test_nothing_of_the_machine_is_known_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_SECRET", "sesame-opens")
    with Apart(MEMORY, 2) as apart:
        pids = processes("mediator.statements.nursery")
        assert pids
        assert not set(pids) & set(processes("sesame-opens"))
        for sql in (
            "SELECT getenv('SITE_SECRET')",
            "SELECT * FROM read_text('/etc/hostname')",
            "SET threads = 2",
        ):
            with pytest.raises(duckdb.Error):
                apart.run(sql, {}, None)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('ab', 2000000000)) AS n",
        "SELECT lpad(title, 2147483647, 'x') AS t FROM books",
        "SELECT len(range(3000000000)) AS n",
        "SELECT list(v) AS l FROM range(50000000) AS t(v)",
        "SELECT string_agg(repeat('a', 100000), '') AS t FROM range(100000)",
    ],
)
def test_what_takes_too_much_memory_fails_alone(apart: Apart, sql: str) -> None:
    with pytest.raises((duckdb.Error, Unsupported)):
        apart.run(sql, {"books": BOOKS}, None)
    assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


def test_a_result_has_no_more_bytes_than_it_may(apart: Apart) -> None:
    with pytest.raises(TooMuch):
        apart.run("SELECT * FROM range(1000000)", {}, 1 << 20)
    assert apart.run("SELECT * FROM range(100000)", {}, 1 << 20)[0].num_rows == 100_000


@pytest.mark.parametrize("sql", [ENDLESS, DEAF])
def test_patience_that_is_lost_ends_a_statement(apart: Apart, sql: str) -> None:
    with impatient(0.3).at_hand(), pytest.raises(Interrupted):
        apart.run(sql, {}, None)
    assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


def test_who_waits_for_a_worker_may_lose_patience_too(apart: Apart) -> None:
    long = Patience()

    def endless() -> None:
        with long.at_hand(), pytest.raises(Interrupted):
            apart.run(ENDLESS, {}, None)

    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(endless) for _ in range(2)]
        until(lambda: len(apart.busy) == 2, "both workers are busy")
        with impatient(0.1).at_hand(), pytest.raises(Interrupted):
            apart.run("SELECT 1 AS one", {}, None)
        long.lose()
        for one in running:
            one.result()
    assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


def test_more_statements_than_workers(apart: Apart) -> None:
    def asked(n: int) -> int:
        found: int = apart.run(f"SELECT sum(v)::BIGINT AS s FROM range({n * 1000}) AS t(v)", {}, None)[0][
            "s"
        ][0].as_py()
        return found

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(asked, range(1, 101)))
    assert found == [sum(range(n * 1_000)) for n in range(1, 101)]


def test_a_worker_that_is_killed_is_replaced(apart: Apart) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(apart.run, ENDLESS, {}, None)
        until(lambda: len(apart.busy) == 1, "a worker is busy")
        for worker in apart.busy:
            os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(Unsupported, match="ended the process that ran it"):
            running.result(20.0)
    assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


def test_a_worker_that_has_ended_while_nobody_used_it_is_not_used(apart: Apart) -> None:
    for _ in range(3):
        apart.run("SELECT 1 AS one", {}, None)
        for worker in apart.idle:
            os.kill(worker.pid, signal.SIGKILL)
            until(lambda w=worker: not w.alive, "it has ended")  # type: ignore[misc]
        assert apart.run("SELECT 2 AS two", {}, None)[0].to_pylist() == [{"two": 2}]


def test_an_interrupt_that_comes_late_hurts_nobody(apart: Apart) -> None:
    """It is sent around the moment at which the statement ends, over and over."""
    for n in range(60):
        patience = Patience()
        threading.Timer(n * 0.0001, patience.lose).start()
        with patience.at_hand(), suppress(Interrupted):
            apart.run("SELECT 1 AS one", {}, None)
        assert apart.run("SELECT 2 AS two", {}, None)[0].to_pylist() == [{"two": 2}]


def test_a_nursery_that_is_killed_is_replaced(apart: Apart) -> None:
    for _ in range(3):
        for pid in processes("mediator.statements.nursery"):
            if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                os.kill(pid, signal.SIGKILL)
        with impatient(0.2).at_hand(), pytest.raises((Interrupted, Unsupported)):
            apart.run(DEAF, {}, None)  # takes its worker with it
        with pytest.raises(Unsupported):
            apart.run("SELECT lpad('', 2147483647, 'x') AS t, lpad('', 2147483647, 'x') AS s", {}, None)
        assert apart.run("SELECT 1 AS one", {}, None)[0].to_pylist() == [{"one": 1}]


_HOUSE = f"""
import sys
from mediator.statements.apart import Apart
with Apart({MEMORY}, 2) as apart:
    apart.run("SELECT 1", {{}}, None)
    print("begun", flush=True)
    if sys.argv[1] == "runs":
        apart.run("{ENDLESS}", {{}}, None)
    sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["waits", "runs"])
def test_nothing_is_left_of_a_process_that_was_killed(what: str) -> None:
    mark = f"HOUSE-{os.getpid()}-{what}"
    process = subprocess.Popen(
        [sys.executable, "-c", _HOUSE, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LANG": mark},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        until(lambda: len(processes(mark)) >= 3, "it has a nursery and a worker")
        process.kill()
    until(lambda: not processes(mark), "all have ended")


def test_nothing_is_left_after_the_block() -> None:
    def endless() -> None:
        with pytest.raises(Unsupported):
            apart.run(ENDLESS, {}, None)

    with ThreadPoolExecutor(1) as threads:
        with Apart(MEMORY, 2) as apart:
            running = threads.submit(endless)
            until(lambda: len(apart.busy) == 1, "a worker is busy")
            pids = [worker.pid for worker in apart.busy]
        running.result(20.0)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "its workers have ended")
