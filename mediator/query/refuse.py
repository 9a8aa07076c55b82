"""What a statement may not contain: anything that reads or writes outside the catalog, or looks at the
engine itself.

DuckDB is locked as well (`duck.py`). This is the wall that gives reasons.
"""

from __future__ import annotations

from sqlglot import exp

from mediator.errors import Unparsable, Unsupported
from mediator.query.functions import is_inner
from mediator.query.trees import function_name, position_of

# Names as DuckDB and as sqlglot have them.
_FUNCTIONS = {
    "getenv", "getvariable", "current_setting", "current_database", "current_schema", "current_schemas",
    "current_catalog", "current_query", "current_query_id", "current_connection_id", "current_transaction_id",
    "current_user", "current_role", "current_version", "session_user", "user", "version", "txid_current",
    "nextval", "currval",
    "setval", "setseed", "sleep_ms", "pg_sleep", "write_log", "parse_duckdb_log_message", "in_search_path",
    "json_execute_serialized_sql", "json_deserialize_sql", "json_serialize_plan", "query", "query_table",
    "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_parquet",
    "parquet_scan", "glob", "sniff_csv", "get_block_size", "format_type", "stats", "is_histogram_other_bin",
    "from_substrait", "sqlite_scan", "postgres_scan", "mysql_scan", "iceberg_scan", "delta_scan",
}  # fmt: skip
_PREFIXES = ("pg_", "duckdb_", "pragma_", "read_", "has_")
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
_SCHEMAS = {"main", "pg_catalog", "system"}
_STATEMENTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def refuse(statement: exp.Expr, sql: str) -> None:
    """Raises `Unsupported` for the first thing that may not be."""
    if not isinstance(statement, _STATEMENTS):
        raise Unparsable("this is not a SELECT", sql=sql, position=0)
    for node in statement.walk():
        problem = _problem(node)
        if problem:
            raise Unsupported(problem, sql=sql, position=_position(node, sql))


def _problem(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Table):
        return _table_problem(node)
    if isinstance(node, (exp.DML, exp.DDL, exp.Command)) and not isinstance(node, (exp.Query, exp.Subquery)):
        return f"only SELECT is run here, not {node.key.upper()}"
    if isinstance(node, exp.Into):
        return "SELECT INTO is not run here"
    if isinstance(node, (exp.Pivot, exp.MatchRecognize)):
        return f"{node.key.upper()} is not supported"
    if isinstance(node, exp.PositionalColumn):
        return f"a column is named here, not counted: #{node.name} is not supported"
    if isinstance(node, exp.TableSample):
        return "sampling is not supported: which rows a source has is not known before they are all there"
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func) and _calls_on_columns(node):
        call = function_name(node.expression)
        return f"{call}() after a dot is not supported: write {call}(...) around what stands before it"
    name = function_name(node)
    if name in _FUNCTIONS or name.startswith(_PREFIXES) or is_inner(name):
        return f"the function {name} is not allowed here"
    return None


def _calls_on_columns(call: exp.Dot) -> bool:
    """The parser takes columns that stand before such a call for words; a lambda's own names are no more than that."""
    schema = isinstance(call.this, exp.Identifier) and call.this.name.lower() in _SCHEMAS
    return (
        not schema and call.find_ancestor(exp.Lambda) is None and call.this.find(exp.Identifier) is not None
    )


def _table_problem(table: exp.Table) -> str | None:
    if isinstance(table.this, exp.Identifier):
        name = table.name
        if "/" in name or "\\" in name or "://" in name or name.lower().endswith(_FILES):
            return f"a query cannot read files: {name!r}"
        return None
    name = function_name(table.this)
    generated = name in _TABLE_FUNCTIONS or isinstance(table.this, (exp.GenerateSeries, exp.Unnest))
    return None if generated else f"the table function {name or table.this.key} is not allowed here"


_FILES = (
    ".csv",
    ".tsv",
    ".json",
    ".ndjson",
    ".jsonl",
    ".parquet",
    ".gz",
    ".zst",
    ".txt",
    ".db",
    ".duckdb",
    ".xlsx",
)


def _position(node: exp.Expr, sql: str) -> int | None:
    """Where the node is; a call keeps no place of its own, so its name is looked for."""
    name = function_name(node.this if isinstance(node, exp.Table) else node)
    place = position_of(node)
    found = sql.lower().find(name) if name else -1
    return found if found >= 0 else place
