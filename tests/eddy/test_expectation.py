"""What a visit costs is told apart from how many rows it had."""

from __future__ import annotations

from random import Random

import pytest

from mediator.eddy.destinations import Probe
from mediator.eddy.policies.expectation import Expectation
from mediator.eddy.policies.rank import Rank
from mediator.eddy.policy import Situation, Visit
from mediator.flow.batch import Signature

FIXED, PER_ROW = 15e-6, 4e-9
HERE = Signature(1)
NOW = Situation(1_000, (1_000,) * 3)
SHARP, BLUNT, SLOW = Probe(1), Probe(2), Probe(3)


def seconds(rows: int) -> float:
    return FIXED + PER_ROW * rows


def test_the_fixed_part_is_told_from_the_rows_own() -> None:
    random, usual = Random(3), Expectation()
    for _ in range(200):
        rows = random.choice((30, 1_000, 60_000))
        usual.add(rows, seconds(rows) * random.uniform(0.9, 1.1))
    assert usual.expected(0) == pytest.approx(FIXED, rel=0.5)
    assert usual.expected(60_000) == pytest.approx(seconds(60_000), rel=0.1)


def test_visits_of_one_size_or_of_no_time_are_no_trouble() -> None:
    usual = Expectation()
    assert usual.expected(10) == 0.0
    for _ in range(5):
        usual.add(1_000, 1e-5)
    assert usual.expected(500) == pytest.approx(5e-6)
    timeless = Expectation()
    timeless.add(1_000, 0.0)
    assert timeless.expected(1_000) == 0.0
    assert timeless.per_row(0.0, 0.0) > 0.0


def test_a_slow_trial_of_a_few_rows_does_not_hide_the_better_destination() -> None:
    rank = Rank()
    for _ in range(8):
        rank.learn(Visit(HERE, BLUNT, 60_000, 30_000, seconds(60_000)))
    rank.learn(Visit(HERE, SHARP, 1_000, 100, 4 * seconds(1_000)))
    assert rank.choose(HERE, [BLUNT, SHARP], NOW) == SHARP


def test_what_is_really_costly_is_found_out_by_one_visit() -> None:
    rank = Rank()
    for _ in range(8):
        rank.learn(Visit(HERE, BLUNT, 60_000, 30_000, seconds(60_000)))
    rank.learn(Visit(HERE, SLOW, 1_000, 100, 0.1))
    assert rank.choose(HERE, [BLUNT, SLOW], NOW) == BLUNT
