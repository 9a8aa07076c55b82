"""Rows from NDJSON: one JSON record on every line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import Unreadable
from wrappers.columns import ABSENT
from wrappers.cutting import Lines, in_lines
from wrappers.parsed import Parsed
from wrappers.record_reader import RecordReader, check_size, steps, understood, utf8, walk


class NdjsonReader(RecordReader):
    """Every line is a record; empty lines are none. What stands beside the rows is looked for in the first line."""

    kind: Literal["ndjson"] = "ndjson"

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        records = _lines(relation, reply)
        first = records[0] if records else ABSENT
        columns = self._columns(relation, fields, records)
        return Parsed(columns, len(records), lambda path: walk(first, steps(path)))

    def look(self, reply: Reply, path: str) -> object:
        try:
            lines = _lines("", reply)
        except Unreadable:
            return ABSENT
        return walk(lines[0], steps(path)) if lines else ABSENT

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        return Lines() if in_lines(headers) else None


def _lines(relation: str, reply: Reply) -> list[Any]:
    """What the lines say. A wrong one is told by its number."""
    body = utf8(what := f"{relation}: not NDJSON", reply)
    check_size(what, body)
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    return [understood(f"{what}: line {number}", line) for number, line in lines]
