"""Whatever is wrong is told in one message that names it and the way out; exit code 2, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import Web
from tests.cli.kit import BOOK_TRADE, PATIENCE, at, called


def refused(*arguments: str, input: str | None = None) -> str:
    """What is said to a command that cannot be carried out."""
    result = called(*arguments, input=input)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize(
    ("sql", "said", "under"),
    [
        ("SELEC title FROM books", "did you mean SELECT?", "SELEC"),
        ("SELECT title FROM bocks", "there is no relation 'bocks'", "bocks"),
        ("SELECT titel FROM books", "there is no column 'titel'", "titel"),
        ("SELECT title + 1 FROM books", "types", "+ 1"),
        ("SELECT *\nFROM holdings", "needs isbn and library_id", "holdings"),
    ],
)
@pytest.mark.parametrize("command", ["query", "explain"])
def test_the_place_in_the_statement_is_marked(
    calm: Web, command: str, sql: str, said: str, under: str
) -> None:
    told = refused(command, sql, *at(calm))
    assert said in told
    line, mark = _marked(told)
    assert line[mark:].startswith(under)


def test_a_misspelt_name_is_guessed(calm: Web) -> None:
    assert "did you mean books?" in refused("query", "SELECT title FROM bocks", *at(calm))
    assert "did you mean title?" in refused("query", "SELECT titel FROM books", *at(calm))


@pytest.mark.parametrize("command", ["query", "explain"])
def test_what_cannot_be_answered_comes_with_advice(calm: Web, command: str) -> None:
    told = refused(command, "SELECT * FROM holdings h JOIN books b USING (isbn)", *at(calm))
    assert "library_id" in told
    assert "join it with libraries (ON libraries.library_id = h.library_id)" in told
    assert "add WHERE h.library_id = ..." in told


def test_nothing_is_asked_for_a_bad_query(trade: Web, tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("as it was")
    refused("query", "SELECT titel FROM books", *at(trade), "--output", str(path))
    assert trade.requests == 0
    assert path.read_text() == "as it was"


def test_a_fault_that_only_the_rows_show_keeps_the_answers_found(calm: Web) -> None:
    sql = "SELECT CAST(CASE WHEN year > 1900 THEN title ELSE '1' END AS INTEGER) AS n FROM books"
    result = called("query", sql, *at(calm), "--format", "json")
    assert result.exit_code == 2
    assert isinstance(json.loads(result.stdout), list)
    assert result.stderr.startswith("error: ")


def test_there_has_to_be_a_catalog() -> None:
    told = refused("query", "SELECT 1")
    assert "--demo" in told
    assert "--catalog" in told
    assert "MEDIATOR_CATALOG" in told


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.yaml", None, "no such file"),
        ("broken.yaml", "relations: [", "not YAML"),
        ("list.yaml", "- 1", "expected 'sources' and 'relations'"),
        ("latin.yaml", "sources: {caf\xe9: 1}".encode("latin-1"), "not UTF-8"),
        ("typo.yaml", "relation: {}", "did you mean 'relations'?"),
        ("base.yaml", "sources: {shop: {base: ftp://x}}", "base.yaml:1: sources.shop.base"),
    ],
)
@pytest.mark.parametrize("command", [("query", "SELECT 1"), ("explain", "SELECT 1"), ("sources",)])
def test_a_catalog_that_cannot_be_read(
    tmp_path: Path, command: tuple[str, ...], name: str, content: str | bytes | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    told = refused(*command, "--catalog", str(path))
    assert name in told
    assert said in told


def test_an_empty_folder_is_no_catalog(tmp_path: Path) -> None:
    assert "no *.yaml file in this folder" in refused("sources", "--catalog", str(tmp_path))


def test_a_variable_without_a_value() -> None:
    told = refused("sources", "--catalog", str(BOOK_TRADE))
    assert "variable 'book_trade' has no value" in told


def test_a_relation_in_two_catalogs(calm: Web) -> None:
    told = refused("sources", *at(calm), "--catalog", str(BOOK_TRADE / "books.yaml"))
    assert "'books' is declared in two of the catalogs" in told


def test_a_demo_has_its_own_catalog(calm: Web) -> None:
    for command in (["query", "SELECT 1"], ["sources"]):
        assert "--demo" in refused(*command, "--demo", *at(calm))


def test_output_that_cannot_be_written(trade: Web, tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "out.csv", tmp_path):
        told = refused("query", "SELECT title FROM books", *at(trade), "--output", str(path))
        assert f"{path}: cannot be written" in told
    assert trade.requests == 0


def test_parquet_needs_a_file(calm: Web) -> None:
    told = refused("query", "SELECT title FROM books", *at(calm), "--format", "parquet")
    assert "--output" in told


@pytest.mark.parametrize("value", ["INTERVAL 1 MONTH", "[INTERVAL 1 MONTH]", "union_value(a := 1)"])
def test_what_parquet_has_no_type_for(calm: Web, tmp_path: Path, value: str) -> None:
    file = tmp_path / "out.parquet"
    file.write_text("something else")
    told = refused("query", f"SELECT title, {value} AS v FROM books", *at(calm), "--output", str(file))
    assert "Parquet has no type for v (" in told
    assert "cast it" in told
    assert file.read_text() == "something else"


def test_a_standard_output_that_is_closed(calm: Web) -> None:
    command = [
        sys.executable,
        "-c",
        "from api.cli import main; main()",
        "query",
        "SELECT 1 AS one",
        *at(calm),
    ]
    said = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=PATIENCE
    )
    assert said.returncode == 2, said.stderr
    assert "standard output is closed: name a file with --output FILE" in said.stderr


def test_an_unknown_format_or_policy(calm: Web) -> None:
    assert "xml" in refused("query", "SELECT 1", *at(calm), "--format", "xml")
    assert "best" in refused("query", "SELECT 1", *at(calm), "--policy", "best")


def test_a_parameter_that_is_not_one(calm: Web) -> None:
    told = refused("query", "SELECT title FROM books WHERE year > $y", *at(calm), "--parameter", "y")
    assert "expected NAME=VALUE" in told
    assert "y" in refused("query", "SELECT title FROM books WHERE year > $y", *at(calm))


def test_one_query_at_a_time(calm: Web, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 1")
    assert "one query" in refused("query", *at(calm))
    assert "one query" in refused("query", "SELECT 1", "--file", str(file), *at(calm))
    assert "one statement" in refused("query", "SELECT title FROM books; SELECT 2", *at(calm))
    assert "there is no statement" in refused("query", "-", *at(calm), input=" ")


def test_a_query_file_that_cannot_be_read(calm: Web, tmp_path: Path) -> None:
    assert "cannot be read" in refused("query", "--file", str(tmp_path / "no.sql"), *at(calm))
    latin = tmp_path / "latin.sql"
    latin.write_bytes("SELECT 'caf\xe9'".encode("latin-1"))
    assert "not UTF-8" in refused("query", "--file", str(latin), *at(calm))


def test_the_mark_stands_right_under_tabs_and_wide_characters(calm: Web) -> None:
    told = refused("query", "SELECT\t'日本', nope FROM books", *at(calm))
    line, mark = told.splitlines()[1:3]
    # Two wide characters take two places more in a terminal than in the text.
    assert line[mark.index("^") - 2 :].startswith("nope")


def _marked(told: str) -> tuple[str, int]:
    """The line of the statement that is shown, and where in it the mark stands."""
    lines = told.splitlines()
    at = next(n for n, line in enumerate(lines) if line.strip() == "^")
    return lines[at - 1], lines[at].index("^")
