"""Ctrl-C, and readers that leave: what was found is kept, what was asked is called back."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow.csv as csv
import pytest

from api.interrupting import interrupting
from fixtures import Behaviour, Fault, Web, book_trade
from tests.cli.kit import PATIENCE, at, finished, started

PAGE = 20
ENDLESS_WAIT = Behaviour(faults=(Fault("hang", probability=1.0),))


def eventually(holds: Callable[[], bool]) -> None:
    """Waits for as long as it may take on any machine."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def hang_after(web: Web, name: str, answered: int) -> None:
    """The first requests are answered; those after them never are."""
    late = tuple(range(answered + 1, answered + 500))
    web.behave(name, Behaviour(faults=(Fault("hang", requests=late),)))


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = started(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


# Presses Ctrl-C while a module is looked for, and then runs the command.
_PRESSED = """
import signal, sys

class Pressing:
    def find_spec(self, name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Pressing())
from api.entry import main
main()
"""


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("typer", ["query", "SELECT 1"]),
        ("api.running", ["query", "SELECT 1", "--demo"]),
        ("numba", ["query", "SELECT 1", "--demo"]),
        ("api.explaining", ["explain", "SELECT 1", "--demo"]),
        ("api.listing", ["sources", "--demo"]),
    ],
)
def test_an_interrupt_while_a_command_is_loaded_ends_it(
    module: str, command: list[str], buffered: bool
) -> None:
    """As it ends any program: whoever started it sees the signal, and a shell 130."""
    code, _, said = _pressed(module, command, buffered)
    assert (code, said) == (-signal.SIGINT, "")
    code, _, said = _pressed(module, command, buffered, shell='"$@"; exit $?')
    assert (code, said) == (130, "")


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    ("module", "command"),
    [("api.http.serving", ["serve", "--demo"]), ("pipeline.packages", ["doctor"])],
)
def test_other_commands_hear_it_as_they_did(module: str, command: list[str], buffered: bool) -> None:
    """What they have begun, they end."""
    code, _, said = _pressed(module, command, buffered)
    assert (code, said) == (130, "")


@pytest.mark.parametrize("buffered", [True, False])
def test_a_command_that_is_not_to_hear_it_is_not_ended(buffered: bool) -> None:
    """As one that a shell has put into the background."""
    shell = "trap '' INT; exec \"$@\""
    code, rows, said = _pressed("api.listing", ["sources", "--demo"], buffered, shell)
    assert (code, said) == (0, "")
    assert "reviews   key: isbn, reviewer" in rows


def _pressed(
    module: str, command: list[str], buffered: bool, shell: str = 'exec "$@"'
) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    script = _PRESSED.format(module=module)
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", script, *command],
        env=env if buffered else {**env, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


class _Interrupted(io.BytesIO):
    """A file, in the middle of whose reading Ctrl-C is pressed."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            signal.raise_signal(signal.SIGINT)
        return data


async def test_an_interrupt_while_arrow_reads_spoils_no_page_and_is_told() -> None:
    told = asyncio.Event()
    with interrupting(told.set):
        page = csv.read_csv(_Interrupted(b"isbn\n9780000000001\n"))
        await asyncio.wait_for(told.wait(), PATIENCE)
    assert page.num_rows == 1


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_query_keeps_what_it_found(trade: Web, sign: signal.Signals) -> None:
    hang_after(trade, "books", 1)
    with running("query", "SELECT isbn FROM books", *at(trade), "--format", "json") as process:
        assert process.stdout is not None
        head = process.stdout.readline() + process.stdout.readline()
        process.send_signal(sign)
        code, rest, said = finished(process)
    assert "stopping" in said
    assert code == 130
    assert len(json.loads(head + rest)) == PAGE
    assert "partial: interrupted" in said
    eventually(lambda: trade.counters["books"].open == 0)
    assert trade.counters["books"].abandoned > 0


def test_an_interrupted_aggregate_is_answered_over_what_arrived(trade: Web) -> None:
    hang_after(trade, "books", 1)
    sql = "SELECT count(*) AS n FROM books UNION ALL SELECT isbn IS NULL FROM offers WHERE isbn = 'none'"
    with running("query", sql, *at(trade), "--format", "ndjson") as process:
        # The pages that hang are asked for by what the first one said.
        eventually(lambda: trade.counters["books"].requests > 1)
        process.send_signal(signal.SIGINT)
        code, rows, said = finished(process)
    assert code == 130
    assert json.loads(rows) == {"n": PAGE}
    assert "partial: interrupted" in said


def test_an_interrupt_before_anything_came(trade: Web) -> None:
    trade.behave("books", ENDLESS_WAIT)
    with running("query", "SELECT isbn FROM books", *at(trade), "--format", "json") as process:
        eventually(lambda: trade.counters["books"].open > 0)
        process.send_signal(signal.SIGINT)
        code, rows, said = finished(process)
    assert code == 130
    assert json.loads(rows) == []
    assert "partial: interrupted" in said


def test_a_second_interrupt_ends_at_once() -> None:
    # Far more than a pipe holds, and nobody reads it: the run cannot come to its end by itself.
    with (
        book_trade(5_000, book_page=1_000) as web,
        running("query", "SELECT * FROM books", *at(web), "--no-progress") as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert b"stopping" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def test_a_reader_that_leaves_ends_the_query_quietly(trade: Web) -> None:
    hang_after(trade, "books", 1)
    with running("query", "SELECT isbn FROM books", *at(trade), "--format", "ndjson") as process:
        assert process.stdout is not None
        process.stdout.readline()
        # Nothing more will be written: that nobody reads has to be noticed without.
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    eventually(lambda: trade.counters["books"].open == 0)


def test_head_gets_its_lines_and_no_complaint(calm: Web) -> None:
    command = [sys.executable, "-c", "from api.cli import main; main()", "query"]
    with subprocess.Popen(
        [*command, "SELECT b.* FROM books a, books b", *at(calm), "--no-progress"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        head = subprocess.run(["head", "-n", "2"], stdin=process.stdout, capture_output=True, check=True)
        process.stdout.close()
        assert process.wait(PATIENCE) in (0, 141)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert head.stdout.startswith(b"isbn,title,")
    assert head.stdout.count(b"\n") == 2


@pytest.mark.parametrize("interrupted", [False, True])
def test_in_a_terminal(trade: Web, interrupted: bool) -> None:
    """Progress is redrawn below the rows, and gone at the end; the cursor is back."""
    if interrupted:
        hang_after(trade, "books", 1)
    sql = "SELECT isbn FROM books" if interrupted else "SELECT count(*) AS n FROM books"
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(
            sys.executable,
            [sys.executable, "-c", "from api.cli import main; main()", "query", sql, *at(trade)],
        )
    said = b""
    pressed = False
    try:
        while chunk := _read(terminal):
            said += chunk
            if interrupted and not pressed and b"in flight" in said and b"978" in said:
                pressed = True
                os.write(terminal, b"\x03")
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (130 if interrupted else 0)
    assert b"waiting for the limiter" in said
    assert said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")
    assert said.rindex(b"partial" if interrupted else b"complete") > said.rindex(b"in flight")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        # Linux says so when the last process has left the terminal.
        return b""
