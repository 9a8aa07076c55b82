"""Queries on Spark give what one eddy gives, and DuckDB, whatever comes when and in whatever micro-batches.

`MEDIATOR_SPARK_SEEDS=100` searches further; `MEDIATOR_KILLS=30` (`test_spread_kills.py`) kills more often.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.any_route.drawing import draw
from tests.any_route.ranges import draw_ranges
from tests.any_route.search import answers
from tests.pipeline.kit import SHARED
from tests.pipeline.spreading import Spread, spread, staged

SEEDS = int(os.environ.get("MEDIATOR_SPARK_SEEDS", "2"))


def searched(session: SparkSession, seed: int, folder: Path) -> list[Spread]:
    """A statement of each of two cases of this seed."""
    found = []
    for number, drawn in enumerate((draw, draw_ranges)):
        case, random = drawn(seed), Random(seed)
        statement = random.choice(case.statements)
        if (seed + number) % 2:
            statement = staged(statement, random)
        one = spread(session, case, statement, folder / drawn.__name__, random)
        if one is None:
            continue
        true = answers(statement, case.tables)
        where = f"{drawn.__name__} {seed}, {one.cells} cells, {one.epochs} epochs: {statement}"
        assert not one.rows - true, f"{where}: too many"
        if one.complete:
            assert one.rows == true, f"{where}: too few"
        assert one.complete or not case.healthy, f"{where}: nothing failed"
        assert max(one.lookups.values(), default=0) <= 1, f"{where}: asked again"
        found.append(one)
    return found


@SHARED
@pytest.mark.timeout(600 + 30 * SEEDS)
def test_spark_gives_what_one_eddy_gives(spark: SparkSession, tmp_path: Path) -> None:
    found = [one for seed in range(SEEDS) for one in searched(spark, seed, tmp_path / str(seed))]
    assert sum(one.cells > 1 and one.epochs > 1 for one in found) > 0
    assert sum(one.rows.total() for one in found)
