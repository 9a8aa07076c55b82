"""DuckDB, as this engine uses it: over Arrow tables that are handed in, and over nothing else.

Every connection is locked: no files, no network, no settings, no Python variables. What the mediator knows
of DuckDB's errors lives here too. Statements are written elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import pyarrow as pa

Tables = Mapping[str, pa.Table]

_SETTINGS = (
    "SET GLOBAL threads = 1",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL errors_as_json = true",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)
_local = threading.local()
_lock = threading.Lock()
_roots: dict[int, duckdb.DuckDBPyConnection] = {}


@dataclass(frozen=True, slots=True)
class Fault:
    """What DuckDB had against a statement, and where in it (a character offset), if it said."""

    kind: str
    message: str
    position: int | None
    name: str
    subtype: str


def cursor() -> duckdb.DuckDBPyConnection:
    """This thread's own connection. Nothing is ever stored in it."""
    mine: tuple[int, duckdb.DuckDBPyConnection] | None = getattr(_local, "cursor", None)
    if mine is None or mine[0] != os.getpid():
        mine = (os.getpid(), _root().cursor())
        _local.cursor = mine
    return mine[1]


def _showing(schemas: Mapping[str, pa.Schema]) -> duckdb.DuckDBPyConnection:
    """A connection that sees empty relations of these schemas and nothing else. They stay for the next statement, since
    to register one takes longer than to check a statement."""
    mine: tuple[int, duckdb.DuckDBPyConnection, dict[str, pa.Schema]] | None = getattr(_local, "shown", None)
    if mine is None or mine[0] != os.getpid():
        mine = _local.shown = (os.getpid(), _root().cursor(), {})
    _, here, shown = mine
    wanted = {name.lower(): schema for name, schema in schemas.items()}  # DuckDB tells no cases apart
    for name in [n for n, schema in shown.items() if wanted.get(n) != schema]:
        here.unregister(name)
        del shown[name]
    for name in wanted.keys() - shown.keys():
        here.register(name, wanted[name].empty_table())
        shown[name] = wanted[name]
    return here


def run(sql: str, tables: Tables) -> pa.Table:
    """The rows of one SELECT that reads these tables."""
    here = cursor()
    for name, table in tables.items():
        here.register(name, table)
    try:
        return here.sql(sql).to_arrow_table()
    finally:
        for name in tables:
            here.unregister(name)


def shape(sql: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of a SELECT's rows; nothing is evaluated but what is constant."""
    return run(f"SELECT * FROM ({sql}) LIMIT 0", {n: s.empty_table() for n, s in schemas.items()}).schema


def names(sql: str, schemas: Mapping[str, pa.Schema], parameters: object = None) -> list[str]:
    """The columns of a statement as DuckDB names them, once it found that all is well with it."""
    here = _showing(schemas)
    return [row[0] for row in here.execute(_DESCRIBE + sql, parameters).fetchall()]


def count(sql: str) -> int:
    """How many statements DuckDB sees in a text."""
    return len(cursor().extract_statements(sql))


def fault(error: duckdb.Error, sql: str = "") -> Fault:
    """An error of `names` read back, its position counted in the statement's characters."""
    text = str(error)
    start = text.find("{")
    try:
        told = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        told = {}
    position = int(told["position"]) - len(_DESCRIBE) if told.get("position", "").isdigit() else None
    if position is not None:
        position = len(sql.encode()[: max(position, 0)].decode(errors="ignore"))
    message = told.get("exception_message", text)
    return Fault(
        told.get("exception_type") or text.split(" Error:")[0],
        message.split("\n\tCandidate functions")[0].strip(),
        position,
        told.get("name", ""),
        told.get("error_subtype", ""),
    )


@lru_cache(maxsize=512)
def type_name(arrow: pa.DataType) -> str:
    """What DuckDB calls an Arrow type."""
    here = cursor()
    here.register("t", pa.schema([("v", arrow)]).empty_table())
    try:
        return str(here.sql("SELECT v FROM t").types[0])
    finally:
        here.unregister("t")


@lru_cache(maxsize=512)
def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of DuckDB's type of this name."""
    return shape(f"SELECT CAST(NULL AS {name}) AS v", {}).field(0).type


@lru_cache(maxsize=512)
def wider(left: pa.DataType, right: pa.DataType) -> str:
    """The name of the type that takes the values of both."""
    here = cursor()
    here.register("t", pa.schema([("l", left), ("r", right)]).empty_table())
    try:
        return str(here.sql("SELECT CASE WHEN true THEN l ELSE r END FROM t").types[0])
    finally:
        here.unregister("t")


@lru_cache(maxsize=1)
def aggregates() -> frozenset[str]:
    """The names of all aggregate functions, and of the macros that are made of them."""
    rows = cursor().execute("SELECT function_name, function_type, macro_definition FROM duckdb_functions()")
    listed = rows.fetchall()
    found = {name.lower() for name, kind, _ in listed if kind == "aggregate"}
    macros = {name.lower(): _called(body) for name, kind, body in listed if kind == "macro" and body}
    while more := {name for name, calls in macros.items() if name not in found and calls & found}:
        found |= more
    return frozenset(found)


def _called(definition: str) -> set[str]:
    return {name.lower() for name in re.findall(r"(\w+)\"?\(", definition)}


def label(expression: str) -> str:
    """What DuckDB calls a column of a select list that has no name of its own."""
    quoted = f"SELECT {expression}".replace("'", "''")
    try:
        told = cursor().sql(f"SELECT json_deserialize_sql(json_serialize_sql('{quoted}'))").fetchall()
    except duckdb.Error:
        return expression
    return str(told[0][0]).removeprefix("SELECT ") if told else expression


_DESCRIBE = "DESCRIBE "


def _root() -> duckdb.DuckDBPyConnection:
    with _lock:
        if os.getpid() not in _roots:
            _roots[os.getpid()] = _locked(duckdb.connect(":memory:"))
        return _roots[os.getpid()]


def _locked(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection
