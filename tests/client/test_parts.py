"""The parts that ask nobody: frames, records, parameters, problems."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest

from api.client import errors
from api.client.ipc import Decoder, NotArrow
from api.client.options import Options, request
from api.client.parameters import sent
from api.client.records import End, Rows, record_of
from api.client.types import sql_name
from api.client.values import python_values

SCHEMA = pa.schema(
    {"n": pa.int64(), "kind": pa.dictionary(pa.int8(), pa.string()), "s": pa.list_(pa.string())}
)


def batch(start: int, count: int) -> pa.RecordBatch:
    rows = range(start, start + count)
    kinds = pa.array(["even", "odd"] * count, pa.string())[:count].dictionary_encode()
    columns = [
        pa.array(rows, pa.int64()),
        kinds.cast(SCHEMA.field("kind").type),
        [[str(n)] * (n % 3) for n in rows],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(c) if isinstance(c, list) else c for c in columns], schema=SCHEMA
    )


def stream() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch(0, 3))
        writer.write_batch(batch(3, 1000))
        writer.write_batch(batch(0, 0), custom_metadata={"mediator.end": "{}"})
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_stream_is_read_in_any_pieces(size: int) -> None:
    data, decoder = stream(), Decoder()
    found = []
    for at in range(0, len(data), size):
        found += list(decoder.feed(data[at : at + size]))
    assert decoder.ended
    assert decoder.schema == SCHEMA
    assert [told.batch.to_pylist() for told in found] == [
        b.to_pylist() for b in (batch(0, 3), batch(3, 1000), batch(0, 0))
    ]
    assert [dict(told.metadata) for told in found] == [{}, {}, {"mediator.end": "{}"}]


def test_a_batch_is_there_with_its_last_byte() -> None:
    data, decoder = stream(), Decoder()
    came = [at for at in range(len(data)) if list(decoder.feed(data[at : at + 1]))]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch(0, 3))
        first = sink.tell()
    assert came[0] == first - 1


@pytest.mark.parametrize(
    "data", [b"<html><body>", b"\xff\xff\xff\xff\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"]
)
def test_what_is_no_arrow_is_told(data: bytes) -> None:
    with pytest.raises(NotArrow):
        list(Decoder().feed(data))


def test_records_of_a_newer_server_are_read() -> None:
    assert record_of({"type": "rows", "rows": [{"a": 1}], "id": "3", "colour": "blue"}) == Rows(
        [{"a": 1}], id="3"
    )
    assert record_of({"type": "applause"}) is None
    assert not End("partial").complete


def test_values_travel_as_json_has_them() -> None:
    day, moment = datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 8, 30)
    key = uuid.UUID(int=7)
    assert sent([None, True, 1, 1.5, "x", day, moment, moment.time()]) == [
        None, True, 1, 1.5, "x", "2026-01-31", "2026-01-31 08:30:00", "08:30:00",
    ]  # fmt: skip
    assert sent({"d": decimal.Decimal("1.10"), "k": key, "b": b"\x00a", "inf": float("inf")}) == {
        "d": "1.10", "k": str(key), "b": "\\x00\\x61", "inf": "inf",
    }  # fmt: skip
    assert sent([datetime.timedelta(seconds=2), (1, day), np.int64(3), np.array([1.5])]) == [
        "2000000 microseconds", [1, "2026-01-31"], 3, [1.5],
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["text", b"bytes", [object()]])
def test_what_is_no_parameter_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        sent(wrong)  # type: ignore[arg-type]


def test_a_request_says_what_was_said_and_no_more() -> None:
    options: Options = {"goal": "first_rows", "pause": ("slow",), "budget": {"calls": 3}, "partials": False}
    assert request("SELECT 1", None, options) == {
        "sql": "SELECT 1", "goal": "first_rows", "pause": ["slow"], "budget": {"calls": 3}, "partials": False,
    }  # fmt: skip
    with pytest.raises(TypeError, match="gaol"):
        request("SELECT 1", None, {"gaol": "first_rows"})


def test_every_kind_of_problem_has_its_exception() -> None:
    document = {"type": "https://mediator.invalid/problems/unparsable", "status": 400, "detail": "not SQL",
                "hint": "write SQL", "position": 7, "line": 1, "column": 8}  # fmt: skip
    error = errors.problem_of(document)
    assert isinstance(error, errors.Unparsable)
    assert (error.kind, error.position, error.line, error.column, error.hint) == (
        "unparsable",
        7,
        1,
        8,
        "write SQL",
    )
    assert str(error) == "not SQL (line 1, column 8)\nwrite SQL"
    # A proxy in between has no documents.
    assert isinstance(errors.problem_of({"detail": "Bad gateway"}, status=502), errors.Problem)
    assert isinstance(errors.problem_of({}, status=401), errors.Unauthorized)
    assert errors.problem_of({}, status=429, retry_after=2).retry_after == 2
    assert type(errors.problem_of({"type": "about:nothing-known", "status": 418})) is errors.Problem


def test_types_have_the_names_that_duckdb_gives_them() -> None:
    import duckdb

    sql = """SELECT true AS a, 1::TINYINT AS b, 1::HUGEINT AS c, 1.5::DECIMAL(9,2) AS d, 1.5::DOUBLE AS e, 'x' AS f,
             DATE '2026-01-31' AS g, now() AS h, TIMESTAMP '2026-01-31' AS i, INTERVAL 1 DAY AS j, '\\x00'::BLOB AS k,
             [1, 2] AS l, TIME '08:00' AS m, {'a': 1} AS n, 1::UINTEGER AS o, 1::FLOAT AS p"""
    with duckdb.connect() as connection:
        found = connection.sql(sql)
        told = [str(kind) for kind in found.types]
        names = [sql_name(kind) for kind in found.to_arrow_table().schema.types]
    expected = {"HUGEINT": "DECIMAL(38,0)", "STRUCT(a INTEGER)": "STRUCT", "FLOAT": "REAL"}
    assert names == [expected.get(name, name) for name in told]


def test_values_are_python_s() -> None:
    moment = datetime.datetime(2026, 1, 31, 8, 30, 0, 123456)
    fine = pa.array([moment, None]).cast(pa.timestamp("ns"))
    assert python_values(pa.array([pa.scalar(fine[0].value + 1, pa.timestamp("ns")), None])) == [moment, None]
    intervals = pa.array([(1, 2, 3_000_000), None], pa.month_day_nano_interval())
    assert python_values(intervals) == [datetime.timedelta(days=32, milliseconds=3), None]
    assert python_values(pa.chunked_array([[1], [2]])) == [1, 2]
