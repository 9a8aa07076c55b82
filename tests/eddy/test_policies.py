"""What the papers say of their policies, on scripted visits: naive, lottery, windowed lottery."""

from __future__ import annotations

from random import Random

import pytest

from mediator.assembly import POLICIES, Settings
from mediator.eddy.destinations import Destination, LookUp, Park, Probe
from mediator.eddy.policies.lottery import Lottery
from mediator.eddy.policies.naive import Naive
from mediator.eddy.policies.tickets import Account, odds
from mediator.eddy.policies.windowed import WindowedLottery
from mediator.eddy.policy import Policy, Situation
from mediator.errors import MediatorError
from tests.eddy.policies_kit import HERE, NOWHERE, S1, S2, Module, run, selections, share, visit

CHEAP, DEAR = Module(1e-6, 0.5), Module(9e-6, 0.5)
KEEN, LAX = Module(5e-6, 0.1), Module(5e-6, 0.9)


def lotteries(seed: int) -> list[Policy]:
    return [Lottery(Random(seed)), WindowedLottery(Random(seed), window=1_000)]


def test_naive_sends_rows_in_inverse_proportion_to_what_they_cost() -> None:
    firsts = run(Naive(), selections(CHEAP, DEAR), 1_000)
    assert share(firsts, S1) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("fan_out", [0.0, 0.3, 0.7, 1.0])
def test_naive_is_blind_to_selectivity(fan_out: float) -> None:
    firsts = run(Naive(), selections(Module(5e-6, fan_out), Module(5e-6, 0.5)), 1_000)
    assert share(firsts, S1) == pytest.approx(0.5, abs=0.01)


def test_naive_takes_turns_where_nothing_costs_anything() -> None:
    firsts = run(Naive(), selections(Module(0.0, 0.5), Module(0.0, 0.5)), 100)
    assert share(firsts, S1) == 0.5


def test_naive_does_not_count_steps_without_a_choice() -> None:
    policy = Naive()
    policy.learn(visit(S1, DEAR, 1_000, signature=HERE._replace(passed=2)))
    assert policy.why(HERE, [S1, S2], NOWHERE)[S1] == {"seconds busy": 0.0}


@pytest.mark.parametrize("seed", range(3))
def test_lotteries_learn_selectivity(seed: int) -> None:
    for policy in lotteries(seed):
        run(policy, selections(KEEN, LAX), 200)
        assert share(run(policy, selections(KEEN, LAX), 2_000), S1) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_lotteries_follow_cost_at_least_as_naive_does(seed: int) -> None:
    """Figure 4: the lottery is a little better."""
    for policy in lotteries(seed):
        run(policy, selections(CHEAP, DEAR), 200)
        assert share(run(policy, selections(CHEAP, DEAR), 2_000), S1) > 0.88


@pytest.mark.parametrize("seed", range(3))
def test_lotteries_are_undecided_between_equals(seed: int) -> None:
    for policy in lotteries(seed):
        assert share(run(policy, selections(CHEAP, CHEAP), 4_000), S1) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_lotteries_starve_nobody(seed: int) -> None:
    """A destination that was the worst for as long as anybody remembers is still drawn now and then."""
    useless = Module(1e-3, 1.0)
    for policy in lotteries(seed):
        run(policy, selections(Module(1e-6, 0.0), useless), 1_000)
        later = run(policy, selections(Module(1e-6, 0.0), useless), 2_000)
        assert 0 < share(later, S2) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_a_change_is_followed_within_windows_and_not_by_the_whole_of_the_past(seed: int) -> None:
    early, late = selections(KEEN, LAX), selections(LAX, KEEN)
    remembering, forgetting = Lottery(Random(seed)), WindowedLottery(Random(seed), window=1_000)
    for policy in (remembering, forgetting):
        run(policy, early, 3_000)
    assert share(run(remembering, late, 500), S2) < 0.3
    assert share(run(forgetting, late, 500), S2) > 0.7


def test_a_draw_goes_by_the_bank_and_not_by_escrow() -> None:
    policy = WindowedLottery(Random(0), window=200)
    policy.learn(visit(S1, KEEN, 100))
    policy.learn(visit(S2, LAX, 100))  # here the window ends
    banked = policy.why(HERE, [S1, S2], NOWHERE)
    policy.learn(visit(S2, Module(5e-6, 0.0), 199))  # in escrow
    assert policy.why(HERE, [S1, S2], NOWHERE) == banked
    assert banked[S1]["tickets"] == 90.0
    assert banked[S2]["tickets"] == 10.0


def test_escrow_becomes_the_bank_and_expires_with_the_next_window() -> None:
    policy = WindowedLottery(Random(0), window=100)
    policy.learn(visit(S1, KEEN, 100))
    policy.learn(visit(S2, LAX, 100))
    told = policy.why(HERE, [S1, S2], NOWHERE)
    assert told[S2]["tickets"] == 10.0
    assert told[S1]["tickets"] == 0.0  # it took nothing in the window: what it once earned is gone
    assert told[S2]["odds"] > 0.9


def test_the_first_window_goes_by_what_it_has_seen_itself() -> None:
    policy = WindowedLottery(Random(0), window=10_000)
    policy.learn(visit(S1, KEEN, 100))
    policy.learn(visit(S2, LAX, 100))
    assert policy.why(HERE, [S1, S2], NOWHERE)[S1]["odds"] == pytest.approx(0.9)


def test_a_window_must_end() -> None:
    with pytest.raises(MediatorError, match="takes 1 or more"):
        WindowedLottery(Random(0), window=0)


def test_tickets_belong_to_the_destination_wherever_batches_came_from() -> None:
    policy = Lottery(Random(0))
    policy.learn(visit(Probe(1), KEEN, 100, signature=HERE))
    policy.learn(visit(Probe(1), KEEN, 100, signature=HERE._replace(spanned=5)))
    assert policy.why(HERE, [Probe(1), Probe(2)], NOWHERE)[Probe(1)]["tickets"] == 180.0


def test_odds_are_even_while_nothing_is_known() -> None:
    assert odds([S1, S2], {}, NOWHERE) == [0.5, 0.5]
    assert odds([S1, S2], {S1: Account(), S2: Account()}, NOWHERE) == [0.5, 0.5]


def test_what_was_never_tried_has_the_odds_of_the_others() -> None:
    accounts = {S1: Account(100, 10, 1e-4), S2: Account(100, 70, 1e-4)}
    first, second, third = odds([S1, S2, Probe(3)], accounts, NOWHERE)
    assert first > third > second
    assert third == pytest.approx(1 / 3)


def test_where_more_came_back_than_went_all_are_counted_from_the_poorest() -> None:
    accounts: dict[Destination, Account] = {
        Probe(1): Account(100, 180, 1e-4),
        Probe(2): Account(100, 100, 1e-4),
    }
    poor, rich = odds([Probe(1), Probe(2)], accounts, NOWHERE)
    assert poor == pytest.approx(0.01)
    assert rich == pytest.approx(1.0)


def test_who_looks_up_is_held_up_for_as_long_as_that_takes() -> None:
    """Nothing comes back from either, and a probe costs as much: what a lookup takes tells them apart."""
    stems = [Probe(1), Probe(2)]
    slow_first = Situation(100, (0, 100, 100), waits=(0.0, 1e-2, 1e-4))
    for policy in (Naive(), *lotteries(0)):
        for stem in stems:
            policy.learn(visit(stem, Module(1e-6, 0.0)))
        chosen = [policy.choose(HERE, stems, slow_first) for _ in range(500)]
        assert share(chosen, Probe(2)) > 0.95


def test_lotteries_take_batches_that_bounced_like_any_others() -> None:
    bounced = HERE._replace(completing=1)
    for policy in lotteries(0):
        legal = [Park(1), LookUp(1, 0)]
        assert {policy.choose(bounced, legal, NOWHERE) for _ in range(50)} == set(legal)


def test_every_policy_has_a_name_to_choose_it_by() -> None:
    assert {"windowed", "lottery", "naive", "benefit"} <= set(POLICIES)
    assert Settings().policy in POLICIES
    assert Settings().window > 0
