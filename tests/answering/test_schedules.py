"""A few seeds of the search; `python -m tests.answering --seeds 10000` runs more of them."""

from __future__ import annotations

import pytest

from tests.answering.schedules import Effort, search


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_any_schedule(first: int) -> None:
    effort = Effort()
    for seed in range(first, first + 30):
        search(seed, effort)
    # The search meets what it is meant to.
    assert effort.complete > 30
    assert effort.partial
    assert effort.left
    assert effort.stopped
