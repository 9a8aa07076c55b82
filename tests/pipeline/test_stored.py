"""What a stage gives comes back from its files as it was, also what Parquet has no type for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.spread import stored

SPAN = pa.month_day_nano_interval()
SPANS = [(1, 2, 3), None, (0, 0, -5)]
ROWS = pa.table(
    {
        "a.b": pa.array([1, None, 3]),
        "a": pa.array(["\x00", None, "\U0001f600"]),
        "span": pa.array(SPANS, SPAN),
        "list": pa.array([SPANS, None, []], pa.list_(SPAN)),
        "two": pa.array([SPANS[:2], None, SPANS[1:]], pa.list_(SPAN, 2)),
        "map": pa.array([[("k", SPANS[0])], None, [("k", None)]], pa.map_(pa.string(), SPAN)),
        "row": pa.array(
            [{"s": SPANS[0], "l": [1]}, None, {"s": None, "l": None}],
            pa.struct([("s", SPAN), ("l", pa.list_(pa.int64()))]),
        ),
    }
)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    some = pa.schema([ROWS.schema.field(name) for name in ("span", "a")])
    for rows in (ROWS, ROWS.slice(1)):
        stored.put(tmp_path / "rows.parquet", rows)
        file = pq.ParquetFile(tmp_path / "rows.parquet")
        assert stored.taken(file, 0, rows.schema).equals(rows)
        assert stored.taken(file, 0, some).equals(rows.select(some.names))


def test_what_others_could_not_read_is_named() -> None:
    names = [said.split()[0] for said in stored.without_type(ROWS.schema)]
    assert names == ["span", "list", "two", "map", "row"]
