"""A DuckDB database that knows what it is given, and nothing else: no files, no network, no settings, no Python
variables."""

from __future__ import annotations

import duckdb

DESCRIBE = "DESCRIBE "
FAULTS = (duckdb.FatalException, duckdb.InternalException)  # DuckDB's own: the database is none any more
_SETTINGS = (
    "SET GLOBAL threads = 1",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL errors_as_json = true",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)


def opened(memory: int | None = None) -> duckdb.DuckDBPyConnection:
    """A new one, in memory; it may take so many bytes, or as many as DuckDB sees fit."""
    made = duckdb.connect(":memory:")
    if memory is not None:
        made.execute(f"SET GLOBAL memory_limit = '{memory}B'")
    for setting in _SETTINGS:
        made.execute(setting)
    return made


class NotOne(Exception):
    """DuckDB sees another number of statements in a text than one."""


def described(here: duckdb.DuckDBPyConnection, sql: str, parameters: object = None) -> list[str]:
    """The columns of a statement as DuckDB names them, once it found that all is well with it: it is not run, but what
    is constant in it may be. Raises `NotOne`; positions in errors count from the beginning of DESCRIBE."""
    try:
        statements = here.extract_statements(sql)
    except duckdb.Error:
        here.extract_statements(DESCRIBE + sql)
        raise
    if len(statements) != 1:
        raise NotOne
    if parameters is None and statements[0].type == duckdb.StatementType.SELECT:
        try:
            return list(here.sql(statements[0]).columns)  # in a third of the time
        except FAULTS:
            raise
        except duckdb.Error:
            pass  # it is told below, with its place
    (statement,) = here.extract_statements(DESCRIBE + sql)
    return [row[0] for row in here.execute(statement, parameters).fetchall()]
