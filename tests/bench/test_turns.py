"""Contestants in turns, and jobs in places."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from bench.papers.assignment import assigned
from bench.papers.stems_q1 import bound, most_waited_for
from bench.papers.turns import in_turns, turned
from bench.site import Pace


def test_everybody_is_first_once() -> None:
    names = ["a", "b", "c"]
    orders = [turned(names, turn, rounds=3) for turn in range(3)]
    assert [order[0] for order in orders] == names
    assert all(sorted(order) == names for order in orders)


def test_few_rounds_begin_far_apart() -> None:
    assert [turned(list("abcdef"), turn, rounds=2)[0] for turn in range(2)] == ["a", "d"]


def test_what_came_of_each_is_kept_by_name() -> None:
    order: list[str] = []

    def run(name: str) -> int:
        order.append(name)
        return len(order)

    found = in_turns({"a": lambda: run("a"), "b": lambda: run("b")}, rounds=2)
    assert order == ["a", "b", "b", "a"]
    assert found == {"a": [1, 4], "b": [2, 3]}


@pytest.mark.parametrize("seed", range(5))
def test_no_other_assignment_is_cheaper(seed: int) -> None:
    costs = np.random.default_rng(seed).random((6, 6))
    places = assigned(costs)
    assert sorted(places) == list(range(6))
    jobs = np.arange(6)
    least = min(costs[jobs, list(order)].sum() for order in permutations(range(6)))
    assert costs[jobs, places].sum() == pytest.approx(least)


def test_nobody_who_asks_in_some_order_is_before_the_bound() -> None:
    pace = Pace(rows=60, distinct=20, page=10, r_scan=0.06, t_scan=0.12, lookup=0.005)
    best, greedy = (sum(at for at, _ in rows) for rows in (bound(pace), most_waited_for(pace)))
    assert len(bound(pace)) == pace.rows
    assert best <= greedy


def test_the_paper_s_bound_is_the_least_there_is() -> None:
    rows = bound(Pace())
    assert sum(at for at, _ in rows) / len(rows) == pytest.approx(1.1519, abs=1e-4)
