"""SQLAlchemy: `create_engine("mediator://127.0.0.1:8080")`, or `mediator+https://:KEY@host/`.

What SQL is written is DuckDB's, which is PostgreSQL's but for a few words. Tables are the relations of the server's
catalog; they can be read, and reflected, and nothing else. What is said after `?` is the connection's `whole`,
`timeout` and `silence`, and the options of its queries: `?goal=first_rows&whole=true&budget.calls=100`.
"""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from sqlalchemy import exc, util
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.base import Connection
from sqlalchemy.engine.interfaces import BindTyping
from sqlalchemy.engine.url import URL
from sqlalchemy.sql.sqltypes import _AbstractInterval
from sqlalchemy.sql.type_api import NativeForEmulated

from api.client import dbapi, errors

SCHEMA = "main"  # of all relations; statements do not name it
_PORT = 8080

_TYPES: Mapping[str, Callable[[], sqltypes.TypeEngine[Any]]] = {
    "BOOLEAN": sqltypes.BOOLEAN,
    "TINYINT": sqltypes.SMALLINT,
    "SMALLINT": sqltypes.SMALLINT,
    "INTEGER": sqltypes.INTEGER,
    "BIGINT": sqltypes.BIGINT,
    "UTINYINT": sqltypes.SMALLINT,
    "USMALLINT": sqltypes.INTEGER,
    "UINTEGER": sqltypes.BIGINT,
    "UBIGINT": sqltypes.BIGINT,
    "REAL": sqltypes.REAL,
    "FLOAT": sqltypes.REAL,
    "DOUBLE": sqltypes.DOUBLE,
    "VARCHAR": sqltypes.VARCHAR,
    "BLOB": sqltypes.LargeBinary,
    "DATE": sqltypes.DATE,
    "TIME": sqltypes.TIME,
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": lambda: sqltypes.TIMESTAMP(timezone=True),
    "INTERVAL": sqltypes.Interval,
    "UUID": sqltypes.UUID,
    "JSON": sqltypes.JSON,
}
_DECIMAL = re.compile(r"DECIMAL\d*\((\d+),\s*(\d+)\)")


def type_of(name: str) -> sqltypes.TypeEngine[Any]:
    """SQLAlchemy's type for a name of SQL's. Where it has no word, it is a `NullType`: values come as they are."""
    name = name.strip().upper()
    if name.endswith("[]"):
        return sqltypes.ARRAY(type_of(name[:-2]))
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return sqltypes.DECIMAL(int(decimal[1]), int(decimal[2]))
    found = _TYPES.get(name)
    return sqltypes.NullType() if found is None else found()


class _Cast:
    """A value of it is cast where it is bound: JSON, in which it travels, has no such type."""

    render_bind_cast = True


class _Date(_Cast, sqltypes.Date):
    pass


class _Time(_Cast, sqltypes.Time):
    pass


class _DateTime(_Cast, sqltypes.DateTime):
    pass


class _Float(_Cast, sqltypes.Float[Any]):
    pass


class _Binary(_Cast, sqltypes.LargeBinary):
    def literal_processor(self, dialect: Any) -> Callable[[bytes], str]:
        return lambda value: f"unhex('{value.hex()}')"


class _Numeric(_Cast, sqltypes.Numeric[Any]):
    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any] | None:
        """As it was asked for: a quotient of decimals comes as a DOUBLE."""
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: decimal.Decimal(repr(value)) if isinstance(value, float) else value


class _Uuid(_Cast, sqltypes.Uuid[Any]):
    def bind_processor(self, dialect: Any) -> Callable[[Any], Any] | None:
        return lambda value: None if value is None else str(value)

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        return lambda value: f"'{uuid.UUID(str(value))}'::UUID"

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any] | None:
        """It comes as text."""
        kind = uuid.UUID if self.as_uuid else str
        return lambda value: None if value is None else kind(str(value))


class _Interval(_Cast, NativeForEmulated, _AbstractInterval):
    """SQL's own, and not SQLAlchemy's time since an epoch."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> _Interval:
        return cls()

    @property
    def _type_affinity(self) -> type[sqltypes.Interval]:
        return sqltypes.Interval

    @property
    def python_type(self) -> type[datetime.timedelta]:
        return datetime.timedelta

    def literal_processor(self, dialect: Any) -> Callable[[datetime.timedelta], str]:
        return lambda value: f"INTERVAL '{value // datetime.timedelta(microseconds=1)} microseconds'"


class Compiler(PGCompiler):
    """Where DuckDB says it otherwise than PostgreSQL."""

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # DuckDB's ~ wants the whole text to match.
        parts = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"]
        if flags is not None:
            parts.append(f"'{flags}'")
        return f"regexp_matches({', '.join(parts)})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Nothing is written: there is nothing to be kept from others."""
        return ""


class TypeCompiler(PGTypeCompiler):
    """The names of types, where PostgreSQL's mean another one."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: N802 - SQLAlchemy finds it by this name
        return "DOUBLE"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "DOUBLE"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        # Without a precision it would be 18 digits, of which 3 are behind the point.
        if type_.precision is None:
            return "DECIMAL(38, 10)"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return self.visit_NUMERIC(type_, **kw)

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "TIMESTAMPTZ" if type_.timezone else "TIMESTAMP"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "TIME"

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_interval(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "INTERVAL"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID"


def _schema(table: Any, /) -> Any:
    """What to write before a relation's name."""
    return None if table.schema == SCHEMA else table.schema


class Preparer(PGIdentifierPreparer):
    """Names of relations stand alone."""

    schema_for_object = staticmethod(_schema)


class MediatorDialect(default.DefaultDialect):
    """The mediator over HTTP."""

    name = "mediator"
    driver = "http"
    scheme = "http"

    statement_compiler = Compiler
    type_compiler_cls = TypeCompiler
    preparer = Preparer
    default_paramstyle = "qmark"
    bind_typing = BindTyping.RENDER_CASTS
    colspecs = {  # noqa: RUF012 - as SQLAlchemy's dialects have it
        sqltypes.Date: _Date,
        sqltypes.Time: _Time,
        sqltypes.DateTime: _DateTime,
        sqltypes.Interval: _Interval,
        sqltypes.Numeric: _Numeric,
        sqltypes.Float: _Float,
        sqltypes.LargeBinary: _Binary,
        sqltypes.Uuid: _Uuid,
    }

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    div_is_floordiv = False
    supports_alter = False
    supports_schemas = False
    supports_comments = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_multivalues_insert = False
    supports_sequences = False
    postfetch_lastrowid = False
    max_identifier_length = 1_000
    # What PostgreSQL's compiler asks of its dialect.
    _backslash_escapes = False
    _supports_jsonb_subscripting = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """The server's address, its key, and what else is said of the connection."""
        if url.username:
            raise exc.ArgumentError("a key stands where a password does: mediator://:KEY@host/")
        host = url.host or "127.0.0.1"
        host = f"[{host}]" if ":" in host else host
        port = url.port or (_PORT if self.scheme == "http" else None)
        path = f"/{url.database}" if url.database else ""
        address = f"{self.scheme}://{host}{f':{port}' if port else ''}{path}"
        return (address,), {"key": url.password or None, **_options(url.query)}

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.ping()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(getattr(e, "problem", None), errors.Unreachable | errors.Closed)

    def _get_server_version_info(self, connection: Connection) -> None:
        return None

    def _get_default_schema_name(self, connection: Connection) -> str:
        return SCHEMA

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        raise NotImplementedError  # there are no transactions

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        return [SCHEMA]

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return list(self._relations(connection, schema, **kw))

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    @reflection.cache
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return table_name in self._relations(connection, schema, **kw)

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        relation = self._relation(connection, table_name, schema, **kw)
        return [
            {
                "name": field["name"],
                "type": type_of(field["type"]),
                "nullable": field["name"] not in relation["key"],
                "default": None,
            }
            for field in relation["fields"]
        ]

    @reflection.cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        relation = self._relation(connection, table_name, schema, **kw)
        return {"constrained_columns": list(relation["key"]), "name": None}

    @reflection.cache
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """How it can be asked: what its access methods need."""
        relation = self._relation(connection, table_name, schema, **kw)
        return {"text": "; ".join(map(_way, relation["methods"])) or None}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return self._none_of(connection, table_name, schema, **kw)

    @reflection.cache
    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return self._none_of(connection, table_name, schema, **kw)

    @reflection.cache
    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return self._none_of(connection, table_name, schema, **kw)

    @reflection.cache
    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return self._none_of(connection, table_name, schema, **kw)

    def _none_of(self, connection: Connection, table: str, schema: str | None, **kw: Any) -> list[Any]:
        """There are none; of a relation that is not there, that has to be said."""
        self._relation(connection, table, schema, **kw)
        return []

    def _relation(self, connection: Connection, table: str, schema: str | None, **kw: Any) -> dict[str, Any]:
        relations: dict[str, dict[str, Any]] = self._relations(connection, schema, **kw)
        if table not in relations:
            raise exc.NoSuchTableError(table)
        return relations[table]

    @reflection.cache
    def _relations(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> dict[str, dict[str, Any]]:
        """All of them, asked for once for each inspector."""
        if schema not in (None, SCHEMA):
            return {}
        with dbapi.told():
            found = connection.connection.dbapi_connection.client.relations()  # type: ignore[union-attr]
        return {relation["name"]: relation for relation in found}


class SecureMediatorDialect(MediatorDialect):
    """The same over TLS."""

    driver = "https"
    scheme = "https"


def _way(method: Mapping[str, Any]) -> str:
    """A way in, and what has to be known for it."""
    needs = list(method["required"])
    if method.get("any_of"):
        needs.append(f"one of {', '.join(method['any_of'])}")
    what = f" needs {', '.join(needs)}" if needs else ""
    return f"{method['name']} ({method['kind']}){what}"


_NUMBERS = ("timeout", "silence", "max_age", "stalled_after")
_FLAGS = ("whole", "partials")
_LISTS = ("pause",)
_TEXTS = ("goal", "policy", "on_disconnect")


def _options(query: Mapping[str, Any]) -> dict[str, Any]:
    """What an address says after `?`."""
    said: dict[str, Any] = {}
    for name, value in query.items():
        kind, _, part = name.partition(".")
        if name in _LISTS:
            said[name] = list(util.to_list(value))
        elif not isinstance(value, str):
            raise exc.ArgumentError(f"{name} is said more than once")
        elif name in _TEXTS:
            said[name] = value
        elif name in _FLAGS:
            said[name] = util.asbool(value)
        elif name in _NUMBERS:
            said[name] = float(value)
        elif kind == "budget" and part in {"calls", "rows", "bytes"}:
            said.setdefault(kind, {})[part] = int(value)
        elif name == "budget.seconds" or (kind in {"prefer", "boost"} and part):
            said.setdefault(kind, {})[part] = float(value)
        else:
            raise exc.ArgumentError(f"a mediator:// address has no option {name!r}")
    return said
