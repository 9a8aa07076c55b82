"""`mediator query --trace`, `mediator trace show | replay`: what was decided, and whether it is decided so again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from fixtures import Web
from tests.cli.kit import at, called, finished
from tests.cli.test_interruptions import ENDLESS_WAIT, eventually, running

SQL = "SELECT b.title, o.price, p.prize FROM books b JOIN offers o ON o.isbn = b.isbn JOIN prizes p ON p.isbn = b.isbn"


@pytest.fixture
def trace(calm: Web, tmp_path: Path) -> Path:
    path = tmp_path / "run.trace"
    result = called("query", SQL, *at(calm), "--quiet", "--policy", "random", "--trace", str(path))
    assert result.exit_code == 0
    return path


def test_show_says_what_was_decided_asked_and_found(trace: Path) -> None:
    result = called("trace", "show", str(trace))
    assert result.exit_code == 0
    assert "policy random, seed 0" in result.stdout
    assert "ask 0: books.all" in result.stdout
    assert ", at first" in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].endswith("rows")
    assert "complete; " in result.stdout


def test_show_has_the_figures_where_they_are_wanted(calm: Web, tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    called("query", SQL, *at(calm), "--quiet", "--policy", "lottery", "--trace", str(path))
    assert "tickets" in called("trace", "show", str(path), "--figures").stdout


def test_replay_finds_the_same_decisions(trace: Path) -> None:
    result = called("trace", "replay", str(trace))
    assert result.exit_code == 0
    assert result.stdout.startswith("random decides the same: ")


def test_replay_says_which_decision_differs_first_and_exits_with_3(trace: Path) -> None:
    first, *rest = trace.read_text().splitlines(keepends=True)
    header = json.loads(first)
    header["settings"]["seed"] = 12
    trace.write_text("".join([json.dumps(header) + "\n", *rest]))
    result = called("trace", "replay", str(trace))
    assert result.exit_code == 3
    assert "random decides otherwise" in result.stdout
    assert "the first: line " in result.stdout


def test_another_policy_is_a_second_opinion(trace: Path) -> None:
    result = called("trace", "replay", str(trace), "--policy", "fixed")
    assert result.exit_code == 0
    assert "fixed would have decided otherwise than random in " in result.stdout
    assert "% of the rows" in result.stdout


def test_what_is_no_trace_is_told_in_one_line(trace: Path, tmp_path: Path) -> None:
    foreign, cut = tmp_path / "foreign", tmp_path / "cut"
    foreign.write_text("isbn,title\n")
    cut.write_text(trace.read_text()[:-30])
    for path, said in ((foreign, "not a trace"), (cut, "cut short"), (tmp_path / "none", "No such file")):
        for command in ("show", "replay"):
            result = called("trace", command, str(path))
            assert result.exit_code == 2
            assert said in result.stderr.replace("\n", " ")
            assert str(path) in result.stderr.replace("\n", "")
    unknown = called("trace", "replay", str(trace), "--policy", "crystal")
    assert unknown.exit_code == 2
    assert "there is no policy 'crystal'" in unknown.stderr.replace("\n", " ")


def test_what_there_is_of_a_trace_that_was_cut_short_is_shown(trace: Path) -> None:
    trace.write_text("".join(trace.read_text().splitlines(keepends=True)[:-1]))
    result = called("trace", "show", str(trace))
    assert "ask 0: books.all" in result.stdout
    assert result.exit_code == 2


def test_a_trace_that_cannot_be_written_is_told_before_anything_is_asked(trade: Web, tmp_path: Path) -> None:
    result = called("query", SQL, *at(trade), "--trace", str(tmp_path / "no" / "trace"))
    assert result.exit_code == 2
    assert "the trace cannot be written: No such file" in result.stderr.replace("\n", " ")
    assert trade.requests == 0


def test_an_interrupted_run_leaves_a_whole_trace(trade: Web, tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    trade.behave("books", ENDLESS_WAIT)
    with running("query", SQL, *at(trade), "--format", "json", "--trace", str(path)) as process:
        eventually(lambda: trade.counters["books"].open > 0)
        process.send_signal(signal.SIGINT)
        code, _, _ = finished(process)
    assert code == 130
    assert json.loads(path.read_text().splitlines()[-1])["why"] == "interrupted"
    assert called("trace", "replay", str(path)).exit_code == 0
