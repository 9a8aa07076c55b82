"""What is known of a destination decides how much is sent there, and for how long."""

from __future__ import annotations

import pytest

from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policies.fixed import Fixed
from mediator.eddy.policies.rank import Rank
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.routing import Router
from mediator.flow.batch import Batch, Signature

FROM = Signature(0b001)
BOTH = (Probe(1), Probe(2))
ROWS = 10_000
SOME = Batch(FROM, (range(ROWS), None, None, None), (ROWS,) * 4)


def _router(policy: Policy, revisit: int = 16) -> Router:
    return Router(policy, lambda signature: BOTH, revisit)


def _seen(destination: Destination, fan_out: float, seconds: float = 1.0) -> Visit:
    return Visit(FROM, destination, ROWS, round(ROWS * fan_out), seconds)


def test_what_nobody_has_tried_is_tried_with_a_few_rows_each_in_turns() -> None:
    router = _router(Rank())
    first, sample = router.next(SOME)
    second, _ = router.next(SOME)
    assert {first, second} == set(BOTH), "the second batch does not wait for what the first finds out"
    assert 0 < sample < ROWS


def test_what_thins_out_most_for_its_cost_gets_whole_batches() -> None:
    router = _router(Rank())
    router.learn(_seen(BOTH[0], fan_out=0.9))
    router.learn(_seen(BOTH[1], fan_out=0.1))
    assert router.next(SOME) == (BOTH[1], 0)


def test_a_costly_one_comes_later_though_it_thins_out_more() -> None:
    router = _router(Rank())
    router.learn(_seen(BOTH[0], fan_out=0.5, seconds=1.0))
    router.learn(_seen(BOTH[1], fan_out=0.1, seconds=10.0))
    assert router.next(SOME) == (BOTH[0], 0)


def test_what_was_seen_from_elsewhere_counts_until_there_is_better() -> None:
    router, elsewhere = _router(Rank()), Signature(0b1001)
    router.learn(Visit(elsewhere, BOTH[0], ROWS, ROWS // 10, 1.0))
    router.learn(Visit(elsewhere, BOTH[1], ROWS, ROWS // 2, 1.0))
    assert router.next(SOME) == (BOTH[0], 0)
    router.learn(_seen(BOTH[0], fan_out=0.9))
    assert router.next(SOME) == (BOTH[1], 0)


def test_a_choice_is_believed_the_longer_the_more_often_it_is_made() -> None:
    asked: list[int] = []

    class Counting(Fixed):
        def choose(self, signature: Signature, legal: object, situation: object) -> Destination:
            asked.append(len(asked))
            return BOTH[0]

    router = _router(Counting((0, 1, 2)), revisit=8)
    before = []
    for _ in range(40):
        router.next(SOME)
        before.append(len(asked))
    gaps = [before.count(n) for n in range(1, max(before))]
    assert gaps[:5] == [1, 4, 8, 8, 8]


def test_a_choice_that_turned_bad_is_left() -> None:
    router = _router(Rank(), revisit=4)
    router.learn(_seen(BOTH[0], fan_out=0.1))
    router.learn(_seen(BOTH[1], fan_out=0.5))
    assert router.next(SOME)[0] == BOTH[0]
    for _ in range(60):
        router.learn(_seen(BOTH[0], fan_out=3.0))
        where, _ = router.next(SOME)
    assert where == BOTH[1]


class _Told(Fixed):
    """Wants to hear of every tenth visit."""

    def __init__(self) -> None:
        super().__init__((0, 1, 2))
        self.visits: list[Visit] = []

    def learn(self, visit: Visit) -> int:
        self.visits.append(visit)
        return 9


def test_a_visit_that_a_policy_is_told_of_stands_for_those_that_it_was_not() -> None:
    policy = _Told()
    router = _router(policy)
    for _ in range(25):
        router.learn(_seen(BOTH[0], fan_out=0.1))
    assert [visit.alike for visit in policy.visits] == [0, 9, 9]


def test_what_a_policy_wanted_to_know_stands_for_nothing_else() -> None:
    policy = _Told()
    router = _router(policy)
    for _ in range(6):
        router.learn(_seen(BOTH[0], fan_out=0.1))
    router.learn(_seen(BOTH[0], fan_out=0.1), wanted=True)
    assert [visit.alike for visit in policy.visits] == [0, 0]


@pytest.mark.parametrize("surprise", [0.0, 100.0])
def test_a_surprise_is_told_at_once(surprise: float) -> None:
    policy = _Told()
    router = _router(policy)
    for _ in range(4):
        router.learn(_seen(BOTH[0], fan_out=1.0))
    router.learn(_seen(BOTH[0], fan_out=surprise))
    assert [visit.alike for visit in policy.visits] == [0, 3]
    assert policy.visits[-1].rows_out == surprise * ROWS
