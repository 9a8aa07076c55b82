"""Parquet over HTTP: the columns asked for, typed; what is damaged, changed or too large is told."""

from __future__ import annotations

import io
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers.replies import DAY, ISBN, PRICE, SOLD, YEAR
from wrappers import ParquetReader
from wrappers import parquet_reader as module

AT = Field("at", pa.timestamp("us"))


def _reply(table: pa.Table, **said: Any) -> Reply:
    body = io.BytesIO()
    pq.write_table(table, body, **said)
    return Reply(200, {}, body.getvalue())


def _reader(**said: Any) -> ParquetReader:
    return ParquetReader(kind="parquet", **said)


def _column(field: Field, array: pa.Array, **said: Any) -> list[object]:
    parsed = _reader().parse("books", [field], _reply(pa.table({field.name: array}), **said))
    (column,) = parsed.columns
    assert column.type == field.type
    assert isinstance(column, pa.Array)
    return list(column.to_pylist())


def test_columns_come_by_name_in_the_order_of_the_fields() -> None:
    table = pa.table({"year": [1999, None], "noise": [["x"], []], "ISBN-13": ["a", "b"]})
    parsed = _reader(fields={"isbn": "ISBN-13"}).parse("books", [ISBN, YEAR], _reply(table, row_group_size=1))
    assert [c.to_pylist() for c in parsed.columns] == [["a", "b"], [1999, None]]
    assert parsed.count == 2


@pytest.mark.parametrize(
    ("field", "array", "values"),
    [
        (YEAR, pa.array([1, None], pa.int8()), [1, None]),
        (YEAR, pa.array([7], pa.int64()), [7]),
        (PRICE, pa.array([1, None], pa.int32()), [1.0, None]),
        (PRICE, pa.array([0.5], pa.float32()), [0.5]),
        (PRICE, pa.array([Decimal("12.34")], pa.decimal128(8, 2)), [12.34]),
        (ISBN, pa.array(["a", "a", None]).dictionary_encode(), ["a", "a", None]),
        (ISBN, pa.array(["a"], pa.large_string()), ["a"]),
        (ISBN, pa.nulls(2), [None, None]),
        (SOLD, pa.array([True, None]), [True, None]),
        (DAY, pa.array([date(2026, 1, 2)]), [date(2026, 1, 2)]),
        (AT, pa.array([datetime(2026, 1, 2)], pa.timestamp("ms")), [datetime(2026, 1, 2)]),
        (
            AT,
            pa.array([datetime(2026, 1, 2, 3)], pa.timestamp("us", "Asia/Tokyo")),
            [datetime(2026, 1, 2, 3)],
        ),
    ],
)
def test_values_come_as_declared(field: Field, array: pa.Array, values: list[object]) -> None:
    assert _column(field, array) == values


@pytest.mark.parametrize(
    ("field", "array", "said"),
    [
        (YEAR, pa.array(["1999"]), r"books\.year: expected int32, found string"),
        (YEAR, pa.array([2**40]), r"books\.year: expected int32, found int64: Integer value 1099511627776"),
        (YEAR, pa.array([1.0]), r"books\.year: expected int32, found double"),
        (ISBN, pa.array([9]), r"books\.isbn: expected string, found int64"),
        (SOLD, pa.array([1]), r"books\.sold: expected bool, found int64"),
        (DAY, pa.array(["2026-01-02"]), r"books\.day: expected date32\[day\], found string"),
        (ISBN, pa.array([["a"]]), r"books\.isbn: expected string, found list"),
    ],
)
def test_another_type_is_told_with_its_field(field: Field, array: pa.Array, said: str) -> None:
    with pytest.raises(SchemaChanged, match=said):
        _column(field, array)


def test_a_missing_column_is_told_unless_it_may_be_missing() -> None:
    reply = _reply(pa.table({"isbn": ["a", "b"]}))
    with pytest.raises(SchemaChanged, match=r"books\.year: expected a field of type int32, found only: isbn"):
        _reader().parse("books", [ISBN, YEAR], reply)
    parsed = _reader(optional=("year", "isbn")).parse("books", [YEAR], reply)
    assert [c.to_pylist() for c in parsed.columns] == [[None, None]]


def test_a_file_without_rows_is_none() -> None:
    assert _column(YEAR, pa.array([], pa.int32())) == []


def test_damage_anywhere_is_told() -> None:
    whole = _reply(pa.table({"isbn": [str(n) for n in range(2_000)]}), compression="snappy").body
    broken = [b"", b"PAR1", b"<html>", whole[:-1], whole[: len(whole) // 2], whole[:4] + whole[-200:]]
    broken += [whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :] for n in range(0, len(whole), 97)]
    for body in broken:
        with suppress(Unreadable, SchemaChanged):
            parsed = _reader().parse("books", [ISBN], Reply(200, {}, body))
            assert len(parsed.columns[0]) == parsed.count  # a bit of a text, which nobody can see


def test_a_file_that_would_fill_the_memory_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = _reply(pa.table({"isbn": ["a"] * 100_000, "year": pa.nulls(100_000, pa.int32())}))
    assert len(reply.body) < 5_000
    monkeypatch.setattr(module, "_MOST", 150_000)
    assert _reader().parse("books", [ISBN], reply).count == 100_000
    with pytest.raises(Unreadable, match=r"books: 200,000 values in .* unpacked, where 150,000"):
        _reader().parse("books", [ISBN, YEAR], reply)
