"""Every format is read back, and holds what the sites hold."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from api.formats import encoder
from api.options import Format
from fixtures import Web
from tests.cli.kit import at, bag, called, truth

SQL = """
SELECT p.isbn, p.year, p.prize, b.title,
       b.year / 7 AS seventh, make_date(p.year, 2, 28) AS day, p.year % 2 = 0 AS even,
       CAST(p.year AS DECIMAL(10, 2)) / 100 AS hundredth,
       [p.year, NULL] AS list, {'year': p.year, 'isbn': p.isbn} AS both,
       CASE WHEN p.year % 3 = 0 THEN '' WHEN p.year % 3 = 1 THEN 'a "b", c' || chr(10) || '日本 👩‍🚀' END AS odd,
       make_timestamp(p.year, 3, 4, 5, 6, 7.5) AS moment
FROM prizes p LEFT JOIN books b ON b.isbn = p.isbn AND b.year > 1990
"""


def answered(web: Web, format_: str, *more: str, sql: str = SQL) -> bytes:
    result = called("query", sql, *at(web), "--format", format_, *more)
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def test_arrow(calm: Web) -> None:
    with pa.ipc.open_stream(answered(calm, "arrow")) as reader:
        table = reader.read_all()
    wanted = truth(calm, SQL)
    assert table.schema.names == wanted.schema.names
    assert bag(table.to_pylist()) == bag(wanted.to_pylist())


@pytest.mark.parametrize("named", ["--format", "by its ending"])
def test_parquet(calm: Web, tmp_path: Path, named: str) -> None:
    path = tmp_path / "answer.parquet"
    options = ["--format", "parquet"] if named == "--format" else []
    result = called("query", SQL, *at(calm), "--output", str(path), *options)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert bag(pq.read_table(path).to_pylist()) == bag(truth(calm, SQL).to_pylist())


def test_csv(calm: Web, tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    path.write_bytes(answered(calm, "csv"))
    wanted = truth(calm, SQL)
    types = ", ".join(f"'{n}': '{t}'" for n, t in _sql_types(wanted))
    with duckdb.connect() as connection:
        read = connection.sql(
            f"SELECT * FROM read_csv('{path}', header = true, columns = {{{types}}}, allow_quoted_nulls = false)"
        ).to_arrow_table()
    plain = [n for n in wanted.schema.names if n not in ("list", "both")]
    assert bag(read.select(plain).to_pylist()) == bag(wanted.select(plain).to_pylist())
    nested = [[json.loads(row[n]) for n in ("list", "both")] for row in read.to_pylist()]
    assert bag(nested) == bag([[row["list"], row["both"]] for row in wanted.to_pylist()])


def test_csv_quotes_only_what_has_to_be(calm: Web) -> None:
    text = answered(calm, "csv").decode()
    records = list(csv.reader(io.StringIO(text)))
    assert records[0][:3] == ["isbn", "year", "prize"]
    assert text.startswith("isbn,year,prize,title,seventh,")
    assert "\r" not in text


def test_ndjson(calm: Web) -> None:
    rows = [json.loads(line) for line in answered(calm, "ndjson").splitlines()]
    assert bag(rows) == bag(_as_json(truth(calm, SQL)))


def test_json(calm: Web) -> None:
    assert bag(json.loads(answered(calm, "json"))) == bag(_as_json(truth(calm, SQL)))


def test_table(calm: Web) -> None:
    sql = "SELECT isbn, year FROM prizes"
    lines = answered(calm, "table", sql=sql).decode().splitlines()
    assert lines[0].split() == ["isbn", "year"]
    wanted = [f"{row['isbn'] or 'NULL'} {row['year']}" for row in truth(calm, sql).to_pylist()]
    assert sorted(" ".join(line.split()) for line in lines[2:]) == sorted(wanted)


@pytest.mark.parametrize("format_", ["table", "csv", "ndjson", "json", "arrow"])
def test_no_rows_make_a_whole_document_too(calm: Web, format_: str) -> None:
    said = answered(calm, format_, sql="SELECT title, year FROM books WHERE year = 1")
    match format_:
        case "table":
            assert said.decode().splitlines()[0].split() == ["title", "year"]
        case "csv":
            assert said == b"title,year\n"
        case "ndjson":
            assert said == b""
        case "json":
            assert json.loads(said) == []
        case "arrow":
            assert pa.ipc.open_stream(said).read_all().num_rows == 0


def test_csv_is_the_default_where_nobody_looks_on(calm: Web) -> None:
    result = called("query", "SELECT isbn FROM books", *at(calm))
    assert result.stdout.splitlines()[0] == "isbn"
    assert len(result.stdout.splitlines()) == 1 + calm.tables["books"].num_rows


@pytest.mark.parametrize("format_", [Format.csv, Format.ndjson, Format.json])
def test_each_batch_is_out_as_soon_as_it_is_in(format_: Format) -> None:
    batch = pa.record_batch({"n": [1, 2]})
    encode = encoder(format_, batch.schema)
    encode.start()
    assert b"2" in encode.rows(batch)


def test_values_that_are_hard_to_write() -> None:
    batch = pa.record_batch(
        {
            "float": pa.array([float("nan"), float("-inf"), 1e300]),
            "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
            "decimal": pa.array(
                [decimal.Decimal("1E-18"), None, decimal.Decimal("12.5")], pa.decimal128(38, 18)
            ),
            "bytes": pa.array([b"\xff\x00", None, b""]),
            "nanoseconds": pa.array([1, 1_000, None], pa.timestamp("ns")),
            "zoned": pa.array(
                [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 3, pa.timestamp("us", "UTC")
            ),
            "span": pa.array([datetime.timedelta(days=1, seconds=5)] * 3),
            "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        }
    )
    encode = encoder(Format.ndjson, batch.schema)
    first, second, third = (json.loads(line) for line in encode.rows(batch).splitlines())
    assert first == {
        "float": "NaN",
        "big": 2**64 - 1,
        "decimal": 1e-18,
        "bytes": "ff00",
        "nanoseconds": "1970-01-01T00:00:00",
        "zoned": "2020-01-01T00:00:00+00:00",
        "span": "1 day, 0:00:05",
        "map": [["a", 1]],
    }
    assert second["float"] == "-Infinity"
    assert second["nanoseconds"] == "1970-01-01T00:00:00.000001"
    assert third["float"] == 1e300
    for format_ in (Format.csv, Format.table):
        assert encoder(format_, batch.schema).rows(batch)


def _sql_types(table: pa.Table) -> list[tuple[str, str]]:
    special = {"list": "VARCHAR", "both": "VARCHAR"}
    with duckdb.connect() as connection:
        connection.register("t", table)
        described = connection.execute("DESCRIBE t").fetchall()
    return [(name, special.get(name, kind)) for name, kind, *_ in described]


def _as_json(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: _json(value) for name, value in row.items()} for row in table.to_pylist()]


def _json(value: object) -> object:
    match value:
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return float(value)
        case _:
            return value


@pytest.mark.parametrize("format_", [Format.csv, Format.ndjson, Format.json, Format.table])
def test_nothing_steers_a_terminal(format_: Format) -> None:
    """What a site sends is shown, not obeyed; elsewhere text stays what it is."""
    batch = pa.record_batch({"v": ["\x1b[2J\x07 a\u202eb", "two\nlines", "日本"]})

    def written(width: int | None) -> str:
        made = encoder(format_, batch.schema, width=width)
        return (made.start() + made.rows(batch) + made.end()).decode()

    for sign in "\x1b\x07\u202e":
        assert sign not in written(80)
    assert "日本" in written(80)
    if format_ is Format.csv:
        assert "\x1b[2J" in written(None)
