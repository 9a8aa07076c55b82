"""The example plugin asks a site that no data could describe, in one query with sites that are YAML."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.server import Serving
from fixtures.stacks import CARD, stacks_web
from fixtures.web import Web
from sources.stacks import KEY
from tests.cli.kit import bag, called, truth
from tests.sources.kit import Answered, asked

SQL = (
    "SELECT p.prize, b.title, s.shelf, s.copies, s.acquired FROM prizes p "
    "JOIN books b ON b.isbn = p.isbn JOIN shelfmarks s ON s.isbn = b.isbn"
)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Serving(stacks_web(120)) as served:
        yield served


async def test_it_joins_with_relations_in_yaml(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, CARD)
    found: Answered = await asked(web.catalog, SQL)
    assert found.report.complete, found.report
    assert len(found.rows) > 5
    assert bag(found.rows) == bag(truth(web, SQL).to_pylist())


async def test_ten_books_are_asked_for_together_with_one_greeting(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, CARD)
    web.reset()
    isbns = web.tables["books"]["isbn"].to_pylist()[:10]
    named = ", ".join(f"'{isbn}'" for isbn in isbns)
    sql = f"SELECT isbn, shelf FROM shelfmarks WHERE isbn IN ({named})"
    found = await asked(web.catalog, sql)
    assert bag(found.rows) == bag(truth(web, sql).to_pylist())
    greetings = web.counters["terminal"].requests - len(
        {name.partition("@")[2] for name in web.counters["terminal"].lookups}
    )
    assert greetings == 1


def test_the_conformance_suite_passes(web: Web) -> None:
    """What holds for sites that are data holds for one that is code."""
    chosen = ["--catalog", "plugin:stacks", "--set", f"stacks={web.url}/stacks"]
    result = called("wrapper", "check", *chosen, env={KEY: CARD, "COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert " 0 failed" in result.output
    assert "there is no binding" not in result.output


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, "its library card is missing: set the environment variable STACKS_KEY"),
        ("somebody else's", "403 Forbidden"),
    ],
)
async def test_without_the_right_card_the_lookups_fail_and_say_so(
    web: Web, monkeypatch: pytest.MonkeyPatch, key: str | None, said: str
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    if key is not None:
        monkeypatch.setenv(KEY, key)
    found = await asked(web.catalog, "SELECT shelf FROM shelfmarks WHERE isbn = '9780000000000'")
    assert not found.report.complete
    assert found.rows == []
    assert said in found.failures
    assert CARD not in found.failures
