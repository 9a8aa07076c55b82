"""`mediator explain --live`: the query runs, and how its rows go and why is shown, not the rows."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace

from rich.console import Console

from api.watching import Onlooker, _share
from fixtures import Web
from mediator.live import Live, Share
from tests.cli.kit import at, called, finished
from tests.cli.test_interruptions import ENDLESS_WAIT, eventually, running

SQL = "SELECT b.title, o.price, p.prize FROM books b JOIN offers o ON o.isbn = b.isbn JOIN prizes p ON p.isbn = b.isbn"


def test_a_line_for_each_decision_and_then_the_shares(calm: Web) -> None:
    result = called("explain", "--live", SQL, *at(calm))
    assert result.exit_code == 0
    head, _, summary = result.stdout.partition("rows were found, which are not shown")
    assert " s  b: " in head
    assert ", at first" in head or " since " in head
    assert "% of them" in summary
    assert "why: " in summary
    assert "complete\n" in summary
    assert "offers: " in summary


def test_the_rows_are_not_shown(calm: Web) -> None:
    said = called("explain", "--live", SQL, *at(calm)).stdout
    titles = calm.tables["books"].column("title").to_pylist()
    assert not [title for title in titles if title in said]


def test_the_policy_can_be_chosen_for_a_live_run_alone(calm: Web) -> None:
    assert "policy random" in called("explain", "--live", "--policy", "random", SQL, *at(calm)).stdout
    refused = called("explain", "--policy", "random", SQL, *at(calm))
    assert refused.exit_code == 2
    assert "it goes with --live" in refused.stderr.replace("\n", " ")


def test_a_query_at_fault_is_told_before_anything_is_asked(trade: Web) -> None:
    result = called("explain", "--live", "SELECT nothing FROM books", *at(trade))
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert trade.requests == 0


def test_a_query_that_fails_on_a_value_is_told_as_query_tells_it(calm: Web) -> None:
    fails = "SELECT CAST(b.title AS INT) AS x FROM books b"
    live, plain = called("explain", "--live", fails, *at(calm)), called("query", fails, *at(calm))
    assert live.exit_code == plain.exit_code == 2
    for said in (live.stderr, plain.stderr):
        assert said.startswith("error: Could not convert string ")


def test_an_answer_that_is_partial_has_its_exit_code(trade: Web) -> None:
    from fixtures import Behaviour, Fault

    trade.behave("prizes", Behaviour(faults=(Fault("error", probability=1.0, status=403),)))
    result = called("explain", "--live", SQL, *at(trade))
    assert result.exit_code == 3
    assert "partial: " in result.stdout


def test_ctrl_c_ends_it_with_what_was_seen(trade: Web) -> None:
    trade.behave("books", ENDLESS_WAIT)
    with running("explain", "--live", SQL, *at(trade)) as process:
        eventually(lambda: trade.counters["books"].open > 0)
        process.send_signal(signal.SIGINT)
        code, said, _ = finished(process)
    assert code == 130
    assert b"stopping" in said
    assert b"0 rows were found" in said
    assert b"partial: interrupted" in said
    eventually(lambda: trade.counters["books"].open == 0)


def test_on_a_terminal_it_is_redrawn(calm: Web) -> None:
    ours, theirs = pty.openpty()
    script = "from api.cli import main; main()"
    arguments = [sys.executable, "-c", script, "explain", "--live", SQL, *at(calm)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "60"}
    with subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert process.returncode == 0
    assert b"rows found so far, which are not shown" in said
    assert b"waiting for the limiter" in said
    assert b"covered" in said
    assert b"rows were found, which are not shown" in said


def test_nothing_is_drawn_for_a_query_that_has_not_begun() -> None:
    text = io.StringIO()
    onlooker = Onlooker(Console(file=text, width=100))
    onlooker.show(Live())
    onlooker.close()
    assert text.getvalue() == ""


def test_one_row_is_no_rows() -> None:
    share = Share("o", True, 1, 1, 1.0, 1.0, 12.0, {})
    assert _share(share) == "o: 100% of them, 1 row; 1 row for each, 12 µs a row"
    assert _share(replace(share, rows=1_200, fan_out=0.0)) == (
        "o: 100% of them, 1,200 rows; no row for each, 12 µs a row"
    )
