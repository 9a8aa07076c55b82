"""The experiment on overheads at a tiny size: its queries answer what they should, and all that is promised is in the
result. How fast anything is, no test says."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench.__main__ import main
from bench.feeding import catalog_of
from bench.papers import overheads
from mediator.assembly import Settings
from mediator.catalog.delay import DELAY
from mediator.eddy.routing import Router
from mediator.query.model import BlockStage
from mediator.query.understand import understand

ROWS = 200
CASES = [
    "no-delay", "delay-0", "delay-10", "delay-100",
    "select-all-3", "select-count-3", "select-all-4", "select-count-4", "select-all-5", "select-count-5",
    "index-3-10", "index-3-1000", "index-4-10", "index-4-1000", "index-5-10", "index-5-1000",
]  # fmt: skip


def cases(rows: int = ROWS) -> dict[str, overheads.Case]:
    return {case.name: case for case in overheads.cases(rows, 20)}


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return said


def test_the_cases_are_the_study_s() -> None:
    assert list(cases()) == CASES


@pytest.mark.parametrize("name", CASES)
def test_every_row_passes_and_every_row_is_found(name: str) -> None:
    """As every plan has to cost the same, no selection rules anything out, and a row has one match in every table."""
    run = cases()[name].fed.run(Settings(revisit=1))
    counted = name.startswith(("no", "delay")) or "count" in name
    each = {"select": ROWS, "index": ROWS if name.endswith("-10") else 10 * ROWS // 1_000}.get(
        name.split("-")[0], 1
    )
    assert run.answers == (1 if counted else each)


def test_a_selection_with_a_delay_is_a_module_and_one_without_is_none() -> None:
    found = cases()
    catalog = catalog_of({"tenk1": pa.table({name: [1] for name in ("two", "four", "ten")})}).knowing([DELAY])
    modules = {}
    for name in CASES[:4]:
        stage = understand(found[name].sql, catalog).stages[0]
        assert isinstance(stage, BlockStage)
        modules[name] = sum(p.costly for p in stage.block.predicates)
    assert modules == {"no-delay": 0, "delay-0": 3, "delay-10": 3, "delay-100": 3}


def test_what_routing_takes_is_counted_and_nothing_is_left_behind() -> None:
    before = Router.next, Router.learn
    assert overheads.routing(cases()["delay-0"])["default"].microseconds > 0.0
    assert (Router.next, Router.learn) == before


def test_who_decides_for_every_batch_thinks_about_every_batch() -> None:
    found = overheads.routing(cases()["select-count-4"])
    assert 0.95 * found["every 1"].choices <= found["every 1"].thoughts <= found["every 1"].choices
    assert found["every 1"].choices > 10
    assert found["every 1,000"].thoughts < found["every 1"].thoughts
    assert found["fixed"].thoughts == 0


def test_the_result_has_what_is_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "overheads.png"
    small = [
        "--rows",
        "100",
        "--batch",
        "10",
        "--rounds",
        "1",
        "--only",
        "no-delay,delay-0,select-count-3,index-3-1000",
    ]
    assert main(["paper", "overheads", "--json", "--plot", str(file), *small]) == 0
    result = said(capsys)
    detail = result["detail"]
    assert result["bench"] == "overheads"
    assert set(result["figures"]) == {"default_frequency", "every_batch"}
    assert set(detail["ratios"]) == {"no-delay", "delay-0", "select-count-3", "index-3-1000"}
    assert set(detail["ratios"]["delay-0"]) == {
        "fixed", "default", "every 1", "every 10", "every 100", "every 1,000"
    }  # fmt: skip
    assert result["figures"]["default_frequency"] == max(r["default"] for r in detail["ratios"].values())
    assert result["figures"]["every_batch"] == max(r["every 1"] for r in detail["ratios"].values())
    assert detail["batch"] == 10
    assert "batches of 10" in detail["setting"]
    assert set(detail["routing_us_a_batch"]["delay-0"]) == set(detail["ratios"]["delay-0"])
    assert set(detail["tables"]["decisions"]) == set(detail["ratios"])
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_case_that_there_is_not_is_an_error() -> None:
    options = argparse.Namespace(rows=10, batch=5, rounds=1, only="nonsense")
    with pytest.raises(SystemExit, match="no case begins with 'nonsense'; there are no-delay, "):
        overheads.measure(options)
