"""What people see: aligned, whole where it can be, and harmless."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from rich.cells import cell_len

from api.table import Table, fitted


def lines(*batches: pa.RecordBatch, width: int | None = None, colour: bool = False) -> list[str]:
    table = Table(batches[0].schema, width, colour)
    parts = [table.start(), *(table.rows(b) for b in batches), table.end()]
    return b"".join(parts).decode().splitlines()


def of(**columns: Sequence[object]) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_numbers_stand_right_and_texts_left() -> None:
    assert lines(of(name=["a", "bcd"], n=[1, 22_222_222])) == [
        "name         n",
        "────  ────────",
        "a            1",
        "bcd   22222222",
    ]


def test_null_is_not_the_text_null() -> None:
    assert [line.strip() for line in lines(of(x=[None, "NULL", ""]))[2:]] == ["NULL", '"NULL"', ""]


def test_null_is_dim_in_a_terminal() -> None:
    assert lines(of(x=[None, "a"]), colour=True)[2] == "\x1b[2mNULL\x1b[0m"


def test_a_hostile_site_cannot_steer_the_terminal() -> None:
    shown = "\n".join(lines(of(x=["\x1b[2J\x9b\r\n\u202eevil"]), width=80))
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2J" in shown


def test_a_column_may_have_a_hostile_name() -> None:
    assert "\x1b" not in "\n".join(lines(of(**{"\x1b[2J": [1]})))


def test_wide_characters_are_aligned() -> None:
    shown = lines(of(x=["日本語", "abc"], y=["a", "b"]))
    assert {cell_len(line.removesuffix("a").removesuffix("b")) for line in shown[2:]} == {8}


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_row_is_one_line_of_the_terminal(width: int) -> None:
    long = of(a=["x" * 50, "日本" * 30], n=[1, 2], b=["y" * 90, "z"])
    for line in lines(long, long, width=width):
        assert cell_len(line) <= width
    assert "…" in lines(long, width=width)[2]


def test_numbers_are_never_cut() -> None:
    small, large = of(n=[1]), of(n=[123_456_789_012])
    assert lines(small, large, width=8)[-1] == "123456789012"


def test_nothing_is_cut_outside_a_terminal() -> None:
    short, long = of(a=["x"], b=["1"]), of(a=["y" * 300], b=["2"])
    shown = lines(short, long, short)
    assert shown[3] == "y" * 300 + "  2"
    assert shown[4] == "x" + " " * 299 + "  1"


def test_nested_values_are_json() -> None:
    batch = of(x=[[1, None], []], y=[{"a": "b"}, None])
    assert [line.split() for line in lines(batch)[2:]] == [["[1,null]", '{"a":"b"}'], ["[]", "NULL"]]


def test_the_header_comes_without_rows_too() -> None:
    assert lines(of(x=["a"]).slice(0, 0))[0] == "x"


def test_text_gives_way_before_numbers() -> None:
    assert fitted([50, 8], [True, False], 30) == [20, 8]


def test_text_takes_the_room_there_is() -> None:
    assert fitted([10, 5], [True, False], 80) == [32, 5]
