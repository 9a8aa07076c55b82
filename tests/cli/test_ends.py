"""How a command ends where it cannot write or read: a full disk, a reader that left, a descriptor that is closed.

Each in a process of its own, and in both ways that Python can hold, or not hold, what is written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fixtures import Behaviour, Fault, Web
from tests.cli.kit import PATIENCE, at, called

FULL = "No space left on device"
SQL = "SELECT isbn FROM books"
# Much more than a pipe holds.
MANY = "SELECT b.* FROM books a, books b"
MANY_ROWS = 60 * 60
_SCRIPT = "from api.cli import main; main()"

pytestmark = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no device that is always full"
)


@pytest.fixture(params=[False, True], ids=["buffered", "unbuffered"])
def env(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of a command, which says whether its Python holds back what is written."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**env, "PYTHONUNBUFFERED": "1"} if request.param else env


def ran(env: dict[str, str], shell: str, *arguments: str, script: str = _SCRIPT) -> tuple[int, str, str]:
    """A command as a shell starts it, where it is "$@"; the exit code is the shell's."""
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", script, *arguments],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def nobody_reads() -> Iterator[int]:
    """The end of a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def forsaken(env: dict[str, str], *arguments: str) -> tuple[int, bytes]:
    """Its exit code and what it says on stderr, where nobody reads its stdout."""
    with nobody_reads() as writing:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
    return done.returncode, done.stderr


def test_a_file_that_may_not_grow(calm: Web, tmp_path: Path, env: dict[str, str]) -> None:
    """A write is taken in part then, which is no error before the next one."""
    file = tmp_path / "out.ndjson"
    shell = f'ulimit -f 200; exec "$@" > {file}'
    code, _, said = ran(env, shell, "query", MANY, *at(calm), "--format", "ndjson", "--no-progress")
    assert code == 1
    assert said.startswith("error: standard output: File too large\n")
    assert "complete ·" not in said
    assert f"{MANY_ROWS:,} rows" not in said


def test_a_file_of_its_own_that_may_not_grow(calm: Web, tmp_path: Path, env: dict[str, str]) -> None:
    file = tmp_path / "out.ndjson"
    shell = 'ulimit -f 200; exec "$@"'
    code, _, said = ran(env, shell, "query", MANY, *at(calm), "--output", str(file), "--no-progress")
    assert code == 1
    assert said.startswith(f"error: {file}: File too large\n")
    assert "complete ·" not in said


def test_a_pipe_that_does_not_block_gets_everything(calm: Web, env: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, "query", MANY, *at(calm), "--format", "csv", "--no-progress"],
        env=env,
        stdout=writing,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writing)
        assert process.stderr is not None
        # Nobody reads before the pipe is full.
        time.sleep(1.0)
        with open(reading, "rb") as pipe:
            lines = pipe.read().count(b"\n")
        said = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 0, said
    assert lines == 1 + MANY_ROWS
    assert f"complete · {MANY_ROWS:,} rows" in said


def test_lists_in_a_pipe_that_does_not_block(calm: Web, env: dict[str, str]) -> None:
    """They are text, which goes another way than rows."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # No more than a page of the pipe is left.
    size = 0
    try:
        while True:
            size += os.write(writing, b" " * 4096)
    except BlockingIOError:
        os.read(reading, 4096)
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, "wrapper", "schema"], env=env, stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        assert process.stderr is not None
        time.sleep(1.0)
        with open(reading, "rb") as pipe:
            text = pipe.read()
        assert process.wait(PATIENCE) == 0, process.stderr.read().decode()
    assert text.rstrip().endswith(b"}")


@pytest.mark.parametrize("format_", ["csv", "json", "ndjson", "table", "arrow"])
def test_a_full_disk_is_told_with_its_name(calm: Web, env: dict[str, str], format_: str) -> None:
    code, _, said = ran(
        env, 'exec "$@" > /dev/full', "query", SQL, *at(calm), "--format", format_, "--no-progress"
    )
    assert code == 1
    first, *report = said.splitlines()
    assert first == f"error: standard output: {FULL}"
    assert "Exception ignored" not in said
    # What has a head is not written that far, and nothing is asked.
    assert bool(report) == (format_ not in ("csv", "json"))


@pytest.mark.parametrize("format_", ["ndjson", "parquet"])
def test_the_report_follows_where_a_file_is_full(calm: Web, env: dict[str, str], format_: str) -> None:
    where = ["--output", "/dev/full", "--format", format_, "--no-progress"]
    code, _, said = ran(env, 'exec "$@"', "query", SQL, *at(calm), *where)
    assert code == 1
    first, *report = said.splitlines()
    assert first == f"error: /dev/full: {FULL}"
    assert bool(report) == (format_ == "ndjson")  # a Parquet file begins with a mark


def test_a_parquet_file_that_is_full_at_its_end(calm: Web, tmp_path: Path, env: dict[str, str]) -> None:
    file = tmp_path / "out.parquet"
    sql = "SELECT md5(a.isbn || b.isbn || c.isbn) AS hash FROM books a, books b, books c WHERE c.year > 1900"
    code, _, said = ran(
        env, 'ulimit -f 200; exec "$@"', "query", sql, *at(calm), "-o", str(file), "--no-progress"
    )
    assert code == 1
    assert said.startswith(f"error: {file}: File too large\n")
    assert "complete ·" not in said
    with pytest.raises(Exception, match="magic bytes"):
        pq.read_table(file)


def test_a_full_disk_under_other_commands(calm: Web, env: dict[str, str]) -> None:
    for command in (
        ["explain", SQL, *at(calm)],
        ["explain", "--live", SQL, *at(calm)],
        ["sources", *at(calm)],
        ["wrapper", "schema"],
        ["--help"],
        ["query", "--help"],
    ):
        code, _, said = ran(env, 'exec "$@" > /dev/full', *command)
        assert (code, said) == (1, f"error: standard output: {FULL}\n"), command


def test_a_full_disk_and_partial_answers(calm: Web, env: dict[str, str]) -> None:
    code, _, said = ran(env, 'exec "$@" > /dev/full', "query", SQL, *at(calm), "--partials", "--no-progress")
    assert code == 1
    first, verdict, *_ = said.splitlines()
    assert first == f"error: standard output: {FULL}"
    assert " · 0 rows in " in verdict
    assert "complete ·" not in verdict


def test_head_ends_every_format_quietly(calm: Web, env: dict[str, str]) -> None:
    for format_ in ("csv", "json", "ndjson", "table"):
        shell = '{ "$@"; echo $? >&2; } | head -n 1 > /dev/null'
        _, _, said = ran(env, shell, "query", MANY, *at(calm), "--format", format_, "--no-progress")
        assert said == "141\n", format_


def test_nobody_reads_what_a_command_says(calm: Web, env: dict[str, str]) -> None:
    for command in (
        ["query", SQL, *at(calm), "--no-progress"],
        ["query", SQL, *at(calm), "--no-progress", "--format", "json"],
        ["explain", SQL, *at(calm)],
        ["explain", "--live", SQL, *at(calm)],
        ["sources", *at(calm)],
        ["doctor"],
        ["wrapper", "schema"],
        ["--help"],
        ["demo", "--help"],
    ):
        assert forsaken(env, *command) == (141, b""), command


def test_nobody_reads_the_report(calm: Web, env: dict[str, str]) -> None:
    """The rows are what was asked for: how the query went is still how the command ends."""
    for sql, code in ((SQL, 0), ("SELECT nope FROM books", 2)):
        with nobody_reads() as writing:
            done = subprocess.run(
                [sys.executable, "-c", _SCRIPT, "query", sql, *at(calm), "--no-progress"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=writing,
                timeout=PATIENCE,
            )
        assert done.returncode == code
        assert done.stdout.count(b"\n") == (61 if code == 0 else 0)


def test_a_report_on_a_full_disk(calm: Web, env: dict[str, str]) -> None:
    for arguments, expected in ((["query", SQL, *at(calm)], 0), (["query", "--no-such-option"], 2)):
        code, rows, _ = ran(env, 'exec "$@" 2> /dev/full', *arguments)
        assert code == expected
        assert rows.count("\n") == (61 if code == 0 else 0)


def test_a_standard_input_that_is_closed(calm: Web, env: dict[str, str]) -> None:
    for command in ("query", "explain"):
        code, _, said = ran(env, 'exec "$@" <&-', command, "-", *at(calm))
        assert code == 2
        assert said.startswith("error: standard input is closed: "), said


def test_a_replay_on_a_full_disk(calm: Web, tmp_path: Path, env: dict[str, str]) -> None:
    file = str(tmp_path / "books.cassette")
    assert called("wrapper", "record", *at(calm), "-o", file, "--sql", SQL).exit_code == 0
    command = ["wrapper", "replay", *at(calm), file, SQL, "--format", "ndjson"]
    code, _, said = ran(env, 'exec "$@" > /dev/full', *command)
    assert code == 1
    assert said.startswith(f"error: standard output: {FULL}\n")


def test_an_interrupt_that_nobody_reads_of(trade: Web, env: dict[str, str]) -> None:
    trade.behave("books", Behaviour(faults=(Fault("hang", probability=1.0),)))
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, "explain", "--live", SQL, *at(trade)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        end = time.monotonic() + PATIENCE
        while not trade.counters["books"].open:
            assert time.monotonic() < end, "it never asked"
            time.sleep(0.01)
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 141
