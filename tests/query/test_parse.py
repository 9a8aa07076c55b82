"""A statement that comes again is not read again, and nothing of its earlier use is left in it."""

from __future__ import annotations

import pytest

from mediator.errors import QueryError, Unparsable, Unsupported
from mediator.query.parse import parse

SQL = "SELECT a FROM r WHERE b = $b AND c = $c"


def test_each_use_has_its_own_values() -> None:
    first = parse(SQL, {"b": 1, "c": "x"}).sql("duckdb")
    second = parse(SQL, {"b": 2, "c": None}).sql("duckdb")
    assert "b = 1" in first
    assert "c = 'x'" in first
    assert "b = 2" in second
    assert "c = NULL" in second


def test_who_changes_a_tree_changes_no_other() -> None:
    tree = parse(SQL, {"b": 1, "c": 2})
    tree.set("where", None)
    tree.expressions[0].replace(tree.expressions[0].copy().as_("other"))
    again = parse(SQL, {"b": 1, "c": 2})
    assert again.sql("duckdb") == "SELECT a FROM r WHERE b = 1 AND c = 2"


def test_places_are_those_of_the_text_each_time() -> None:
    def places() -> list[int]:
        tree = parse("SELECT a FROM r WHERE ? < b", [1])
        return [n.meta["start"] for n in tree.walk() if "start" in n.meta]

    first = places()
    assert first == places()
    assert max(first) == "SELECT a FROM r WHERE ? < b".index("b")


def test_values_that_are_missing_are_missed_though_they_were_there_before() -> None:
    parse(SQL, {"b": 1, "c": 2})
    with pytest.raises(QueryError, match="the parameter c has no value"):
        parse(SQL, {"b": 1})
    with pytest.raises(QueryError, match="has no parameter d"):
        parse(SQL, {"b": 1, "c": 2, "d": 3})


@pytest.mark.parametrize("padding", [0, 5_000])
def test_what_may_not_be_is_refused_each_time(padding: int) -> None:
    """The long one is read anew each time."""
    sql = "SELECT getenv('HOME') FROM r" + " " * padding
    for _ in range(2):
        with pytest.raises(Unsupported, match="getenv is not allowed"):
            parse(sql)
        with pytest.raises(Unparsable):
            parse("SELECT ( FROM r" + " " * padding)


def test_a_long_statement_is_bound_like_a_short_one() -> None:
    sql = f"{SQL} /* {'x' * 5_000} */"
    for b in (1, 2):
        assert f"b = {b}" in parse(sql, {"b": b, "c": 0}).sql("duckdb")
