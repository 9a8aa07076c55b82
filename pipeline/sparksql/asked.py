"""What DuckDB itself says: of types, of constants, of letters."""

from __future__ import annotations

import sys
from functools import lru_cache

import duckdb

from mediator.query import duck
from pipeline.sparksql.errors import NotAgreed


@lru_cache(maxsize=8192)
def type_of(sql: str) -> str:
    """DuckDB's name of the type of an expression without columns."""
    try:
        return str(duck.cursor().sql(f"SELECT {sql}").types[0])
    except duckdb.Error as error:
        raise NotAgreed(f"{sql}: {duck.fault(error).message}") from None


def value_of(sql: str) -> object:
    """Of a constant."""
    try:
        return duck.run(f"SELECT {sql} AS v", {})["v"][0].as_py()
    except duckdb.Error as error:
        raise NotAgreed(f"{sql}: {duck.fault(error).message}") from None


@lru_cache(maxsize=2)
def letters(function: str) -> tuple[str, str]:
    """All that `upper` or `lower` changes, and what it makes of each: DuckDB goes letter by letter."""
    every = [chr(n) for n in range(1, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000]
    changed = str(value_of(f"{function}('{''.join(every).replace(chr(39), chr(39) * 2)}')"))
    pairs = [(a, b) for a, b in zip(every, changed, strict=True) if a != b]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
