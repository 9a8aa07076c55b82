"""Expressions come through as they were written: in a select list (and under DuckDB's own names), and in a
WHERE."""

from __future__ import annotations

import duckdb
import pytest

from mediator.query import understand
from tests.query.naive import CATALOG, oracle, run, same
from tests.query.statements import read

EXPRESSIONS = [line for line in read("expressions.txt") if not line.startswith("#")]
AGGREGATES = [line for line in read("aggregates.txt") if not line.startswith("#")]


def check(sql: str) -> None:
    same(run(understand(sql, CATALOG)), oracle(sql), ordered=False)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_select_list(expression: str) -> None:
    check(f"SELECT {expression}, isbn FROM books")


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if " over " not in e and "unnest" not in e])
def test_where(expression: str) -> None:
    sql = f"SELECT isbn FROM books WHERE ({expression}) IS NOT NULL AND ({expression}) = ({expression})"
    try:
        oracle(sql)
    except duckdb.Error:
        return  # not a type that can be compared
    check(sql)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregates(aggregate: str) -> None:
    check(f"SELECT {aggregate} FROM books")
    check(f"SELECT publisher, {aggregate} FROM books GROUP BY publisher")
