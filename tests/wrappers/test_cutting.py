"""A reply that is cut says in its stretches what it says as a whole, wherever it is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers import CsvReader, JsonReader, NdjsonReader
from wrappers.cutting import Lines, Table
from wrappers.json_reader import _document

_VALUES = st.text(st.sampled_from('ab",\r\n é'), max_size=6)


def _cut(cutter: Cutter, body: bytes, size: int) -> Iterator[bytes]:
    """Every stretch of a body, as it is read."""
    head = b""
    window = size
    while len(body) > window:
        end = cutter.whole(body[:window], head)
        if end is None:
            break
        if not end:
            window *= 2
            continue
        yield cutter.reply(body[:end], head, False)
        head = head or cutter.head(body[:end])
        body, window = body[end:], size
    yield cutter.reply(body, head, True)


_UNQUOTED = st.text(st.sampled_from('ab" é'), min_size=1, max_size=6).filter(lambda text: text[0] != '"')
_WRITTEN = st.one_of(_UNQUOTED, _VALUES.map(lambda text: '"' + text.replace('"', '""') + '"'))


@given(
    st.lists(st.tuples(_WRITTEN, _WRITTEN), max_size=12),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_stretches_say_what_the_whole_says(
    rows: list[tuple[str, str]], size: int, end: str, mark: str
) -> None:
    lines = ['"a\nname",v', *map(",".join, rows)]
    body = (mark + "".join(line + end for line in lines)).encode()
    fields = (Field("k", pa.string()), Field("v", pa.string()))
    reader = CsvReader(fields={"k": "a\nname"})
    parsed = [
        column
        for part in _cut(Table(","), body, size)
        for column in [reader.parse("r", fields, Reply(200, {}, part)).columns]
    ]
    whole = reader.parse("r", fields, Reply(200, {}, body)).columns
    for number, column in enumerate(whole):
        assert pa.concat_arrays([columns[number] for columns in parsed]).equals(column)


@given(
    st.lists(st.dictionaries(st.sampled_from("kv"), st.text(max_size=8), min_size=2), max_size=8),
    st.integers(1, 60),
)
def test_lines_of_json_are_cut_between_records(records: list[dict[str, str]], size: int) -> None:
    body = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    fields = (Field("k", pa.string()), Field("v", pa.string()))
    found = [
        row
        for part in _cut(Lines(), body, size)
        for columns in [NdjsonReader().parse("r", fields, Reply(200, {}, part)).columns]
        for row in zip(*(column.to_pylist() for column in columns), strict=True)
    ]
    assert found == [(record["k"], record["v"]) for record in records]


_TEXTS = st.text(st.sampled_from('ab",:[]{}\\ \né'), max_size=6)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _TEXTS)
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(st.sampled_from('rs"[{\\é'), max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)
_RECORD = st.fixed_dictionaries({"k": _SCALARS, "v": _ANY})


@st.composite
def _documents(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], str]:
    """A document, the records in it and where they are; other things stand before and after them."""
    records = draw(st.lists(_RECORD, max_size=8))
    path = draw(st.lists(st.sampled_from(["r", "s", 'r"', "é\\"]), max_size=3))
    document: Any = records
    for name in reversed(path):
        before, after = (
            draw(
                st.dictionaries(
                    st.text(st.sampled_from("rxs"), max_size=2).filter(name.__ne__), _ANY, max_size=2
                )
            )
            for _ in range(2)
        )
        document = {**before, name: document, **{k: v for k, v in after.items() if k not in before}}
    spaces = draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(document, ensure_ascii=draw(st.booleans()), indent=spaces)
    return draw(st.sampled_from(["", "\ufeff", "\n "])) + text, records, "".join(f"/{name}" for name in path)


@given(_documents(), st.integers(1, 80))
def test_documents_of_json_are_cut_between_records(
    drawn: tuple[str, list[dict[str, Any]], str], size: int
) -> None:
    text, records, place = drawn
    reader = JsonReader(rows=place)
    cutter = reader.cutter({})
    assert cutter is not None
    parts = list(_cut(cutter, text.encode(), size))
    found = _said(reader, parts)
    assert found == records


@given(_documents(), st.integers(1, 80), st.data())
def test_what_is_wrong_in_a_document_is_wrong_in_a_stretch(
    drawn: tuple[str, list[dict[str, Any]], str], size: int, data: st.DataObject
) -> None:
    """However it is cut: no part of a document is read as if it were sound unless all of it is."""
    text, _, place = drawn
    body = text.encode()
    at = data.draw(st.integers(0, len(body)))
    wrong = data.draw(
        st.sampled_from([b"", b",", b"]", b"}", b"[", b"{", b'"', b"\\", b"1", b"{}", b'{"k":1,"v":2}'])
    )
    body = body[:at] + wrong + body[at + data.draw(st.integers(0, 3)) :]
    reader = JsonReader(rows=place)
    cutter = reader.cutter({})
    assert cutter is not None
    assert _said(reader, [body]) == _said(reader, list(_cut(cutter, body, size)))


def _said(reader: JsonReader, replies: list[bytes]) -> list[object] | None:
    """The records of all replies, or None where one of them is not to be understood."""
    try:
        return [
            record
            for body in replies
            for record in reader._records("r", _document("r", Reply(200, {}, body)))
        ]
    except (Unreadable, SchemaChanged):
        return None
