"""Partial answers in random schedules; `python -m tests.partials --seeds 3000` runs more of them."""

from __future__ import annotations

import pytest

from tests.any_route.drawing import draw
from tests.any_route.ranges import draw_ranges
from tests.partials.drawing import draw_fed
from tests.partials.search import Found, search

BLOCK = 25


@pytest.mark.parametrize("first", range(0, 150, BLOCK))
def test_partial_answers_of_any_query(first: int) -> None:
    found = Found()
    for seed in range(first, first + BLOCK):
        search(seed, found, draw)
    assert found.cases == BLOCK
    assert found.given > found.left, "nothing was completed or withdrawn"


@pytest.mark.parametrize("first", range(0, 150, BLOCK))
def test_partial_answers_where_one_relation_feeds_several(first: int) -> None:
    found = Found()
    for seed in range(first, first + BLOCK):
        search(seed, found, draw_fed)
    assert found.cases == BLOCK
    assert not found.abandoned
    assert found.completed > 0


def test_partial_answers_within_bounds() -> None:
    found = Found()
    for seed in range(100):
        search(seed, found, draw_ranges)
    assert found.cases == 100
    assert found.given > 0


def test_everything_that_can_happen_is_among_them() -> None:
    found = Found()
    for seed in range(60):
        search(seed, found, draw_fed)
    for kind in ("completed", "withdrawn", "withdrawn_early", "left", "left_out", "ahead", "wide", "joined"):
        assert getattr(found, kind) > 0, f"nothing was {kind}"
