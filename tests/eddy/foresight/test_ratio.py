"""How much comes of what: a long memory where nothing changes, a short one where something has."""

from __future__ import annotations

from random import Random

import pytest

from mediator.eddy.policies.ratio import Ratio


def _fed(*shares: float, of: int = 1_000) -> Ratio:
    ratio = Ratio()
    for share in shares:
        ratio.add(of, share * of)
        ratio.settle()
    return ratio


def test_nothing_is_known_before_something_was_seen() -> None:
    ratio = Ratio()
    ratio.settle()
    assert not ratio.known
    ratio.add(100, 10)
    assert not ratio.known, "what was seen counts when it is settled"
    ratio.settle()
    assert ratio.known
    assert ratio.value == pytest.approx(0.1)


def test_what_nothing_came_of_is_not_taken_for_impossible() -> None:
    assert 0 < _fed(0.0, of=100).value < 0.01


def test_noise_is_averaged_over_a_long_time() -> None:
    random = Random(1)
    ratio = _fed(*(0.5 + random.uniform(-0.1, 0.1) for _ in range(200)))
    assert ratio.value == pytest.approx(0.5, abs=0.05)


def test_a_change_is_believed_after_a_few_visits() -> None:
    ratio = _fed(*[0.1] * 100, *[2.0] * 4)
    assert ratio.value == pytest.approx(2.0, rel=0.2)


def test_after_a_change_the_memory_grows_long_again() -> None:
    random = Random(2)
    ratio = _fed(*[0.1] * 50, *(2.0 + random.uniform(-0.5, 0.5) for _ in range(60)))
    settled = ratio.value
    ratio.add(1_000, 2_400.0)
    ratio.settle()
    assert abs(ratio.value - settled) < 0.2, "one visit that is a little out does not move it much"


def test_a_visit_far_from_what_was_foretold_is_a_surprise() -> None:
    ratio = _fed(0.1, 0.1)
    assert not ratio.add(1_000, 110)
    assert ratio.add(1_000, 900)


def test_a_few_rows_are_no_surprise() -> None:
    assert not _fed(0.1, 0.1).add(10, 9)


def test_what_all_memories_were_wrong_about_has_changed() -> None:
    ratio = _fed(*[50.0] * 3, 0.0, of=100)
    assert ratio.value < 10.0, "one look that finds nothing outweighs the three that found much"
