"""The experiment on spanning trees at a tiny size. How fast anything is, no test says."""

from __future__ import annotations

import asyncio

from bench.papers.stems_spanning_tree import OURS, TREES, measured
from bench.papers.triangle import Pace


def test_each_source_stalls_in_turn_and_all_find_the_same() -> None:
    pace = Pace(rows=40, page=10, values=4, latency=0.01, stall=0.3)
    result = asyncio.run(measured(pace, rounds=1))
    assert set(result.figures) == {
        "first_partial_vs_latency", "p95_partial_vs_latency", "vs_best_tree", "vs_one_tree"
    }  # fmt: skip
    assert result.detail["answers"] > 0
    for stalled, runs in result.curves.items():
        assert set(runs) == {OURS, *TREES}
        assert runs[OURS].first is not None
        assert runs[OURS].first >= runs[OURS].waited[0]
        assert runs[OURS].partials > 0, f"nothing was told while {stalled} stalled"
    lost = {"r": "without S-T", "s": "without T-R", "t": "without R-S"}
    for stalled, tree in lost.items():
        assert not result.curves[stalled][tree].partials, (
            "a tree without the edge that was left had partial answers"
        )
