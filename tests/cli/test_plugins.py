"""Plugins on the command line: nothing runs unasked, and who asks is told what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import Web
from tests.cli.kit import called

PLUGIN = """\
from sources import Relation, Source, scan
from wrappers import CsvReader, Template

laurels = Source(name="honours_site", base="${book_trade}/laurels", allow_private=True)


class Honours(Relation):
    prize: str
    isbn: str
    all = scan(mirrors=laurels, request=Template(path="/prizes.csv"), reply=CsvReader())
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "honours.py").write_text(PLUGIN)
    (tmp_path / "broken.py").write_text(PLUGIN.replace("prize: str", "prize: list"))
    return {"MEDIATOR_PLUGINS": str(tmp_path), "MEDIATOR_CATALOG": "", "COLUMNS": "300"}


def test_without_a_catalog_the_plugins_are_listed_and_not_run(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(f"{PLUGIN}\nraise AssertionError('this was run')\n")
    result = called("sources", env=env)
    assert result.exit_code == 0, result.stderr
    assert "to be asked with --catalog plugin:NAME" in result.stdout
    for name in (
        "book_trade   sources.book_trade, of mediator",
        "honours   ",
        "loud   ",
        "stacks   sources.stacks",
    ):
        assert name in result.stdout
    assert "this was run" not in result.output


@pytest.mark.parametrize("chosen", ["plugin:honours", "plugins"])
@pytest.mark.parametrize("environment", [True, False])
def test_a_plugin_is_asked_by_name_or_with_all(
    trade: Web, env: dict[str, str], chosen: str, environment: bool
) -> None:
    named = [] if environment else ["--catalog", chosen]
    where = {**env, "MEDIATOR_CATALOG": chosen if environment else ""}
    options = ["--set", f"book_trade={trade.url}", "--format", "csv", "--quiet"]
    result = called("query", "SELECT count(*) AS n FROM honours", *named, *options, env=where)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == ["n", str(trade.tables["prizes"].num_rows)]
    assert ("warning: plugin 'broken' of" in result.stderr) == (chosen == "plugins")


def test_a_prefix_parts_two_that_have_one_name(trade: Web, env: dict[str, str]) -> None:
    chosen = [
        "--catalog",
        "plugin:honours",
        "--catalog",
        "plugin:honours/old",
        "--set",
        f"book_trade={trade.url}",
    ]
    sql = "SELECT count(*) AS n FROM honours h JOIN old_honours o ON o.isbn = h.isbn AND o.prize = h.prize"
    result = called("query", sql, *chosen, "--format", "csv", "--quiet", env=env)
    assert result.exit_code == 0, result.stderr
    result = called("sources", "--catalog", "plugin:honours", *chosen, env=env)
    assert result.exit_code == 2
    assert "relation 'honours' is declared in two of the catalogs, in plugin honours" in result.stderr


def test_what_cannot_be_used_is_listed_with_the_reason(env: dict[str, str]) -> None:
    result = called("sources", "--catalog", "plugins", env=env)
    assert result.exit_code == 0
    assert "cannot be used: plugin 'broken' of" in result.stdout
    assert "broken.py:8: Honours.prize: a field cannot be of type 'list'" in result.stdout
    assert "cannot be used: plugin 'papers' of mediator" in result.stdout
    assert "variable 'papers' has no value" in result.stdout
    assert "papers" not in result.stderr  # which is no fault, so nobody is warned of it
    assert "declared in plugin stacks (mediator" in result.stdout


def test_bad_names_of_plugins(env: dict[str, str], tmp_path: Path) -> None:
    for chosen, said in (
        ("plugin:honors", "unknown plugin 'honors': did you mean 'honours'?"),
        ("plugin:", "unknown plugin '': use one of:"),
        ("plugin:honours/A", "'A' cannot begin a name: write a word in lower case"),
        ("plugin:broken", "plugin 'broken' of"),
    ):
        result = called("sources", "--catalog", chosen, "--set", "book_trade=http://x", env=env)
        assert result.exit_code == 2
        assert f"error: {said}" in result.stderr
    result = called("sources", env={**env, "MEDIATOR_PLUGINS": str(tmp_path / "no")})
    assert result.exit_code == 2
    assert "MEDIATOR_PLUGINS names it, but there is no such folder" in result.stderr
