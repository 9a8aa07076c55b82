"""Who is silent, by the clock and by what is usual."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mediator.catalog.measured import Measurements, Place
from mediator.catalog.model import AccessMethod, Field, Mirror, Relation
from mediator.partials.parts import beyond_reach
from mediator.partials.silence import Silence

SCAN = AccessMethod("scan", "scan", (Mirror("site", ""),), None)
RELATIONS = {name: Relation(name, (Field("a", pa.int64()),), (SCAN,)) for name in "rs"}


def measured(**seconds: float) -> Measurements:
    found = Measurements()
    for name, usual in seconds.items():
        for _ in range(20):
            found.adding(Place(name, "scan", "site")).latency.add(usual)
    return found


def test_longer_than_its_requests_mostly_take() -> None:
    silence = Silence(RELATIONS, measured(r=0.5, s=0.1), None)
    silence.under_way({"r", "s"}, 10.0)
    assert silence.silent(10.05) == []
    assert silence.silent(10.2) == ["s"]
    assert silence.next == pytest.approx(10.5, abs=0.05)
    assert sorted(silence.silent(10.6)) == ["r", "s"]
    assert silence.next is None


def test_what_was_never_heard_of_is_compared_with_the_others() -> None:
    silence = Silence(RELATIONS, measured(r=0.1), None)
    silence.under_way({"s"}, 0.0)
    assert silence.silent(0.05) == []
    assert silence.silent(0.15) == ["s"]


def test_where_nothing_was_measured_a_moment_must_do() -> None:
    silence = Silence(RELATIONS, Measurements(), None)
    silence.under_way({"s"}, 0.0)
    assert silence.silent(0.1) == []
    assert silence.silent(0.3) == ["s"]


def test_the_user_has_the_last_word() -> None:
    silence = Silence(RELATIONS, measured(r=0.001, s=0.001), 2.0)
    silence.under_way({"r", "s"}, 0.0)
    assert silence.silent(1.9) == []
    assert sorted(silence.silent(2.0)) == ["r", "s"]


def test_whoever_is_heard_of_or_comes_to_an_end_is_not_silent() -> None:
    silence = Silence(RELATIONS, Measurements(), 1.0)
    silence.under_way({"r", "s"}, 0.0)
    silence.heard("r", 0.9)
    silence.under_way({"r", "s"}, 1.1)
    assert silence.silent(1.1) == ["s"]
    silence.under_way({"r"}, 1.2)
    assert silence.silent(1.2) == []
    silence.under_way({"r", "s"}, 1.3)
    assert silence.silent(1.3) == []
    assert silence.next == pytest.approx(1.9)
    assert silence.silent(2.0) == ["r"]


def test_a_silence_that_begins_between_two_questions_is_not_missed() -> None:
    silence = Silence(RELATIONS, Measurements(), 1.0)
    silence.under_way({"r"}, 0.0)
    assert silence.next == 1.0
    assert silence.silent(0.999) == []
    assert silence.next == 1.0, "however late it is by now"
    assert silence.silent(1.001) == ["r"]
    assert silence.next is None


def test_nothing_is_beyond_reach_for_want_of_nothing() -> None:
    assert beyond_reach(0, (), may_ask=True) == 0
