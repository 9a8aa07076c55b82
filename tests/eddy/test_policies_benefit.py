"""Benefit by cost: what brings most to the user for its time comes first, and what is preferred is asked for."""

from __future__ import annotations

import pytest

from mediator.eddy.destinations import LookUp, Park, Probe
from mediator.eddy.policies.benefit import Benefit
from mediator.eddy.policy import Situation, Visit
from tests.eddy.policies_kit import HERE, NOWHERE, S1, S2, Module, run, selections, share, visit

BOUNCED = HERE._replace(completing=1)
SEEN = Situation(100, (0, 1_000, 1_000))
STEMS = [Probe(1), Probe(2)]


def probed(alias: int, fan_out: float, seconds: float = 1e-6, visible: int = 1_000) -> Visit:
    return visit(Probe(alias), Module(seconds, fan_out), 2_000, visible=visible)


def preferring(alias: int) -> Situation:
    return SEEN._replace(worth=tuple(5.0 if n == alias else 1.0 for n in range(3)))


def taught(policy: Benefit, *visits: Visit) -> Benefit:
    for one in visits:
        policy.learn(one)
    return policy


def test_what_brings_more_comes_first() -> None:
    policy = taught(Benefit(), probed(1, 0.2), probed(2, 1.8))
    assert policy.choose(HERE, STEMS, SEEN) == Probe(2)


def test_what_brings_as_much_sooner_comes_first() -> None:
    policy = taught(Benefit(), probed(1, 1.0, seconds=9e-6), probed(2, 1.0, seconds=1e-6))
    assert policy.choose(HERE, STEMS, SEEN) == Probe(2)


def test_it_goes_where_more_rows_come_back_rather_than_where_fewer_do() -> None:
    """The opposite of rank: selections that let rows pass come before those that end them."""
    firsts = run(Benefit(), selections(Module(5e-6, 0.9), Module(5e-6, 0.1)), 300)
    assert share(firsts, S1) > 0.95


def test_what_the_user_prefers_is_worth_more() -> None:
    policy = taught(Benefit(), probed(1, 0.5), probed(2, 1.0))
    assert policy.choose(HERE, STEMS, SEEN) == Probe(2)
    assert policy.choose(HERE, STEMS, preferring(1)) == Probe(1)
    assert policy.why(HERE, STEMS, preferring(1))[Probe(1)]["worth"] == 5.0


def test_what_has_not_arrived_is_not_held_against_a_join() -> None:
    """It found little while there was little to find; now there is a hundred times as much."""
    policy = taught(Benefit(), probed(1, 0.02, visible=10), probed(2, 1.0))
    assert policy.choose(HERE, STEMS, SEEN) == Probe(1)


def test_what_never_brought_anything_is_worth_little_and_not_nothing() -> None:
    policy = taught(Benefit(), probed(1, 0.0))
    assert 0 < policy.why(HERE, STEMS, SEEN)[Probe(1)]["fan-out"] < 0.001
    assert policy.why(HERE, STEMS, SEEN)[Probe(1)]["benefit by cost"] > 0


def test_what_is_unknown_is_tried_in_turns_and_with_a_few_rows() -> None:
    policy = Benefit()
    first, second = (policy.choose(HERE, STEMS, SEEN) for _ in range(2))
    assert {first, second} == set(STEMS)
    assert policy.sample(HERE, first) > 0
    taught(policy, probed(first.alias, 1.0)) if isinstance(first, Probe) else pytest.fail("no probe")
    assert policy.sample(HERE, first) == 0


def test_rows_that_must_be_looked_up_come_after_those_that_are_there() -> None:
    policy = taught(Benefit(), probed(1, 0.1), probed(2, 9.0))
    assert policy.choose(HERE, STEMS, SEEN) == Probe(2)
    far = SEEN._replace(remote=(2,), waits=(0.0,) * 3, finds=(1.0,) * 3)
    assert policy.choose(HERE, STEMS, far) == Probe(1)


def test_what_bounced_waits_for_the_scan_unless_it_is_preferred() -> None:
    legal = [Park(1), LookUp(1, 0), LookUp(1, 1)]
    assert Benefit().choose(BOUNCED, legal, NOWHERE) == Park(1)
    assert Benefit().choose(BOUNCED, legal, preferring(1)) == LookUp(1, 0)


def test_what_bounced_is_looked_up_where_there_is_no_scan_to_wait_for() -> None:
    assert Benefit().choose(BOUNCED, [LookUp(1, 1), LookUp(1, 0)], NOWHERE) == LookUp(1, 0)


def test_it_says_what_a_choice_rests_on() -> None:
    policy = taught(Benefit(), visit(S1, Module(5e-6, 0.5), 1_000))
    told = policy.why(HERE, [S1, S2], NOWHERE)
    assert set(told) == {S1}
    assert told[S1]["fan-out"] == pytest.approx(0.5)
