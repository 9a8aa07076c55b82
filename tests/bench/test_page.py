"""The page of the experiments: what the command writes into it, and that nothing is left out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.paper import EXPERIMENTS
from bench.papers import every
from bench.papers.bars import BARS
from bench.papers.page import rows, sections, shown, written

PAGE = "# A page\n\nProse.\n\n<!-- figures: calls -->\nold\n<!-- end of figures -->\n\nMore prose.\n"
NAMES = [name for name in EXPERIMENTS if name != "all"]


def said(name: str, **figures: float) -> dict[str, Any]:
    return {"bench": name, "figures": figures, "detail": {"setting": "small"}}


def test_every_experiment_has_bars_or_is_said_to_have_none() -> None:
    assert set(NAMES) <= set(BARS)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_a_section(name: str) -> None:
    page = every.PAGE.read_text()
    assert name in sections(page)
    assert f"\n## {name}\n" in page


@pytest.mark.parametrize("name", NAMES)
def test_every_bar_has_its_row_on_the_page(name: str) -> None:
    assert {bar.figure for bar in BARS[name]} <= set(rows(every.PAGE.read_text(), name))


@pytest.mark.parametrize("name", BARS)
def test_every_bar_of_what_was_run_has_a_figure(name: str) -> None:
    """And the page says what the results beside its plots say."""
    kept = every.read(every.PAGE.parent / "figures" / "results.jsonl").get(name)
    if kept is None or "failed" in kept:
        pytest.skip("there is no result of it")
    said = rows(every.PAGE.read_text(), name)
    assert all(bar.figure in kept["figures"] for bar in BARS[name])
    assert all(said[bar.figure] == shown(kept["figures"][bar.figure]) for bar in BARS[name])


def test_every_plot_on_the_page_is_there() -> None:
    page = every.PAGE.read_text()
    shown = [name for name in BARS if f"![{name}](figures/{name}.png)" in page]
    assert [n for n in shown if not (every.PAGE.parent / "figures" / f"{n}.png").exists()] == []


def test_figures_are_written_between_the_markers_alone() -> None:
    page = written(PAGE, {"calls": said("calls", median=1.0, worst=1.25, more=12345.6)}, Path("figures"))
    assert page.startswith("# A page\n\nProse.\n\n<!-- figures: calls -->\n![calls](figures/calls.png)\n")
    assert page.endswith("<!-- end of figures -->\n\nMore prose.\n")
    assert "old" not in page
    assert rows(page, "calls") == {"median": "1", "worst": "1.250", "more": "12,346"}
    assert "| ≤ 1 | met:" in page
    assert "| ≤ 1.2 | **not met**:" in page
    assert "Setting: small." in page
    assert written(page, {}, Path("figures")).count("<!-- figures") == 1


def test_what_failed_or_was_not_run_is_said() -> None:
    failed = {"calls": {"bench": "calls", "figures": {}, "detail": {}, "failed": "no such file"}}
    assert "This experiment failed: no such file." in written(PAGE, failed, Path("figures"))
    untold = written(PAGE, {}, Path("figures"))
    assert "This experiment was not run." in untold
    assert rows(untold, "calls") == {"median": "-", "worst": "-"}


def test_all_bars_are_in_the_overview() -> None:
    page = "<!-- figures: all -->\n<!-- end of figures -->\n"
    found = written(page, {"regret": said("regret", median=0.99, worst=1.31)}, Path("figures"))
    assert "| [regret](#regret) | `median` | 0.990 | ≤ 1 | met |" in found
    assert "| [regret](#regret) | `worst` | 1.310 | ≤ 1.3 | **not met** |" in found
    assert "| [regret](#regret) | `p99` | - | ≤ 1.15 | not measured |" in found
    assert found.count("](#") == sum(map(len, BARS.values()))


def test_all_keeps_what_it_is_told_and_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(name: str, folder: Path, last: dict[str, Any] | None) -> dict[str, Any]:
        return every._failed(name, "broken", last) if name == "calls" else said(name, median=0.9, p99=1.2)

    monkeypatch.setattr(every, "ran", ran)
    assert main(["paper", "all", "--only", "calls,regret", "--into", str(tmp_path)]) == 0
    kept = every.read(tmp_path / "results.jsonl")
    assert set(kept) == {"calls", "regret"}
    assert kept["calls"]["failed"] == "broken"
    assert main(["paper", "all", "--only", "partitions", "--into", str(tmp_path)]) == 0
    assert set(every.read(tmp_path / "results.jsonl")) == {"calls", "regret", "partitions"}


def test_all_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [said("regret", median=0.9, p99=1.2, worst=1.2), said("calls", median=1.0, worst=1.1)]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    plot = tmp_path / "all.png"
    assert main(["paper", "all", "--dry", "--into", str(tmp_path), "--json", "--plot", str(plot)]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["figures"]["bars_met"] == 4
    assert printed["detail"]["missed"] == {"regret p99": pytest.approx(1.043, abs=1e-3)}
    assert plot.stat().st_size


def test_an_unknown_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no experiment nonsense"):
        main(["paper", "all", "--only", "nonsense", "--into", str(tmp_path)])


def test_a_run_that_fails_says_its_last_line(tmp_path: Path) -> None:
    assert "invalid choice" in every.ran("nonsense", tmp_path)["failed"]


def test_what_was_said_before_a_failure_is_kept_and_said_to_be_older(tmp_path: Path) -> None:
    failed = every.ran("nonsense", tmp_path, said("calls", median=1.0, worst=1.1))
    page = written(PAGE, {"calls": failed}, Path("figures"))
    assert "Its last run failed: " in page
    assert "What follows is of the run before." in page
    assert rows(page, "calls") == {"median": "1", "worst": "1.100"}


def test_who_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that inherits the pipes would keep them open, and us waiting."""
    monkeypatch.setattr(every, "_PATIENCE", 0.5)
    monkeypatch.setattr(every.sys, "executable", tmp_path / "slow")
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60 & sleep 60\n")
    slow.chmod(0o755)
    assert every.ran("calls", tmp_path)["failed"] == "not done after 0.5 s"


def test_an_experiment_s_own_tables_are_on_the_page() -> None:
    result = said("calls", median=1.0)
    result["detail"]["tables"] = {
        "query": {"one": {"ratio": 1.25, "says": "slower"}, "two": {"ratio": 1, "says": "-"}}
    }
    page = written(PAGE, {"calls": result}, Path("figures"))
    assert "| query | ratio | says |\n|---|---|---|\n| one | 1.250 | slower |\n| two | 1 | - |\n" in page


def test_the_load_is_told_as_a_range() -> None:
    results = {}
    for name, load in (("calls", 0.5), ("regret", 2.0)):
        results[name] = said(name)
        results[name]["detail"]["machine"] = {"usable_cores": 2, "python": "3.11.7", "load": [load, 0, 0]}
    page = written("<!-- figures: all -->\n<!-- end of figures -->\n", results, Path("figures"))
    assert "Measured on 2 cores (Python 3.11.7); load when an experiment began: 0.5 to 2." in page


def test_the_load_is_taken_before_a_bench_makes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []
    monkeypatch.setattr("bench.__main__.machine", lambda: order.append("machine") or {})
    monkeypatch.setattr(every, "ran", lambda *_: order.append("ran") or said("calls"))
    assert main(["paper", "all", "--only", "calls", "--into", str(tmp_path), "--json"]) == 0
    assert order == ["machine", "ran"]
