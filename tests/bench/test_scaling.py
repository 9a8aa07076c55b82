"""The page of the model says what is computed from the figures beside it, and rows go where the model says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import main
from bench.scaling import page
from bench.scaling.costs import _alone, _pair, _told_cell
from bench.scaling.layouts import LAYOUTS, VALUES, drawn
from bench.scaling.model import batches, forecast, load
from bench.scaling.simulation import EXECUTORS, dealt
from bench.spark.trade import laid
from pipeline.spread.stream import Pace, pace_of


def test_the_page_says_what_the_figures_beside_it_come_to() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text, page.read()) == text
    assert text.count("<!-- figures: ") == 3


def test_what_is_kept_was_simulated() -> None:
    """Rows are dealt out alike each time."""
    kept = page.read()
    assert len(kept.dealt) == len(LAYOUTS) * 2 * len(EXECUTORS)
    again = dealt(LAYOUTS["chain"], 10, True, kept.sample)
    assert again in kept.dealt


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_go_where_the_model_says(name: str, skewed: bool) -> None:
    one = dealt(LAYOUTS[name], 100, skewed, 200_000)
    assert one.copies == one.model_copies
    assert one.off < 0.15, one


def test_a_model_without_skew_would_be_noticed() -> None:
    one = dealt(LAYOUTS["pair"], 100, True, 200_000)
    even = load(LAYOUTS["pair"], 1e9, 400, False, 200_000)
    assert one.skew > 2 * even.skew


def test_values_are_drawn_as_the_model_takes_them_to_be() -> None:
    rows = LAYOUTS["pair"].rows("r", 500_000, True, np.random.default_rng(3))
    counts = np.bincount(rows["a"].to_numpy(), minlength=VALUES) / 500_000
    common, twice = drawn(True)
    assert counts.max() == pytest.approx(common, rel=0.1)
    assert np.sum(counts**2) - 1 / 500_000 == pytest.approx(twice, rel=0.15)


def test_micro_batches_are_counted_as_the_stream_has_them() -> None:
    pace = Pace(1, 8, 100)
    assert [batches(size, pace) for size in (0.5, 1, 2, 9, 73, 74, 173, 174)] == [1, 1, 2, 2, 3, 4, 4, 5]
    assert batches(1e12, pace_of(4_000)) < 12


def test_terms_grow_with_what_they_are_made_of() -> None:
    costs, layout = page.read().costs, LAYOUTS["star"]
    base = forecast(costs, layout, 1e9, 100, False, pace_of)
    for cost, term in (
        ("cut_row", "cutting"),
        ("carry_byte", "carrying"),
        ("eddy_row", "eddies"),
        ("epoch", "batches"),
        ("task", "batches"),
        ("row_bytes", "network"),
        ("row_bytes", "disks"),
    ):
        dearer = replace(costs, **{cost: 2 * getattr(costs, cost)})
        assert forecast(dearer, layout, 1e9, 100, False, pace_of).terms[term] > base.terms[term], cost
    assert forecast(costs, layout, 1e11, 100, False, pace_of).memory == pytest.approx(100 * base.memory)
    assert not forecast(replace(costs, memory_row=1e6), layout, 1e9, 100, False, pace_of).fits


def test_costs_in_python_are_measured(tmp_path: Path) -> None:
    alone = _alone(laid(_pair(20_000), tmp_path / "laid"), tmp_path / "alone")
    assert min(alone.values()) > 0
    assert alone["memory_row"] > 16
    assert _told_cell(tmp_path / "given") > 0


def test_the_command_writes_page_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, text = page.read(), tmp_path / "scaling.md"
    text.write_text(page.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(page.write, "__defaults__", (text, tmp_path / "scaling.json"))
    plot = tmp_path / "scaling.png"
    assert main(["scaling", "--sample", "50000", "--page", "--json", "--plot", str(plot)]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 < said["figures"]["model_off"] < 0.5
    assert len(said["detail"]) == len(LAYOUTS) * 2 * 2 + 2  # the machine, the plot
    assert plot.stat().st_size
    found = page.read(tmp_path / "scaling.json")
    assert found.costs == kept.costs
    assert "50,000 rows of each relation were dealt out." in text.read_text(encoding="utf-8")
    assert page.written(text.read_text(encoding="utf-8"), found) == text.read_text(encoding="utf-8")
