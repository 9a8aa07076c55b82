"""A handful of kills; `python -m tests.store.kill --runs 50` does more."""

from __future__ import annotations

from pathlib import Path

import pytest

from mediator.catalog.model import Relation
from mediator.clock import wall
from mediator.store.records import Covered, Group
from mediator.store.store import Store
from tests.store.kill import Tale, check, runs, trade
from tests.store.kit import sent


@pytest.mark.parametrize("seed", [1, 101, 201])
def test_a_kill_loses_nothing_acknowledged_and_claims_nothing_untrue(seed: int) -> None:
    """Two children, one after another on one folder."""
    tales = list(runs(range(seed, seed + 2)))
    assert not [str(tale) for tale in tales if tale.faults]
    assert all(tale.acknowledged <= tale.covered for tale in tales)


def test_the_check_finds_what_was_acknowledged_and_lost(tmp_path: Path) -> None:
    tale = Tale(0, "")
    check(tmp_path, {("authors", ("id",), (1001,))}, trade(), tale)
    assert tale.faults == ["acknowledged, and lost: ('authors', ('id',), (1001,))"]


@pytest.mark.parametrize("rows", [0, 2], ids=["a row too few", "a row too many"])
def test_the_check_finds_coverage_that_the_rows_do_not_bear_out(tmp_path: Path, rows: int) -> None:
    web, now = trade(), wall()
    authors: Relation = web.catalog.relations["authors"]
    values = [tuple(r.values()) for r in web.tables["authors"].to_pylist() if r["id"] == 1001]
    values += [(1001, "Nobody", 1900, "Nowhere")]
    with Store(tmp_path) as store:
        covered = [Covered(("id",), (1001,), now, float("inf"), 1)]
        store.append([Group(authors, 0, [sent(authors, now, *values[:rows])] if rows else [], covered)])
    tale = Tale(0, "")
    check(tmp_path, set(), web, tale)
    assert tale.faults == [f"authors {{'id': 1001}}: {rows} rows instead of 1, or others"]
