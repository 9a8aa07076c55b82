"""A fault of DuckDB's own ends one statement, and no other."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from mediator.errors import Unsupported
from mediator.query import duck
from mediator.statements.database import opened
from mediator.statements.worker import _RUINED

FAULT = "INTERNAL Error: Attempted to access index 5 within vector of size 5"
AFTER = (
    "FATAL Error: Failed: database has been invalidated because of a previous fatal error. It must be restarted.\n"
    'Original error: "Attempted to access index 5 within vector of size 5"'
)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the next attempts end with, where they do."""
    errors: list[Exception] = []
    once = duck._run_once

    def run(sql: str, tables: duck.Tables) -> pa.Table:
        if errors:
            raise errors.pop(0)
        return once(sql, tables)

    monkeypatch.setattr(duck, "_run_once", run)
    return errors


def number() -> object:
    return duck.run("SELECT 41 + 1 AS n", {})["n"][0].as_py()


def test_the_statement_is_told_and_the_next_has_another_database(failing: list[Exception]) -> None:
    assert number() == 42
    before, here = duck._root(), duck.cursor()
    failing.append(duckdb.InternalException(FAULT))
    with pytest.raises(Unsupported, match=r"a fault of its own: .*vector of size 5"):
        number()
    assert duck._root() is not before
    assert duck.cursor() is not here
    assert number() == 42
    assert duck.names("SELECT a FROM r", {"r": pa.schema([("a", pa.int64())])}) == ["a"]


def test_who_only_meets_what_another_left_goes_to_the_new_one(failing: list[Exception]) -> None:
    failing.append(duckdb.FatalException(AFTER))
    assert number() == 42
    failing += [duckdb.FatalException(AFTER), duckdb.FatalException(AFTER)]
    with pytest.raises(Unsupported, match=r'its own: "Attempted to access index 5'):
        number()
    assert number() == 42


def test_an_ordinary_error_keeps_the_database() -> None:
    before = duck._root()
    with pytest.raises(duckdb.Error, match="nosuch"):
        duck.run("SELECT nosuch", {})
    assert duck._root() is before


def test_a_database_that_is_none_any_more_says_so_in_these_words() -> None:
    """What is looked for in DuckDB's text, as far as it can be asked for."""
    assert {"FatalException", "InternalException"} == _RUINED
    with opened() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute("SELECT error('x')")
    assert not isinstance(caught.value, duckdb.FatalException | duckdb.InternalException)
