"""Any route gives the right answer: random queries, data, providers, policies, arrivals and failures, against DuckDB.

`make soak SEEDS=100000` runs the same search at scale.
"""

from __future__ import annotations

import pytest

from tests.any_route.ranges import draw_ranges
from tests.any_route.search import Effort, search

BLOCK = 25

# Seeds that once found a bug.
FOUND = (
    70,  # what bounced out of a probe that had been cut short went back to the SteM
    181,
    324,  # an EOT that waited in one query's inbox let another ask again
    2828,  # a lookup failed, and the row could not feed the provider that was left
    60282,
    84352,  # constants were asked for in another way before it was noted that the first had failed
    976,  # a block that is never true has no providers to report on
    406246,  # a scan that nobody relied on any more failed, and was relied on again when something else failed
)
FOUND_AMONG_RANGES = (
    4143,  # one scan had brought some rows; when another failed, that was forgotten
    504133,  # the way that failed had been given up for another by the same fields, which was then never asked
    9926,  # what had failed for somebody who did not rely on it was relied on anew when something else failed
    28848,  # two hands completed a column at once that neither had prepared
    408628,  # what waits with lookups took a relation for empty whose rows were not built
)


@pytest.mark.parametrize("first", range(0, 240, BLOCK))
def test_every_complete_run_is_equal_and_every_partial_one_says_what_it_lacks(first: int) -> None:
    effort = Effort()
    for seed in range(first, first + BLOCK):
        search(seed, effort)
    assert effort.cases == BLOCK
    assert effort.abandoned <= 0.1 * effort.schedules, "queries do not end"
    assert effort.floating > effort.turns, "there was no choice of what to do next: nothing can be found so"


def test_every_kind_of_case_is_among_them() -> None:
    effort = Effort()
    for seed in range(60):
        search(seed, effort)
    for kind in ("unanswerable", "partial", "lookups", "parked", "owed", "unbuilt", "put_off", "divided"):
        assert getattr(effort, kind) > 0, f"nothing was {kind}"


@pytest.mark.parametrize("first", range(0, 300, 4 * BLOCK))
def test_bounds_and_methods_that_do_not_bring_all_change_no_answer(first: int) -> None:
    """Queries over shared SteMs, each with ranges of its own, of sites that send more or less than was asked for."""
    effort = Effort()
    for seed in range(first, first + 4 * BLOCK):
        search(seed, effort, draw_ranges)
    assert effort.cases == 4 * BLOCK
    assert not effort.abandoned
    assert effort.bounded > effort.cases, "hardly a provider was bound by an operator"
    for kind in ("partial", "lookups", "served", "answers"):
        assert getattr(effort, kind) > 0, f"nothing was {kind}"


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_found(seed: int) -> None:
    effort = Effort()
    search(seed, effort)
    assert effort.cases == 1


@pytest.mark.parametrize("seed", FOUND_AMONG_RANGES)
def test_what_was_found_among_ranges_stays_found(seed: int) -> None:
    effort = Effort()
    search(seed, effort, draw_ranges)
    assert effort.cases == 1
