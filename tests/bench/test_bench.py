"""The machinery of the benches at tiny sizes. How fast anything is, no test says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench import fetch, q1, q4, stall
from bench.__main__ import BENCHES, main
from bench.cell import Cell, _Process, run
from bench.contestants import DUCKDB, POLARS, POLARS_STREAMING, Entry, ours
from bench.feeding import arrivals
from bench.moody import Moods
from bench.shapes import NAMES, shape
from bench.site import Pace
from bench.timed import Timeline, least_area

ROWS = 2_000
BRIEF = Pace(rows=60, distinct=20, page=10, r_scan=0.06, t_scan=0.12, lookup=0.005)


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return said


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHES)


@pytest.mark.parametrize("name", NAMES)
def test_a_shape_is_the_same_each_time(name: str) -> None:
    assert shape(name, ROWS).tables == shape(name, ROWS).tables


def test_all_tables_end_together() -> None:
    tables = {"a": pa.table({"x": range(100)}), "b": pa.table({"x": range(20)})}
    rounds = arrivals(tables, 10)
    assert sum(rows.num_rows for landed in rounds for _, rows in landed) == 120
    assert {name for name, _ in rounds[-1]} == {"a", "b"}


@pytest.mark.parametrize("name", NAMES)
def test_contestants_agree(name: str) -> None:
    fixed = ours(256, "fixed", tuple(range(len(shape(name, 1).tables))))
    entries = (ours(256), fixed, DUCKDB, POLARS, POLARS_STREAMING)
    outcome = run(Cell(name, ROWS, 2, entries, rounds=1, check=True))
    assert outcome.answers > 0
    assert all(len(outcome.seconds[e.name]) == 1 for e in entries)


def test_memory_is_one_entry_s() -> None:
    assert run(Cell("int", ROWS, 1, (ours(256),), memory=True)).peak >= 0


def test_a_contestant_that_fails_is_named() -> None:
    with pytest.raises(RuntimeError, match="int on 1 threads failed: nobody"):
        run(Cell("int", ROWS, 1, (Entry("nobody"),), rounds=1))


def test_answers_that_differ_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter(([3, "7"], [3, "8"]))
    monkeypatch.setattr(_Process, "told", lambda self, what, entry: next(found))
    with pytest.raises(RuntimeError, match="the answers differ"):
        run(Cell("int", ROWS, 1, (ours(256), DUCKDB), rounds=0, check=True))


def test_local_prints_one_json_line_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "local.png"
    assert main(["local", "--rows", "2000", "--rounds", "1", "--only", "int_1t", "--plot", str(file)]) == 0
    printed = said(capsys)
    assert printed["bench"] == "local"
    assert printed["figures"]["int_1t_vs_duckdb"] > 0
    assert printed["detail"]["int_1t"]["answers"] == 2_000
    assert file.stat().st_size


def test_a_run_can_be_profiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "--rows", "2000", "--profile"]) == 0
    assert "tottime" in capsys.readouterr().out


def test_q1_asks_for_every_value_once(tmp_path: Path) -> None:
    result = asyncio.run(q1.measured(BRIEF, rounds=1))
    assert result.figures["lookups"] == BRIEF.distinct
    assert result.figures["lookups_again"] == 0
    q1.draw(result, tmp_path / "q1.png")
    assert (tmp_path / "q1.png").stat().st_size


def test_q4_looks_up_less_than_an_index_join(tmp_path: Path) -> None:
    result = asyncio.run(q4.measured(BRIEF, rounds=1))
    assert 0 < result.figures["lookups"] < BRIEF.rows
    assert result.detail["lookups"]["index join"] == [BRIEF.rows]
    assert result.detail["lookups"]["hash join"] == [0]
    q4.draw(result, tmp_path / "q4.png")
    assert (tmp_path / "q4.png").stat().st_size


def test_stalls_are_measured(tmp_path: Path) -> None:
    result = asyncio.run(stall.measured(shape("int", ROWS), page=500, seconds=0.1))
    assert 0 <= result.figures["stall_p99_ms"] <= result.figures["stall_max_ms"]
    assert 0 < result.detail["visitor_waits_ms"]["p50"] <= result.detail["visitor_waits_ms"]["p99"]
    assert result.detail["visits"]
    stall.draw(result, tmp_path / "stall.png")
    assert (tmp_path / "stall.png").stat().st_size


def test_areas_are_compared_with_the_best_rival_at_every_tenth() -> None:
    early, late = Timeline([(0.0, 10)], ended=1.0), Timeline([(0.5, 20)], ended=1.0)
    least, ratios = least_area(early, [late])
    assert ratios == pytest.approx([10 * t / (20 * (t - 0.5)) for t in (0.6, 0.7, 0.8, 0.9, 1.0)], abs=1e-3)
    assert least == pytest.approx(1.0)


def test_fetch_measures_every_figure_that_is_promised(tmp_path: Path) -> None:
    brief = Moods(latency=0.005, late=0.05, halves_after=0.1)
    scale = fetch.Scale(
        lookups=100, tight=100, timed=100, hopeless=50, packed=101, rounds=1, deadline=0.5, moods=brief
    )
    result = asyncio.run(fetch.measured(scale))
    assert set(result.figures) == {
        "lookups_per_s_vs_limit",
        "cpu_us_per_lookup",
        "hedge_p99_gain",
        "hedge_extra_load",
        "down_amplification",
        "half_down_amplification",
        "adaptive_throughput_vs_oracle",
        "batched_requests",
    }
    assert result.figures["batched_requests"] == 6
    assert result.figures["down_amplification"] <= 1.1
    fetch.draw(result, tmp_path / "fetch.png")
    assert (tmp_path / "fetch.png").stat().st_size
