"""Random statements, run the slow way over their stages, give what DuckDB gives for them as they were
drawn."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.query import understand
from tests.query import drawing
from tests.query.naive import oracle, run, same


def check(seed: int) -> None:
    sql, tables = drawing.statement(seed), drawing.tables(seed)
    try:
        theirs = oracle(sql, tables=tables)
    except duckdb.Error:
        return  # DuckDB itself gives up on a few
    same(run(understand(sql, drawing.CATALOG), tables), theirs, ordered="LIMIT" in sql)


@pytest.mark.parametrize("seed", range(120))
def test_drawn(seed: int) -> None:
    check(seed)


@settings(max_examples=60, derandomize=True)
@given(st.integers(min_value=1_000, max_value=10_000_000))
def test_searched(seed: int) -> None:
    check(seed)
