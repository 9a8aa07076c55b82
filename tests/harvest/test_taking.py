"""What tasks have kept comes into the store that they were sent for: once, twice, or in halves."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from fixtures import Web
from mediator.catalog.model import Catalog
from mediator.clock import wall
from mediator.errors import StoreError
from mediator.store import statistics
from mediator.store.ledger import sent_on
from mediator.store.store import Store, look
from pipeline.harvest.local import harvest
from pipeline.harvest.taking import take_in
from tests.harvest.kit import answered, bag, catalog_of, truth


def limited(web: Web) -> Catalog:
    """Who is who may be asked so often a day, so that it is counted."""
    catalog = catalog_of(web)
    source = replace(catalog.sources["who_is_who"], daily=1_000)
    return replace(catalog, sources={**catalog.sources, "who_is_who": source})


def sent(store: Path) -> int:
    return (sent_on(store, datetime.fromtimestamp(wall(), UTC).date()) or {}).get("who_is_who", 0)


def test_rows_coverage_and_counts_come_together(trade: Web, tmp_path: Path) -> None:
    catalog, store, tasks = limited(trade), tmp_path / "store", tmp_path / "tasks"
    harvest(catalog, "authors", store, pa.table({"id": [1001, 1002, 1003]}))
    for name, ids in (("one", [1003, 1004, 9_999]), ("two", [1005, 1006])):
        harvest(catalog, "authors", tasks / name, pa.table({"id": ids}), output=tmp_path / "elsewhere")
    (tasks / "begun").mkdir()  # by a task that was killed before it had a store
    shutil.copytree(tasks / "two", tmp_path / "again")
    all_sent = sent(store) + sent(tasks / "one") + sent(tasks / "two")
    assert take_in(store, tasks, catalog) == 5
    assert not list(tasks.iterdir())
    assert sent(store) == all_sent >= trade.counters["authors"].requests == 8
    (held,) = look(store)
    assert {c.binding[0] for c in held.covered} == {1001, 1002, 1003, 1004, 1005, 1006, 9_999}
    asked = trade.requests
    sql = "SELECT * FROM authors WHERE id IN (1001, 1003, 1004, 1005, 1006, 9999)"
    expected = truth(trade, "authors", id=[1001, 1003, 1004, 1005, 1006])
    assert asyncio.run(answered(trade, store, sql)) == expected
    assert trade.requests == asked
    measured = {place.source: m for place, m in statistics.load(store, wall())}
    assert measured["who_is_who"].requests == pytest.approx(8, abs=0.1)
    # A kill before the task's store was removed: it is taken in once more. Nothing is counted for less than it was.
    shutil.move(tmp_path / "again", tasks / "two")
    take_in(store, tasks, catalog)
    assert sent(store) >= all_sent
    with Store(store) as opened:
        rows = bag(opened.table("authors", wall()))
    assert rows == truth(trade, "authors", id=[1001, 1002, 1003, 1004, 1005, 1006])


def test_a_task_that_still_runs_is_waited_for(trade: Web, tmp_path: Path) -> None:
    catalog, store, tasks = limited(trade), tmp_path / "store", tmp_path / "tasks"
    harvest(catalog, "authors", tasks / "one", pa.table({"id": [1001]}), output=tmp_path / "elsewhere")
    with Store(tasks / "one"), pytest.raises(StoreError, match="is in use by process"):
        take_in(store, tasks, catalog)
    assert take_in(store, tasks, catalog) == 1
