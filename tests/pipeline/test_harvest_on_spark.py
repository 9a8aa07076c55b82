"""A harvest divided over tasks of Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from fixtures import Behaviour, Fault, Fixed, Web
from mediator.store.store import look
from pipeline.harvest.tasks import Named, OnSpark
from pipeline.harvest.wanted import TASKS, Harvest, Harvested
from tests.harvest.kit import BOOK_TRADE, ISBNS, harvested, isbns, truth, written
from tests.pipeline.kit import SHARED

pytestmark = SHARED


def divided(
    spark: SparkSession,
    web: Web,
    store: Path,
    relation: str,
    bindings: Any = None,
    tasks: int | None = None,
    **more: Any,
) -> Harvested:
    @contextmanager
    def session(_: int) -> Iterator[SparkSession]:
        yield spark

    named = Named([str(BOOK_TRADE)], {"book_trade": web.url})
    return OnSpark(named, Harvest(relation, store, bindings, **more), tasks).go(session)


def test_pages_of_a_scan_are_divided_and_each_is_asked_for_once(
    spark: SparkSession, trade: Web, tmp_path: Path
) -> None:
    done = divided(spark, trade, tmp_path, "books")
    assert done.report.complete
    assert (done.engine, done.tasks) == ("spark", 2)
    assert trade.counters["books"].lookups == {f"page {n}": 1 for n in range(1, 4)}
    assert written(tmp_path, "books") == truth(trade, "books")
    again = divided(spark, trade, tmp_path, "books")
    assert (again.engine, again.gathered.asked) == ("local", 0)
    assert trade.requests == 3


def test_bindings_are_divided_within_the_limits_of_the_site(
    spark: SparkSession, trade: Web, tmp_path: Path
) -> None:
    trade.behave("reviews", Behaviour(latency=Fixed(0.02)))
    done = divided(spark, trade, tmp_path, "reviews", ISBNS)
    assert done.report.complete
    assert (done.engine, done.tasks, done.gathered.answered, done.gathered.kept) == ("spark", 2, 60, 60)
    known = [book["isbn"] for book in truth(trade, "books")]
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=known)
    assert set(trade.counters["reviews"].lookups.values()) == {1}
    assert trade.counters["reviews"].peak <= 8
    assert not list((tmp_path / TASKS).iterdir())
    # Here and there it is one store: who harvests in one process asks for nothing.
    before = trade.requests
    assert harvested(trade, tmp_path, "reviews", ISBNS).gathered.covered == 60
    assert trade.requests == before


def test_a_source_that_fails_in_one_task_is_missing_there_alone(
    spark: SparkSession, trade: Web, tmp_path: Path
) -> None:
    wanted = isbns(trade, 20)
    trade.behave("reviews", Behaviour(faults=(Fault("error", lookups=tuple(wanted[1::2]), status=403),)))
    done = divided(spark, trade, tmp_path, "reviews", pa.table({"isbn": wanted}))
    assert not done.report.complete
    assert (done.gathered.answered, done.gathered.failed) == (10, 10)
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=wanted[::2])
    trade.behave("reviews", Behaviour())
    trade.reset()
    again = divided(spark, trade, tmp_path, "reviews", pa.table({"isbn": wanted}))
    assert again.report.complete
    assert {name.split(" ")[0] for name in trade.counters["reviews"].lookups} == set(wanted[1::2])
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=wanted)


def test_what_it_may_spend_is_divided(spark: SparkSession, trade: Web, tmp_path: Path) -> None:
    done = divided(
        spark, trade, tmp_path, "reviews", pa.table({"isbn": isbns(trade, 30)}), limits={"max_calls": 9}
    )
    assert not done.report.complete
    assert trade.counters["reviews"].requests <= 9
    assert 0 < done.gathered.answered <= 9


def test_a_driver_that_is_killed_leaves_what_its_tasks_have_kept(trade: Web, tmp_path: Path) -> None:
    """It takes a session of its own, as it is killed with it."""
    trade.behave("reviews", Behaviour(latency=Fixed(0.4), concurrency=8))
    command = [sys.executable, "-m", "tests.harvest.spark_program", str(tmp_path), trade.url]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        due = time.monotonic() + 120
        while trade.counters["reviews"].requests < 40 and process.poll() is None:
            assert time.monotonic() < due
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    left = [path for path in (tmp_path / TASKS).iterdir() if path.is_dir()]
    assert left
    _gone(left)
    kept = {c.binding[0] for path in left for held in look(path) for c in held.covered}
    assert kept
    trade.behave("reviews", Behaviour())
    trade.reset()
    done = harvested(trade, tmp_path, "reviews", ISBNS)
    assert done.report.complete
    assert done.gathered.covered == len(kept)
    assert kept.isdisjoint(name.split(" ")[0] for name in trade.counters["reviews"].lookups)
    known = [book["isbn"] for book in truth(trade, "books")]
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=known)


def _gone(folders: list[Path]) -> None:
    """The workers end by themselves when they notice."""
    import fcntl

    due = time.monotonic() + 60
    for folder in folders:
        with (folder / "lock").open("a+") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    assert time.monotonic() < due
                    time.sleep(0.1)
