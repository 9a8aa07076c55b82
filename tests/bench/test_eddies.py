"""The first paper's experiments at tiny sizes: contestants agree, what is told has its shape. No test says how fast."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from bench.__main__ import main
from bench.feeding import catalog_of
from bench.papers import eddies_cost, eddies_delay, eddies_joins, eddies_selectivity, eddies_swap
from bench.papers.eddies import DEFAULT, agree, in_turns, ordered, policies, raced, three_tables
from bench.papers.eddies_delay import Informed, delayed
from bench.papers.fed import Fed
from bench.papers.indexes import Index, catalog_with
from bench.papers.runs import Run, checksum
from bench.papers.selections import Selection, raced_at
from mediator.assembly import POLICIES, Settings
from mediator.eddy.destinations import Probe
from mediator.eddy.flows import Flows
from mediator.eddy.policy import Situation
from mediator.flow.batch import Signature
from mediator.flow.events import Arrived, Ask, Exhausted

CONTESTANTS = {DEFAULT, *POLICIES, "random"} - {"fixed", Settings().policy}
SMALL = {
    "eddies-cost": ["--rows", "600", "--batch", "100", "--unit", "0.1", "--rounds", "1", "--costs", "1", "9"],
    "eddies-selectivity": (
        ["--rows", "600", "--batch", "100", "--unit", "0.1", "--rounds", "1", "--passing", "0", "1"]
    ),
    "eddies-joins": ["--scale", "0.02", "--batch", "100", "--rounds", "1", "--index-rounds", "1"],
    "eddies-delay": ["--scale", "0.02", "--batch", "100", "--rounds", "1", "--seconds", "0.02"],
    "eddies-swap": ["--scale", "0.01", "--phase", "0.05", "--slow", "0.001", "--unit", "1e-6"],
}
JOIN = eddies_joins.SQL
ORDERS = {"R first": (1, 0, 2), "T first": (1, 2, 0)}


def said_by(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> dict[str, Any]:
    """What it prints. It is drawn, too."""
    file = tmp_path / "figure.png"
    assert main(["paper", name, "--json", *SMALL[name], "--plot", str(file)]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["bench"] == name
    assert file.stat().st_size > 10_000
    return said


@pytest.mark.parametrize("name", ["eddies-cost", "eddies-selectivity"])
def test_selections_tell_of_every_contestant_at_every_point(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = said_by(name, capsys, tmp_path)
    points = said["detail"]["points"]
    assert len(points) == 2
    for point in points.values():
        assert set(point["ratios"]) == CONTESTANTS | {"s1 first", "s2 first"}
        assert min(point["ratios"]["s1 first"], point["ratios"]["s2 first"]) == 1.0
        assert point["better_order"] in ("s1 first", "s2 first")
        assert all(0.0 <= share <= 1.0 for share in point["s1_first"].values())
    assert said["figures"]["default_worst_ratio"] == max(p["ratios"][DEFAULT] for p in points.values())


@pytest.mark.parametrize(("passing", "answers"), [(0.0, 0), (1.0, 50)])
def test_a_selection_lets_as_many_rows_pass_as_it_says(passing: float, answers: int) -> None:
    options = argparse.Namespace(rows=100, unit=0.0, batch=50, rounds=1, seed=1)
    race = raced_at(options, Selection(1, passing), Selection(1, 0.5))
    assert race.answers == pytest.approx(answers, abs=15)


def test_joins_tell_the_better_order_and_who_took_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = said_by("eddies-joins", capsys, tmp_path)
    points = said["detail"]["points"]
    assert set(points) == set(eddies_joins.POINTS)
    for name, point in points.items():
        assert set(point["ratios"]) == CONTESTANTS | set(ORDERS)
        assert point["took_it"][point["better_order"]] == 1.0
        assert (point["lookups"] is not None) == ("index" in name)
        assert point["at_stake"] == max(point["ratios"][order] for order in ORDERS)
        short = said["detail"]["tables"]["query"][name]
        slower = point["ratios"][DEFAULT] > point["at_stake"]
        assert (short["the default is"] == "slower than both") == slower
    assert said["figures"]["default_worst_ratio"] == max(p["ratios"][DEFAULT] for p in points.values())


def test_delay_is_set_against_the_best_of_the_plans_that_knew(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = said_by("eddies-delay", capsys, tmp_path)
    detail = said["detail"]
    assert set(said["figures"]) == {"default_vs_informed", "completion_vs_informed", "after_r_vs_informed"}
    assert all(0 < left <= detail["seconds"][name] + 1e-4 for name, left in detail["after_r_s"].items())
    knew = {"R first", "T first", "T first, then R", "R first, then T"}
    assert set(detail["ratios"]) == CONTESTANTS | knew
    assert detail["informed"] in knew
    assert detail["ratios"][detail["informed"]] == 1.0
    assert all(seconds > 0 for seconds in detail["ended_s"].values())


def test_swap_tells_both_figures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = said_by("eddies-swap", capsys, tmp_path)
    for figure, number in (("figure_10", "default_vs_best_static"), ("figure_11", "toggled_vs_best_static")):
        told = said["detail"][figure]
        assert set(told["ratios"]) == CONTESTANTS | {"S first", "T first"}
        assert told["s_first"]["S first"] == 1.0
        assert told["s_first"]["T first"] == 0.0
        assert said["figures"][number] == told["ratios"][DEFAULT]
    assert said["detail"]["figure_10"]["lookups"]["S first"]["s"] == 300  # one for each row of R


@pytest.mark.parametrize("module", [eddies_cost, eddies_selectivity, eddies_joins, eddies_delay, eddies_swap])
def test_its_own_sizes_are_the_paper_s(module: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    module.options(parser)
    options = vars(parser.parse_args([]))
    assert options.get("rows", 50_000) == 50_000
    assert options.get("scale", 1.0) == 1.0
    assert module.SUMMARY


def test_tables_have_the_paper_s_rows_and_matches() -> None:
    tables = three_tables(1.0, 1, 1.8)
    assert [tables[name].num_rows for name in "rst"] == [10_000, 80_000, 10_000]
    keys = {name: tables[name].column("a").to_pylist() for name in "rs"}
    assert (min(keys["r"]), max(keys["r"])) == (500, 5_498)  # below 5,500
    assert (min(keys["s"]), max(keys["s"])) == (0, 4_999)


@pytest.mark.parametrize("matches", [0.2, 1.8])
def test_a_row_of_s_finds_as_many_rows_of_r_as_it_should(matches: float) -> None:
    tables = three_tables(1.0, 1, matches)
    rows: dict[int, int] = {}
    for a in tables["r"].column("a").to_pylist():
        rows[a] = rows.get(a, 0) + 1
    found = sum(rows.get(a, 0) for a in tables["s"].column("a").to_pylist())
    assert found / 80_000 == pytest.approx(matches, rel=0.05)


def test_r_comes_late_and_all_end_together() -> None:
    tables = three_tables(0.1, 1, 0.2)
    names = [name for landed in delayed(tables, 100, 0.5) for name, _ in landed]
    assert names.count("s") == 80
    assert names.count("r") == names.count("t") == 10
    assert names[: names.index("r")].count("s") == 40
    assert "r" in names[-3:]


def test_who_knew_of_the_delay_changes_order_when_it_is_over() -> None:
    informed = Informed(0, before=(1, 2, 0), after=(1, 0, 2))
    legal = [Probe(0), Probe(2)]
    assert informed.choose(Signature(2), legal, Situation(10, (0, 100, 100))) == Probe(2)
    assert informed.choose(Signature(2), legal, Situation(10, (1, 100, 100))) == Probe(0)


def test_contestants_find_the_same_answers_with_an_index_and_without() -> None:
    tables = three_tables(0.02, 1, 1.8, found=0.5)
    scanned = Fed(JOIN, catalog_of(tables), in_turns(tables, 100))
    index = Index("t", tables["t"], "b")
    rest = {name: tables[name] for name in "rs"}
    looked_up = Fed(JOIN, catalog_with(rest, index), in_turns(rest, 100), [index])
    for fed in (scanned, looked_up):
        race = raced({name: ordered(fed, order) for name, order in ORDERS.items()}, policies(fed), 1)
        assert race.answers > 0
        assert set(race.ratios()) == CONTESTANTS | set(ORDERS)
    found = {fed.run(Settings()).total for fed in (scanned, looked_up)}
    assert len(found) == 1


def test_a_static_plan_sends_every_row_the_same_way() -> None:
    tables = three_tables(0.02, 1, 0.2)
    fed = Fed(JOIN, catalog_of(tables), in_turns(tables, 100))
    race = raced({name: ordered(fed, order) for name, order in ORDERS.items()}, {}, 1)
    assert race.shares(Signature(2), Probe(0)) == {"R first": 1.0, "T first": 0.0}


def test_those_who_do_not_agree_are_found_out() -> None:
    one, other = Run(1.0, 5, 1, Flows(), []), Run(1.0, 5, 2, Flows(), [])
    agree([("a", one), ("b", one)])
    with pytest.raises(RuntimeError, match="the answers differ"):
        agree([("a", one), ("b", one), ("a", other)])


def test_the_order_and_the_batches_of_answers_play_no_part_in_their_sum() -> None:
    whole = pa.table({"x": [1, 2, 3], "y": [2**62, 5, 6]})
    turned = whole.take([2, 0, 1]).to_batches(max_chunksize=1)
    assert checksum(whole.to_batches()) == checksum(turned)
    assert checksum(whole.to_batches()) != checksum(
        whole.rename_columns(["y", "x"]).select(["x", "y"]).to_batches()
    )


def test_an_index_answers_what_it_is_asked_and_says_that_this_was_all() -> None:
    index = Index("t", pa.table({"b": [1, 1, 2], "c": [10, 11, 12]}), "b")
    arrived, ended = index.answer(Ask(7, "t", "by_b", ("b",), ((1,), (9,))))
    assert isinstance(arrived, Arrived)
    assert arrived.landing.rows.column("c").to_pylist() == [10, 11]
    assert isinstance(ended, Exhausted)
    assert ended.bindings == ((1,), (9,))
    (only,) = index.answer(Ask(8, "t", "by_b", ("b",), ((9,),)))
    assert isinstance(only, Exhausted)
