"""Rows from JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import orjson
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, from_json, missing
from wrappers.parsed import Parsed

Path = tuple[str, ...]


class JsonReader(BaseModel):
    """`rows` is where the records are: a list of them, or one. Paths are `/a/b` or `a.b`; empty: all.

    `fields` gives the path inside a record for a field that the site calls something else. A field of
    `optional` may be missing from a record, and is then NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["json"]
    rows: str = ""
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        try:
            document = orjson.loads(reply.body)
        except orjson.JSONDecodeError as error:
            raise Unreadable(f"{relation}: not JSON: {error}") from None
        records = self._records(relation, document)
        columns = tuple(self._column(relation, f, records) for f in fields)
        return Parsed(columns, len(records), lambda path: walk(document, steps(path)))

    def _records(self, relation: str, document: object) -> list[dict[str, Any]]:
        found = walk(document, steps(self.rows))
        records = [found] if isinstance(found, dict) else found
        if not isinstance(records, list):
            said = "nothing" if found is ABSENT else type(found).__name__
            raise SchemaChanged(f"{relation}: expected records at {self.rows or '/'!r}, found {said}")
        for record in records:
            if not isinstance(record, dict):
                raise SchemaChanged(f"{relation}: expected a record, found {type(record).__name__}")
        return records

    def _column(self, relation: str, field: Field, records: list[dict[str, Any]]) -> pa.Array:
        path = steps(self.fields.get(field.name, f"/{field.name}"))
        values: list[Any]
        if len(path) == 1:
            values = [record.get(path[0], ABSENT) for record in records]
        else:
            values = [walk(record, path) for record in records]
        if ABSENT in values:
            if field.name not in self.optional:
                raise missing(relation, field, records[values.index(ABSENT)])
            values = [None if value is ABSENT else value for value in values]
        return from_json(relation, field, values)


def steps(path: str) -> Path:
    """The names to walk along, of `/a/b` or `a.b`."""
    if path.startswith("/"):
        return tuple(s.replace("~1", "/").replace("~0", "~") for s in path[1:].split("/"))
    return tuple(path.split(".")) if path else ()


def walk(value: Any, path: Path) -> Any:
    """What is at the end of the path, or ABSENT."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value
