"""`mediator query`: answers, exit codes, the report, and where the query and the catalog come from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from api.options import GoalName, PolicyName
from fixtures import Behaviour, Fault, Web
from mediator.assembly import POLICIES
from mediator.eddy.goals.goal import GOALS
from tests.cli.kit import BOOK_TRADE, at, bag, called, truth

HANGING = Behaviour(faults=(Fault("hang", probability=1.0),))
REDESIGNED = Behaviour(faults=(Fault("schema", probability=1.0),))
JOIN = """
SELECT b.title, a.name, o.shop, o.price FROM books b JOIN authors a ON a.id = b.author_id
JOIN offers o ON o.isbn = b.isbn WHERE b.year > $since
"""


@pytest.mark.parametrize("policy", list(PolicyName))
def test_the_answer_is_that_of_the_rows_that_the_sites_hold(calm: Web, policy: str) -> None:
    result = called("query", JOIN, *at(calm), "-p", "since=2000", "--format", "ndjson", "--policy", policy)
    assert result.exit_code == 0
    wanted = truth(calm, JOIN.replace("$since", "2000")).to_pylist()
    assert bag([json.loads(line) for line in result.stdout.splitlines()]) == bag(wanted)


def test_the_policies_are_those_of_the_engine() -> None:
    assert [policy.value for policy in PolicyName] == list(POLICIES)


def test_the_goals_are_those_of_the_engine() -> None:
    assert [goal.value for goal in GoalName] == list(GOALS)


@pytest.mark.parametrize("goal", list(GoalName))
def test_the_answer_is_the_same_whatever_the_goal(calm: Web, goal: str) -> None:
    result = called("query", JOIN, *at(calm), "-p", "since=2000", "--format", "ndjson", "--goal", goal)
    assert result.exit_code == 0
    wanted = truth(calm, JOIN.replace("$since", "2000")).to_pylist()
    assert bag([json.loads(line) for line in result.stdout.splitlines()]) == bag(wanted)


def test_explain_says_what_the_goal_means(calm: Web) -> None:
    said = called("explain", JOIN, *at(calm), "-p", "since=2000", "--goal", "fewest_calls").stdout
    assert "goal fewest_calls: lookups wait until nothing else can move" in " ".join(said.split())


def test_a_goal_that_there_is_not_is_refused(calm: Web) -> None:
    result = called("query", JOIN, *at(calm), "--goal", "cheapest")
    assert result.exit_code == 2
    assert "fewest_calls" in result.stderr


def test_a_complete_answer_says_so(calm: Web) -> None:
    result = called("query", "SELECT title FROM books", *at(calm))
    verdict, books = result.stderr.splitlines()
    assert verdict.startswith("complete · 60 rows in ")
    assert books == "  books: 1 asked, 1 answered, 60 rows"


def test_a_limit_that_is_reached_is_complete(calm: Web) -> None:
    result = called("query", "SELECT title FROM books LIMIT 3", *at(calm))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 4
    assert "LIMIT reached" in result.stderr


def test_quiet_is_quiet_unless_something_is_missing(trade: Web) -> None:
    sql = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
    assert called("query", sql, *at(trade), "--quiet").stderr == ""
    trade.behave("authors", REDESIGNED)
    assert "partial" in called("query", sql, *at(trade), "--quiet").stderr


def test_what_failed_is_named_and_the_rest_is_answered(trade: Web) -> None:
    trade.behave("prizes", REDESIGNED)
    sql = "SELECT title AS x FROM books UNION ALL SELECT prize FROM prizes"
    result = called("query", sql, *at(trade), "--format", "ndjson")
    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 60
    assert "partial: not all of prizes was answered" in result.stderr
    assert "missing: scan all: schema changed: prizes.all at laurels" in result.stderr


def test_no_rows_is_never_said_for_no_answer(trade: Web) -> None:
    trade.behave("books", REDESIGNED)
    result = called("query", "SELECT title FROM books", *at(trade))
    assert result.exit_code == 3
    assert "that is not to say that there is none" in result.stderr


def test_the_time_limit_ends_a_run_that_would_not_end(trade: Web) -> None:
    trade.behave("authors", HANGING)
    sql = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
    result = called("query", sql, *at(trade), "--max-seconds", "0.2")
    assert result.exit_code == 3
    assert "partial: the query may take 0.2 s (max_seconds), and needs more" in result.stderr


def test_from_stdin_and_from_a_file(calm: Web, tmp_path: Path) -> None:
    sql = "SELECT count(*) AS n FROM books\n"
    file = tmp_path / "query.sql"
    file.write_text(sql)
    assert called("query", "-", *at(calm), input=sql).stdout == "n\n60\n"
    assert called("query", "--file", str(file), *at(calm)).stdout == "n\n60\n"


def test_a_parameter_is_a_value_never_sql(calm: Web) -> None:
    sql = "SELECT count(*) AS n FROM books WHERE title = $t"
    assert called("query", sql, *at(calm), "-p", "t=x' OR 'a' = 'a").stdout == "n\n0\n"
    title = calm.tables["books"]["title"][0].as_py()
    assert called("query", sql, *at(calm), "-p", f"t={title}").stdout != "n\n0\n"


def test_the_catalog_of_the_environment(calm: Web) -> None:
    files = os.pathsep.join(str(BOOK_TRADE / name) for name in ("books.yaml", "prizes.yaml"))
    sql = "SELECT count(*) AS n FROM books, prizes WHERE books.isbn = prizes.isbn"
    result = called(
        "query", sql, "--set", f"book_trade={calm.url}", "--format", "json", env={"MEDIATOR_CATALOG": files}
    )
    assert json.loads(result.stdout) == truth(calm, sql).to_pylist()


def test_several_catalogs(calm: Web) -> None:
    options = ["--set", f"book_trade={calm.url}"]
    for name in ("books.yaml", "prizes.yaml"):
        options += ["--catalog", str(BOOK_TRADE / name)]
    result = called("sources", *options)
    assert [line for line in result.stdout.splitlines() if line and not line.startswith(" ")] == [
        "books   key: isbn",
        "prizes",
    ]


def test_a_fault_of_the_engine_is_not_blamed_on_the_query(calm: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something nobody thought of")

    monkeypatch.setattr("mediator.answering.Mediator.answering", broken)
    result = called("query", "SELECT title FROM books", *at(calm))
    assert result.exit_code == 1
    assert "internal error: RuntimeError: something nobody thought of" in result.stderr


def test_a_full_disk_is_told(calm: Web) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    result = called("query", "SELECT title FROM books", *at(calm), "--output", "/dev/full")
    assert result.exit_code == 1
    assert "No space left" in result.stderr
