"""How fast the sites answer is told by what they answered, and by nothing else."""

from __future__ import annotations

from mediator.eddy.pace import Pace
from mediator.flow.events import Ask


def _ask(number: int, bindings: int) -> Ask:
    return Ask(number, "s", "index", ("a",), tuple((number, n) for n in range(bindings)))


def test_what_is_answered_elsewhere_or_given_up_says_nothing_of_the_site() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    for number in range(10):
        ask = _ask(number, 1)
        pace.asked(ask)
        now[0] += 1.0
        pace.came(ask, 3)
        pace.ended(ask, 1, answered=True)
        pace.over(ask)
    before = pace.of("s")
    assert (before.lookup, before.finds) == (1.0, 3.0)
    served = _ask(99, 30)
    pace.asked(served)
    assert pace.pending == 30
    pace.ended(served, 30, answered=False)
    pace.over(served)
    assert pace.of("s") == before
    assert pace.pending == 0
