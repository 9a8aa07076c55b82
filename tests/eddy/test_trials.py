"""What is tried with a few rows before a batch goes: so many rows, and only where that shows anything."""

from __future__ import annotations

import numpy as np
import pytest

from mediator.eddy.eddy import Eddy
from mediator.eddy.policies.rank import Rank
from tests.eddy.test_backlog import Sites
from tests.eddy.test_selections import Selections


@pytest.mark.parametrize("policy", ["rank", "benefit", "foresight"])
def test_a_large_batch_that_bounced_is_looked_up_and_not_tried_for_ever(policy: str) -> None:
    sites = Sites("SELECT r.k FROM r, s WHERE r.a = s.a", policy=policy)
    sites.scanned(5_000)
    assert sites.under_way == 5_000


@pytest.mark.parametrize("policy", [Rank(), None])
def test_trials_of_a_costly_predicate_keep_to_the_slice(
    policy: Rank | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row takes longer than a step may take: so steps have one row, and nothing is tested twice."""
    rows, seconds = 600, 0.05
    random = np.random.default_rng(1)
    passing = [random.random(rows) < 0.5 for _ in range(2)]
    selections = Selections(passing, [seconds] * 2, declared=True)
    longest, turn = [0.0], Eddy.turn

    def timed(eddy: Eddy, hops: int = 1) -> object:
        began = selections.time.now
        done = turn(eddy, 1)
        longest[0] = max(longest[0], selections.time.now - began)
        return done

    monkeypatch.setattr(Eddy, "turn", timed)
    assert selections.run(policy, batch=rows) == selections.expected
    assert longest[0] <= 2 * seconds
    assert sum(selections.called) <= rows + max(int(p.sum()) for p in passing) + 10
