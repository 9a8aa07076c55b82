"""DuckDB, behind the wall of `refuse.py`, is itself locked."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from mediator.query import duck


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM python_table",
    ],
)
def test_nothing_outside_is_read(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    python_table = pa.table({"a": [1]})
    assert python_table.num_rows
    with pytest.raises(duckdb.Error):
        duck.run(sql.format(file=file), {})


@pytest.mark.parametrize(
    "setting", ["enable_external_access = true", "threads = 8", "lock_configuration = false"]
)
def test_no_setting_changes(setting: str) -> None:
    with pytest.raises(duckdb.Error, match="locked"):
        duck.cursor().execute(f"SET {setting}")


def test_time_is_utc_and_there_is_one_thread() -> None:
    row = duck.run(
        "SELECT current_setting('TimeZone') AS z, current_setting('threads') AS t", {}
    ).to_pylist()[0]
    assert row == {"z": "UTC", "t": 1}


def test_tables_of_one_call_are_gone_after_it() -> None:
    duck.run("SELECT * FROM t", {"t": pa.table({"a": [1]})})
    with pytest.raises(duckdb.Error, match="does not exist"):
        duck.run("SELECT * FROM t", {})


def test_threads_do_not_see_one_anothers_tables() -> None:
    sums: dict[int, int] = {}

    def work(number: int) -> None:
        table = pa.table({"a": [number] * 100})
        found = {
            duck.run("SELECT sum(a)::BIGINT AS s FROM t", {"t": table})["s"][0].as_py() for _ in range(20)
        }
        sums[number] = found.pop() if len(found) == 1 else -1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {n: n * 100 for n in range(6)}


def test_a_statement_is_checked_against_its_own_relations_whatever_was_checked_before() -> None:
    def of(name: str) -> pa.Schema:
        return pa.schema([pa.field(name, pa.int64())])

    assert duck.names("SELECT * FROM Shelf", {"Shelf": of("a")}) == ["a"]
    both = {"shelf": of("b"), "SHELF": of("b")}
    assert duck.names("SELECT s.b AS x, t.b AS y FROM shelf s, SHELF t", both) == ["x", "y"]
    assert duck.names("SELECT * FROM shelf", {"shelf": of("c")}) == ["c"]
    with pytest.raises(duckdb.Error, match="shelf"):
        duck.names("SELECT * FROM shelf", {"other": of("c")})
