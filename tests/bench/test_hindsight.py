"""Hindsight, by cases small enough to be counted by hand; and the engine against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.papers.calls import case_of, judged
from bench.papers.calls import summed as result_of
from bench.papers.federations import drawn
from bench.papers.hindsight import Hindsight, TooLarge
from mediator.assembly import Settings
from tests.eddy.goals_kit import SCAN, by, federation, told


def test_one_table_behind_an_index_is_asked_for_each_value() -> None:
    made = federation(
        {"r": {"a": [1, 1, 2, 3]}, "s": {"a": [2, 9]}}, {"r": [SCAN], "s": [by("a")]}, "r.a = s.a"
    )
    least = Hindsight(made).least()
    assert least.lookups == 3
    assert least.plan == (("s", ("a",), 3),)


def test_a_scan_that_joins_thins_out_what_is_asked() -> None:
    made = federation(
        {"r": {"a": [1, 2, 3], "b": [1, 2, 3]}, "s": {"a": [1]}, "t": {"b": [3]}},
        {"r": [SCAN], "s": [by("a")], "t": [SCAN]},
        "r.a = s.a",
        "r.b = t.b",
    )
    assert Hindsight(made).least().lookups == 1


def test_the_cheaper_bind_set_and_the_cheaper_order_are_found() -> None:
    """s has a match for one of four rows. Asked first it costs 4, and leaves 1 for u; u first costs 4, and leaves 4."""
    made = federation(
        {"r": {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}, "s": {"a": [2]}, "u": {"b": [1, 2, 3, 4]}},
        {"r": [SCAN], "s": [by("a")], "u": [by("b")]},
        "r.a = s.a",
        "r.b = u.b",
    )
    assert Hindsight(made).least().plan == (("s", ("a",), 4), ("u", ("b",), 1))
    ways = federation(
        {"r": {"a": [1, 2, 3]}, "s": {"a": [1, 2, 3], "b": [5, 5, 5]}, "t": {"b": [5]}},
        {"r": [SCAN], "s": [by("a"), by("b")], "t": [SCAN]},
        "r.a = s.a",
        "s.b = t.b",
    )
    assert Hindsight(ways).least().plan == (("s", ("b",), 1),)


def test_a_table_that_feeds_another_goes_before_it() -> None:
    made = federation(
        {"r": {"a": [1, 2]}, "s": {"a": [1, 1, 2], "b": [7, 8, 8]}, "u": {"b": [7]}},
        {"r": [SCAN], "s": [by("a")], "u": [by("b")]},
        "r.a = s.a",
        "s.b = u.b",
    )
    assert Hindsight(made).least().plan == (("s", ("a",), 2), ("u", ("b",), 2))


def test_what_nothing_joins_is_combined_and_nothing_is_asked_of_an_empty_join() -> None:
    def of(theirs: list[int]) -> int:
        made = federation(
            {"r": {"a": [1, 2, 3]}, "t": {"b": theirs}, "s": {"a": [1], "b": [1]}},
            {"r": [SCAN], "t": [SCAN], "s": [by("a", "b")]},
            "r.a = s.a",
            "t.b = s.b",
            limits={"t": 1},
        )
        return Hindsight(made).least().lookups

    assert of([1, 2, 2]) == 6
    assert of([]) == 0


def test_a_constant_is_one_lookup_and_a_selection_counts() -> None:
    made = federation(
        {"r": {"a": [1, 2], "f": [0, 9]}, "s": {"a": [1, 2], "c": [4, 4]}, "u": {"a": [1]}},
        {"r": [SCAN], "s": [by("c")], "u": [by("a")]},
        "r.a = s.a",
        "r.a = u.a",
        limits={"r": 5},
        constants={"s": 4},
    )
    assert Hindsight(made).least().lookups == 2


def test_joins_that_are_too_large_are_told() -> None:
    made = federation(
        {"r": {"a": [1] * 30}, "t": {"a": [1] * 30, "b": range(30)}, "s": {"b": [1]}},
        {"r": [SCAN], "t": [SCAN], "s": [by("b")]},
        "r.a = t.a",
        "t.b = s.b",
    )
    with pytest.raises(TooLarge):
        Hindsight(made, most=100).least()


def test_the_same_seed_draws_the_same_federation() -> None:
    one, other = drawn(7), drawn(7)
    assert one.sql == other.sql
    assert all(one.tables[name].equals(other.tables[name]) for name in one.tables)
    assert drawn(7, 1).tables != one.tables


@pytest.mark.parametrize("seed", [3, 12, 24])
def test_the_engine_comes_near(seed: int) -> None:
    found = judged(seed, Settings().policy)
    assert found.least.lookups == case_of(seed).least.lookups
    assert found.ratio <= 1.2


def test_what_is_passed_over_is_counted_and_judged() -> None:
    case = case_of(0)
    assert case.least.lookups >= 20
    assert len(case.few) == case.redrawn.get("fewer than 20 lookups", 0)
    assert all(of.least.lookups < 20 for of in case.few)
    assert sum(case.redrawn.values()) >= len(case.few)


def test_the_figures_say_what_the_floor_leaves_out() -> None:
    one = judged(0, Settings().policy)
    few = replace(one, few=[(3, 2), (1, 0)])
    figures = result_of([few], [one]).figures
    assert figures["worst"] == figures["unseen_worst"] == one.ratio
    assert figures["worst_unfiltered"] == 1.5
    assert figures["unseen_worst_unfiltered"] >= one.ratio


def test_what_was_asked_is_counted_at_the_sites() -> None:
    made = federation({"r": {"a": [1, 1, 2]}, "s": {"a": [2, 2]}}, {"r": [SCAN], "s": [by("a")]}, "r.a = s.a")
    found = told(made, "fewest_calls")
    assert (found.lookups, found.by_table, found.pages, found.rows) == (2, {"s": 2}, 1, 2)
    assert 0 < found.first <= found.ended
