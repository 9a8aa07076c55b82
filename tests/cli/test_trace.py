"""`mediator query --trace`, `mediator trace show | replay`: what was decided, and whether it is decided so again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from api.tracing import outcome
from fixtures import Web
from mediator.tracing.replaying import Replay
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"ask":1}', "line 2: cannot be understood: there is no 'bind_fields'"),
        ('{"decision":1}', "line 2: cannot be understood: 'int' object is not subscriptable"),
        ('{"ended":1}', "line 2: cannot be understood: there is no 'how'"),
        ('{"at":"soon","ended":1,"how":"answered"}', "line 2: cannot be understood: Unknown format code"),
        ('{"over":"complete","why":"","rows":"x","lines":2}', "line 2: cannot be understood: Cannot specify"),
        ('{"over":"complete","lines":2}', "line 2: cannot be understood: there is no 'why'"),
    ],
)
def test_a_line_that_no_trace_has_is_told_with_its_number(trace: Path, line: str, said: str) -> None:
    trace.write_text(trace.read_text().splitlines(keepends=True)[0] + line + "\n")
    result = called("trace", "show", str(trace))
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


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


def test_neither_file_is_touched_where_one_cannot_be_written(trade: Web, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("kept")
    result = called("query", SQL, *at(trade), "--trace", str(tmp_path / "no" / "trace"), "-o", str(out))
    assert result.exit_code == 2
    assert out.read_text() == "kept"
    assert trade.requests == 0


@pytest.mark.parametrize("there", [True, False])
def test_a_trace_and_answers_are_not_written_to_one_file(calm: Web, tmp_path: Path, there: bool) -> None:
    path, other = tmp_path / "both.csv", tmp_path / "also.csv"
    other.symlink_to(path)
    if there:
        path.write_text("kept")
    result = called("query", SQL, *at(calm), "--trace", str(other), "-o", str(path))
    assert result.exit_code == 2
    assert "the answers are written there" in " ".join(result.stderr.split())
    assert not there or path.read_text() == "kept"
    to_nowhere = called("query", SQL, *at(calm), "-q", "--trace", "/dev/null", "-o", "/dev/null")
    assert to_nowhere.exit_code == 0


def test_a_trace_is_not_written_to_standard_output(calm: Web) -> None:
    result = called("query", SQL, *at(calm), "--trace", "-")
    assert result.exit_code == 2
    assert "a trace is written to a file" in " ".join(result.stderr.split())


def test_a_trace_that_is_not_whole_is_told_however_quiet(calm: Web) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    result = called("query", SQL, *at(calm), "-q", "--trace", "/dev/full", "-o", "/dev/null")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert said == "warning: the trace /dev/full is not whole: No space left on device"


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


def test_shares_and_counts_are_said_as_they_are_read() -> None:
    def said(elsewhere: int, rows: int) -> str:
        found = Replay("rank", "fixed", choices=12, rows=rows, differences=1, rows_elsewhere=elsewhere)
        return str(next(outcome(found)))

    assert said(0, 432).endswith("in 1 of 12 choices for 432 rows: for none of the rows")
    assert said(1, 432).endswith("for 0.2% of the rows")
    assert said(1, 100_000).endswith("for less than 0.1% of the rows")
    assert str(next(outcome(Replay("rank", "rank", choices=1, rows=1)))).endswith("1 choice for 1 row")
