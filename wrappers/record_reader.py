"""What JSON and NDJSON share: records with fields at paths, and columns of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, from_json, missing
from wrappers.parsed import charset, decoded

Path = tuple[str, ...]
MOST_VALUES = 4_000_000  # in one reply: as Python objects they take some sixty bytes each

_SPACED_KEY = re.compile(rb'"\s+:')
_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*+")(\s*+:)?|[{}]', re.DOTALL)


class RecordReader(BaseModel):
    """`fields` gives the path inside a record for a field that the site calls something else.

    A field of `optional` may be missing from a record, and is then NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    def place(self, field: str) -> str:
        """The path of a field inside a record."""
        return self.fields.get(field, f"/{field}")

    def _columns(
        self, relation: str, fields: Sequence[Field], records: Sequence[object]
    ) -> tuple[pa.Array, ...]:
        for record in records:
            if not isinstance(record, dict):
                raise SchemaChanged(f"{relation}: expected a record, found {type(record).__name__}")
        return tuple(self._column(relation, f, records) for f in fields)

    def _column(self, relation: str, field: Field, records: Sequence[Any]) -> pa.Array:
        path = steps(self.place(field.name))
        values: list[Any]
        if len(path) == 1:
            values = [record.get(path[0], ABSENT) for record in records]
        else:
            values = [self._at(record, path) for record in records]
        if ABSENT in values:
            if field.name not in self.optional:
                raise missing(relation, field, records[values.index(ABSENT)])
            values = [None if value is ABSENT else value for value in values]
        return from_json(relation, field, values)

    def _at(self, record: Any, path: Path) -> Any:
        """What a record has at the end of a path of several steps, or ABSENT."""
        return walk(record, path)


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
        elif isinstance(value, list) and _is_place(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def utf8(what: str, reply: Reply) -> bytes:
    """The body as UTF-8, which JSON always is, unless the reply says otherwise and is right about it."""
    body, said = reply.body.removeprefix(b"\xef\xbb\xbf"), charset(reply)
    if said in ("", "utf-8", "utf8", "us-ascii"):
        return body
    if not said.startswith(("utf-16", "utf-32")):
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return body
    return decoded(what, reply.body, said).encode("utf-8", "replace").removeprefix(b"\xef\xbb\xbf")


def understood(what: str, body: bytes) -> Any:
    """The value that this text is. Raises `Unreadable` for what is no JSON, or says two things in one place."""
    check_size(what, body)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"{what}: {error}") from None
    # A key of the text that was not kept stands twice. Texts that look like keys are none: then it is found out.
    written = body.count(b'":') + sum(1 for _ in _SPACED_KEY.finditer(body))
    # Written anew, a text that begins with an escaped colon looks like a key, and would stand in for one.
    written += body.count(b'"\\u003a') + body.count(b'"\\u003A')
    if written != _kept(document) and (name := _twice(body)) is not None:
        raise Unreadable(f"{what}: the key {name[:60]!r} stands twice in one object")
    return document


def check_size(what: str, body: bytes) -> None:
    """Raises `Unreadable` where a few bytes of text would become a hundred times as many in memory."""
    if sum(map(body.count, (b",", b"{", b"["))) > MOST_VALUES:
        raise Unreadable(f"{what}: more than {MOST_VALUES:,} values: ask for smaller pages")


def _is_place(step: str) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10


def _kept(document: object) -> int:
    """How many keys all objects have, however deep they lie; not all of them, where some end in a backslash."""
    try:
        text = orjson.dumps(document)
    except orjson.JSONEncodeError:  # what is too deep can be read, and not written
        return -1
    return text.count(b'":') - text.count(b'\\":')


def _twice(body: bytes) -> str | None:
    """A key that an object has twice. The text is JSON, so a text before a colon is a key."""
    objects: list[set[str]] = []
    for token in _TOKEN.finditer(body):
        if token[0] == b"{":
            objects.append(set())
        elif token[0] == b"}":
            objects.pop()
        elif token[2] is not None:
            name: str = orjson.loads(token[1])
            if name in objects[-1]:
                return name
            objects[-1].add(name)
    return None
