"""Rows from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT
from wrappers.cutting import in_bytes
from wrappers.json_cutting import Records
from wrappers.parsed import Parsed
from wrappers.record_reader import RecordReader, steps, understood, utf8, walk


class JsonReader(RecordReader):
    """`rows` is where the records are: a list of them, or one. Paths are `/a/b` or `a.b`; empty: all."""

    kind: Literal["json"] = "json"
    rows: str = ""

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        document = _document(relation, reply)
        records = self._records(relation, document)
        columns = self._columns(relation, fields, records)
        return Parsed(columns, len(records), lambda path: walk(document, steps(path)))

    def look(self, reply: Reply, path: str) -> object:
        try:
            return walk(_document("", reply), steps(path))
        except Unreadable:
            return ABSENT

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        return Records(steps(self.rows)) if in_bytes(headers) else None

    def _records(self, relation: str, document: object) -> list[Any]:
        found = walk(document, steps(self.rows))
        records = [found] if isinstance(found, dict) else found
        if not isinstance(records, list):
            said = "nothing" if found is ABSENT else type(found).__name__
            raise SchemaChanged(f"{relation}: expected records at {self.rows or '/'!r}, found {said}")
        return records


def _document(relation: str, reply: Reply) -> Any:
    what = f"{relation}: not JSON"
    return understood(what, utf8(what, reply))
