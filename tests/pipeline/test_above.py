"""Stages above the cells: made by Spark, of the files that are named and no others; or by DuckDB, and that is said."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.errors import TypeMismatch
from mediator.query.model import SqlStage
from mediator.query.understand import understand
from pipeline.sparksql import parquet, settings
from pipeline.spread import above
from pipeline.spread.folder import Folder
from pipeline.spread.given import File
from pipeline.spread.plan import Plan, planned
from tests.pipeline.kit import SHARED
from tests.query.naive import CATALOG

Row = tuple[object, ...]
GROUPED = "SELECT publisher, COUNT(*) AS n FROM books GROUP BY publisher ORDER BY n DESC, publisher"
SORTED = "SELECT title, year FROM books ORDER BY year DESC, title"


class Above:
    """The last stage of a statement over books, and files of the stage that it reads."""

    def __init__(self, session: SparkSession, folder: Path, sql: str) -> None:
        query = understand(sql, CATALOG)
        self._session, self.folder = session, Folder(folder)
        self.plan: Plan = planned(
            CATALOG, query, verdicts_of(query, CATALOG), Settings(), lambda _, __: 10.0, slots=1, askers=1
        )
        stage = query.stages[-1]
        assert isinstance(stage, SqlStage)
        self.stage = stage
        (self.read,) = stage.reads

    def put(self, number: int, **columns: Sequence[object]) -> File:
        """Rows of the stage that is read; columns by their names in books."""
        schema = self.plan.stages[self.read].schema
        rows = pa.table([pa.array(columns[f.name.removeprefix("books.")], f.type) for f in schema], schema)
        path = self.folder.answers / self.read / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return File(self.read, str(path), rows.num_rows)

    def made(self, *files: File) -> list[Row]:
        found = above.made(self._session, self.plan, self.folder, self.stage, files)
        rows: list[Row] = []
        for file in found:
            assert file.stage == self.stage.name
            batches = list(above.batches_of(file.path, self.stage.schema))
            assert file.rows == sum(batch.num_rows for batch in batches) > 0
            for batch in batches:
                rows += zip(*(c.to_pylist() for c in batch.columns), strict=True)
        return rows


@SHARED
@pytest.mark.timeout(300)
def test_only_files_that_are_named_count(spark: SparkSession, tmp_path: Path) -> None:
    made = Above(spark, tmp_path / "a [b] {c} *?", GROUPED)
    one = made.put(1, publisher=["P", "Q", None])
    two = made.put(2, publisher=["P", None, None])
    made.put(3, publisher=["nobody names it"])
    assert made.made(one, two) == [(None, 3), ("P", 2), ("Q", 1)]
    assert made.made(two) == [(None, 2), ("P", 1)]
    assert made.made(one, one) == [("P", 2), ("Q", 2), (None, 2)]


@SHARED
@pytest.mark.timeout(300)
def test_of_no_files_there_are_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert Above(spark, tmp_path, GROUPED).made() == []
    assert Above(spark, tmp_path, "SELECT COUNT(*) AS n, MAX(year) AS y FROM books").made() == [(0, None)]


@SHARED
@pytest.mark.timeout(300)
def test_what_is_in_order_is_in_order_over_many_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "5"}
    monkeypatch.setattr(settings, "SETTINGS", {**settings.SETTINGS, **more})
    made = Above(spark, tmp_path, SORTED)
    years = [n * 7919 % 1009 if n % 50 else None for n in range(2000)]
    files = [made.put(n, title=[f"t{m}" for m in range(n, 2000, 4)], year=years[n::4]) for n in range(4)]
    rows = made.made(*files)
    assert len(list((tmp_path / "answers" / made.stage.name).glob("*/part-*.parquet"))) > 1
    want = sorted(
        ((f"t{n}", y) for n, y in enumerate(years)), key=lambda r: (r[1] is None, -(r[1] or 0), r[0])
    )
    assert rows == want


@SHARED
@pytest.mark.timeout(300)
def test_an_attempt_that_fails_leaves_nothing_that_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = Above(spark, tmp_path, GROUPED)
    file = made.put(1, publisher=["P", "P"])
    write = parquet.write

    def half(frame: DataFrame, folder: Path, schema: pa.Schema) -> Any:
        write(frame, folder, schema)
        raise SparkRuntimeException("half way")

    monkeypatch.setattr(parquet, "write", half)
    with caplog.at_level(logging.INFO):
        assert made.made(file) == [("P", 2)]
    assert "in one process" in caplog.text
    assert "half way" in caplog.text


@SHARED
@pytest.mark.timeout(300)
def test_an_error_is_told_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    made = Above(spark, tmp_path, "SELECT year * 2000000 AS y FROM books ORDER BY y")
    with pytest.raises(TypeMismatch, match="Overflow in multiplication"):
        made.made(made.put(1, year=[1984]))


@SHARED
@pytest.mark.timeout(300)
def test_what_befalls_spark_is_not_done_in_one_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> Any:
        raise ConnectionRefusedError

    monkeypatch.setattr(parquet, "write", gone)
    made = Above(spark, tmp_path, GROUPED)
    file = made.put(1, publisher=["P"])
    with pytest.raises(ConnectionRefusedError):
        made.made(file)


@SHARED
@pytest.mark.timeout(300)
def test_what_is_done_in_one_process_is_said(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Above(spark, tmp_path, "SELECT MEDIAN(year) AS m FROM books")
    (remark,) = above.remarks(made.plan)
    assert "median(...)" in remark
    assert "in one process" in remark
    with caplog.at_level(logging.INFO):
        assert made.made(made.put(1, year=[1, 2, 4])) == [(2.0,)]
    assert remark in caplog.text
    assert above.remarks(Above(spark, tmp_path, GROUPED).plan) == ()


@SHARED
@pytest.mark.timeout(300)
def test_the_users_session_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.caseSensitive")
    made = Above(spark, tmp_path, GROUPED)
    made.made(made.put(1, publisher=["P"]))
    assert spark.conf.get("spark.sql.caseSensitive") == before
    assert not spark.catalog.listTables()
    assert SparkSession.getActiveSession() is spark
