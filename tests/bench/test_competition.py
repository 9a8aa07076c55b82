"""The competition of mirrors at a tiny size: everything is answered, and all that is promised is in the result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.papers import stems_competition
from bench.papers.stems_competition import Filling, Pace, Run
from mediator.catalog.model import Mirror

TINY = Pace(lookups=40, page=4, fast=0.005, slow=0.01)


def test_both_cases_are_measured_and_drawn(tmp_path: Path) -> None:
    result = asyncio.run(stems_competition.measured(TINY, rounds=1))
    assert result.bench == "stems-competition"
    for case in ("index", "scan"):
        assert result.figures[f"{case}_vs_oracle"] > 0.0
        assert result.figures[f"{case}_redundant"] >= 0.0
        detail = result.detail[case]
        wanted = TINY.lookups if case == "index" else TINY.lookups // TINY.page
        for counted in detail["requests"].values():
            assert counted["wanted"] == wanted
            assert counted["fast"] + counted["slow"] >= wanted
        assert result.figures[f"{case}_vs_oracle_both"] > 0.0
        assert result.figures[f"{case}_redundant"] >= result.figures[f"{case}_answered_twice"]
        begins, ends = detail["stall_s"]
        assert begins < ends
    assert result.figures["vs_oracle"] == max(
        result.figures["index_vs_oracle"], result.figures["scan_vs_oracle"]
    )
    file = tmp_path / "drawn.png"
    stems_competition.draw(result, file)
    assert file.stat().st_size > 0


def test_what_was_called_back_is_redundant_too() -> None:
    run = Run(requests={"fast": 8, "slow": 4, "answered": 11, "wanted": 10})
    assert run.redundant == pytest.approx(0.2)
    assert run.twice == 1


async def test_who_fills_both_mirrors_sends_to_the_fast_one_first_and_to_none_that_stalls() -> None:
    went: list[str] = []

    class Slowly:
        async def send(self, mirror: Mirror, request: object) -> str:
            went.append(mirror.base)
            await asyncio.sleep(0.01)
            return "reply"

    pace = replace(TINY, at_once=1)
    filling = Filling(Slowly(), SimpleNamespace(pace=pace, case="index", urls={"fast": "f", "slow": "s"}))  # type: ignore[arg-type]
    filling.began = asyncio.get_running_loop().time()
    requests = [filling.send(Mirror("fast", "f"), object()) for _ in range(3)]  # type: ignore[arg-type]
    await asyncio.gather(*requests)
    assert went == ["f", "s", "f"]
    filling.began -= sum(pace.stall("index")) / 2
    went.clear()
    await asyncio.gather(*(filling.send(Mirror("fast", "f"), object()) for _ in range(2)))  # type: ignore[arg-type]
    assert went == ["s", "s"]


def test_the_stall_takes_half_of_the_run() -> None:
    for case, run in (("index", TINY.run), ("scan", TINY.scanned)):
        begins, ends = TINY.stall(case)
        assert abs((ends - begins) - run / 2) < 1e-9
