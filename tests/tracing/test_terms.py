"""What policies are told goes into a trace and comes out the same."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.assembly import Settings
from mediator.eddy.destinations import LookUp, Park, Probe, Select
from mediator.eddy.policies.fixed import Fixed
from mediator.eddy.policy import Coming, Situation, Visit
from mediator.flow.batch import Signature
from mediator.tracing.ground import of_settings, settings_of
from mediator.tracing.recording import recorded
from mediator.tracing.terms import RECORDS, Json, Untellable, heard, told

counts = st.integers(0, 2**40)
signatures = st.builds(Signature, counts, counts, st.integers(-1, 20), counts)
destinations = st.one_of(st.builds(Probe, counts), st.builds(LookUp, counts, counts), st.builds(Park, counts))
seconds = st.floats(allow_nan=False)
visits = st.builds(Visit, signatures, destinations, counts, counts, seconds, counts, st.booleans(), counts)
seen = st.lists(counts).map(tuple)
times = st.lists(seconds).map(tuple)
plain = st.one_of(st.none(), st.booleans(), counts, seconds, st.text())
terms = st.recursive(
    st.one_of(
        plain,
        signatures,
        destinations,
        visits,
        st.builds(Situation, counts, seen, seen, seen, times, times, times),
    ),
    lambda inner: st.one_of(st.lists(inner).map(tuple), st.dictionaries(destinations, inner)),
)


@given(terms)
def test_what_was_told_is_heard(term: object) -> None:
    assert heard(json.loads(json.dumps(told(term), allow_nan=False))) == term


def test_every_record_that_policies_are_told_is_known() -> None:
    for record in (Probe(1), Select(2), Coming(0, 1, 2, (3,), True)):
        assert type(record).__name__ in RECORDS
        assert heard(told(record)) == record


def test_numbers_of_numpy_are_numbers() -> None:
    assert told([np.int64(3), np.float64(0.5), np.bool_(True)]) == [3, 0.5, True]


@pytest.mark.parametrize("value", [np.zeros(3), object(), b"bytes", Fixed((0,))])
def test_what_may_have_values_of_rows_in_it_is_not_told(value: object) -> None:
    with pytest.raises(Untellable, match=type(value).__name__):
        told([1, value])


@pytest.mark.parametrize("said", [{"Probe": 1}, {"a": [1], "b": [2]}, {"Nobody": []}, {"Probe": [1, 2, 3]}])
def test_what_is_never_told_is_not_heard(said: Json) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        heard(said)


def test_settings_come_back() -> None:
    settings = Settings(policy="random", seed=9, order=(2, 1), max_age=3.5)
    again = settings_of(json.loads(json.dumps(of_settings(settings))))
    assert {f.name for f in fields(Settings)} >= of_settings(settings).keys()
    assert (again.policy, again.seed, again.order, again.max_age) == ("random", 9, (2, 1), 3.5)


def test_a_verb_of_its_own_is_recorded_as_it_comes() -> None:
    class Dreaming(Fixed):
        mood = "calm"

        def dream(self, signature: Signature, of: object) -> tuple[int, ...]:
            return (1, 2)

        def why(self, *said: object) -> dict[Probe, dict[str, float]]:  # type: ignore[override]
            return {Probe(1): {"fan-out": 2.0}}

    notes: list[tuple[str, Json, Json, str]] = []
    policy = recorded(Dreaming((0, 1)), lambda *note: notes.append(note))
    assert policy.dream(Signature(1), Probe(1)) == (1, 2)  # type: ignore[attr-defined]
    assert policy.dream(Signature(1), np.zeros(2)) == (1, 2)  # type: ignore[attr-defined]
    assert policy.mood == "calm"  # type: ignore[attr-defined]
    assert policy.why(Signature(1), [Probe(1)], Situation(1, (0,)))
    (verb, arguments, said, lost), second, third = notes
    assert (verb, said, lost) == ("dream", [1, 2], "")
    assert heard(arguments) == (Signature(1), Probe(1))
    assert (second[1], second[3]) == (None, "ndarray")
    assert (third[0], third[2]) == ("why", None)
