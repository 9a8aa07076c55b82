"""Every statement, run the slow way over its stages, gives what DuckDB gives for it as it was written."""

from __future__ import annotations

import pytest

from mediator.query import understand
from tests.query.naive import CATALOG, oracle, run, same
from tests.query.statements import ORDERED, PLAIN, WITH_PARAMETERS


@pytest.mark.parametrize("sql", PLAIN)
def test_plain(sql: str) -> None:
    same(run(understand(sql, CATALOG)), oracle(sql), ordered=False)


@pytest.mark.parametrize("sql", ORDERED)
def test_ordered(sql: str) -> None:
    same(run(understand(sql, CATALOG)), oracle(sql), ordered=True)


@pytest.mark.parametrize(("sql", "parameters"), WITH_PARAMETERS)
def test_parameters(sql: str, parameters: object) -> None:
    same(run(understand(sql, CATALOG, parameters)), oracle(sql, parameters), ordered=False)


def test_there_are_many_statements() -> None:
    assert len(PLAIN) + len(ORDERED) >= 250
