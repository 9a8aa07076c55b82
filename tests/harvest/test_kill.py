"""A handful of kills; `python -m tests.harvest.kill --runs 50` does more."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from fixtures import Web
from mediator.store.shelf import Walked
from tests.harvest.kill import durable, runs
from tests.harvest.kit import harvested, isbns
from tests.store.kill import Tale


@pytest.mark.parametrize("seed", [1, 101])
def test_a_kill_loses_nothing_that_was_kept_and_nothing_is_asked_for_twice(seed: int) -> None:
    """Three children, one after another on one folder; others, where these were done before they were killed."""
    for first in range(seed, seed + 15, 3):
        tales: list[Tale] = list(runs(range(first, first + 3), chain=3))
        assert not [str(tale) for tale in tales if tale.faults]
        if any(tale.killed for tale in tales):
            return
    pytest.fail("all were done before they were killed")


def test_the_count_of_what_is_durable_is_by_what_is_covered(trade: Web, tmp_path: Path) -> None:
    assert durable(trade, tmp_path) == {"books": 0, "reviews": 0}
    harvested(trade, tmp_path, "reviews", pa.table({"isbn": isbns(trade, 3)}))
    found = durable(trade, tmp_path)
    assert found["books"] == 0
    assert found["reviews"] >= 3
    assert Walked("books", "all", (), ((),)).digest != Walked("books", "all", (), ((1,),)).digest
