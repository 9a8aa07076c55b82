"""A reply that is cut says in its stretches what it says as a whole, wherever it is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from wrappers import CsvReader, NdjsonReader
from wrappers.cutting import Lines, Table

_VALUES = st.text(st.sampled_from('ab",\r\n é'), max_size=6)


def _cut(lines: Cutter, body: bytes, size: int) -> Iterator[bytes]:
    """Every stretch of a body, as it is read."""
    head = b""
    window = size
    while len(body) > window:
        end = lines.whole(body[:window])
        if not end:
            window *= 2
            continue
        yield head + body[:end]
        head = head or lines.head(body[:end])
        body, window = body[end:], size
    yield head + body


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
