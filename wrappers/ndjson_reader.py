"""Rows from NDJSON: one JSON record on every line."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import Unreadable
from wrappers.columns import ABSENT
from wrappers.cutting import Lines, in_bytes
from wrappers.parsed import Parsed
from wrappers.record_reader import RecordReader, check_size, steps, understood, utf8, walk

_BETWEEN = secrets.randbits(62)  # stands between lines that are read together: no site can know it


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
        return Lines() if in_bytes(headers) else None


def _lines(relation: str, reply: Reply) -> list[Any]:
    """What the lines say. A wrong one is told by its number."""
    body = utf8(what := f"{relation}: not NDJSON", reply)
    check_size(what, body)
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    found = _together([line for _, line in lines])
    return [understood(f"{what}: line {n}", line) for n, line in lines] if found is None else found


def _together(lines: list[bytes]) -> list[Any] | None:
    """What the lines say, read as one list, which takes half as long; None unless each of them says one thing."""
    try:
        found = understood("", b"[" + (b",%d," % _BETWEEN).join(lines) + b"]")
    except Unreadable:
        return None
    sound = len(found) == 2 * len(lines) - 1 and found[1::2].count(_BETWEEN) == len(lines) - 1
    return found[::2] if sound else None
