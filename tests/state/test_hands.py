"""Several threads for one query: what they know of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from mediator.state.hands import Hands
from mediator.statements.apart import Apart
from mediator.statements.patience import Interrupted, Patience, aside, at_hand

T = TypeVar("T")

ENDLESS = "SELECT count(*) AS n FROM range(100000000000)"


@pytest.fixture
def hands() -> Iterator[Hands]:
    made = Hands(3, worth=1)
    yield made
    made.close()


def _together(hands: Hands, work: Callable[[], T]) -> list[T]:
    """What each of the threads finds, all of them at once."""
    meeting = threading.Barrier(hands.count, timeout=20.0)

    def done() -> T:
        meeting.wait()
        return work()

    return hands.each([done] * hands.count, 1_000)


def test_each_hand_has_the_patience_of_its_query(hands: Hands) -> None:
    patience = Patience()
    with patience.at_hand():
        assert _together(hands, at_hand) == [patience] * 3
    assert _together(hands, at_hand) == [None] * 3


def test_a_statement_of_a_hand_ends_when_its_query_has_no_more_patience(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mediator.statements.apart._PATIENCE", 1e6)  # of those whom nobody gave any
    patience = Patience()
    with Apart(64 << 20, 4) as apart, patience.at_hand():

        def counted() -> str:
            try:
                apart.run(ENDLESS, {}, None)
            except Interrupted:
                return "interrupted"
            return "counted"

        def lose() -> None:
            while len(apart.busy) < hands.count:
                threading.Event().wait(0.01)
            patience.lose()

        losing = threading.Thread(target=lose)
        losing.start()
        try:
            found = _together(hands, counted)
        finally:
            patience.lose()
            losing.join()
        assert found == ["interrupted"] * 3


def test_several_hands_have_nothing_taken_aside(hands: Hands) -> None:
    """Others would turn while the rest of them read; alone one steps aside as before."""
    stepped = list[int]()

    def step(work: Callable[[], T]) -> T:
        stepped.append(threading.get_ident())
        return work()

    with Patience(step).at_hand():
        assert _together(hands, lambda: aside(lambda: 1)) == [1, 1, 1]
        assert not stepped
        assert hands.each([lambda: aside(lambda: 2)], 1_000) == [2]
        assert aside(lambda: 3) == 3
    assert len(stepped) == 2
