"""The bench of queries on Spark at a tiny size: answers are verified, its shape is what is promised. No speeds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from bench import spark
from bench.result import Result
from bench.spark import checking
from bench.spark.trade import NAMES, lay, tables

ROOT = Path(__file__).parents[2]
FIGURES = {
    "epoch_overhead_s",
    "lookups_vs_distinct",
    "skew_balance",
}
PARTS = "epochs,lookups,skew"  # the others take long at any size


@pytest.mark.xdist_group("spark apart")
@pytest.mark.timeout(900)
def test_it_tells_its_figures_and_draws(tmp_path: Path) -> None:
    """In a process of its own, since there is one Spark session in each."""
    plot = tmp_path / "spark.png"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "spark", "--quick", "--json", "--plot", str(plot), "--only", PARTS],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["bench"] == "spark"
    assert set(told["figures"]) == FIGURES
    assert all(value > 0 for value in told["figures"].values())
    assert told["figures"]["lookups_vs_distinct"] == 1
    assert told["detail"]["lookups"]["asked_by_cells"] > told["detail"]["lookups"]["distinct"]
    assert told["detail"]["epochs"]["epochs"] > 5
    assert plot.stat().st_size > 10_000


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_the_same_each_time(name: str) -> None:
    assert tables(name, 5_000) == tables(name, 5_000)


def test_what_is_skewed_is_skewed_and_what_is_correlated_changes_in_the_middle(tmp_path: Path) -> None:
    counts = {
        name: np.sort(np.bincount(tables(name, 50_000)["lines"]["order_no"].to_numpy()))[::-1]
        for name in ("uniform", "skewed")
    }
    assert counts["skewed"][0] > 20 * counts["uniform"][0]
    lines = duckdb.sql(
        "SELECT l.order_no * 2 >= (SELECT count(*) FROM orders) AS late, "
        "avg((p.order_no IS NOT NULL)::INT) AS parcels, avg((b.book IS NOT NULL)::INT) AS books "
        "FROM lines l LEFT JOIN parcels p USING (order_no) LEFT JOIN books b USING (book) GROUP BY ALL ORDER BY ALL",
        connection=_views(lay("correlated", 50_000, tmp_path / "laid").files),
    ).fetchall()
    (_, parcels, books), (_, late_parcels, late_books) = lines
    assert parcels < 0.1
    assert late_books < 0.1
    assert books == late_parcels == 1


def _views(files: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, file in files.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}')")
    return connection


def test_wrong_answers_are_no_figure(tmp_path: Path) -> None:
    laid = lay("uniform", 2_000, tmp_path / "laid")
    true = checking.truth(laid)
    with _views(laid.files) as connection:
        answers = connection.sql(laid.sql).to_arrow_table()
    whole, other = tmp_path / "whole.parquet", tmp_path / "other.parquet"
    pq.write_table(answers, whole)
    checking.check("somebody", checking.found([whole]), true)
    changed = answers.set_column(0, "order_no", answers["order_no"].combine_chunks().take([0] * len(answers)))
    for wrong in (answers.slice(1), changed):
        pq.write_table(wrong, other)
        with pytest.raises(RuntimeError, match="the answers of somebody are wrong"):
            checking.check("somebody", checking.found([other]), true)
    with pytest.raises(RuntimeError, match="wrong: 0 rows"):
        checking.check("somebody", checking.found([]), true)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no part nonsense; there are epochs, "):
        spark.measured(spark.Scale.quick(), ("nonsense",))


def test_what_is_not_there_is_not_drawn(tmp_path: Path) -> None:
    file = tmp_path / "some.png"
    spark.draw(Result("spark", curves={"cores": {"1": 2.0, "2": 1.0}}), file)
    assert file.stat().st_size
