"""The competition of mirrors at a tiny size: everything is answered, and all that is promised is in the result."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.papers import stems_competition
from bench.papers.stems_competition import Pace

TINY = Pace(lookups=40, page=4, fast=0.005, slow=0.01)


def test_both_cases_are_measured_and_drawn(tmp_path: Path) -> None:
    result = asyncio.run(stems_competition.measured(TINY, rounds=1))
    assert result.bench == "stems-competition"
    for case in ("index", "scan"):
        assert result.figures[f"{case}_vs_oracle"] > 0.0
        assert result.figures[f"{case}_redundant"] >= 0.0
        detail = result.detail[case]
        assert sum(detail["requests"].values()) >= (
            TINY.lookups if case == "index" else TINY.lookups / TINY.page
        )
        begins, ends = detail["stall_s"]
        assert begins < ends
    assert result.figures["vs_oracle"] == max(
        result.figures["index_vs_oracle"], result.figures["scan_vs_oracle"]
    )
    file = tmp_path / "drawn.png"
    stems_competition.draw(result, file)
    assert file.stat().st_size > 0


def test_the_stall_takes_half_of_the_run() -> None:
    for case, run in (("index", TINY.run), ("scan", TINY.scanned)):
        begins, ends = TINY.stall(case)
        assert abs((ends - begins) - run / 2) < 1e-9
