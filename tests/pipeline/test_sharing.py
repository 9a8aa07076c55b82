"""A scan that several askers share: every page is asked for once, no row is lost and none told twice."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from mediator.catalog.wrapper import Request
from pipeline.cells.envelopes import Broken, Lookup, Over
from pipeline.spread import strands
from pipeline.spread.folder import Folder
from pipeline.spread.portion import Due, Portion
from pipeline.spread.shares import Shared
from pipeline.spread.sharing import Sharing
from tests.pipeline import shared_scans
from tests.pipeline.shared_scans import Run, Site, Sites, drawn_site, plan_of

SEEDS = 40


def searched(seed: int, folder: Path, kills: int) -> Run:
    random = Random(f"{seed} {kills}")
    sites = Sites([drawn_site(random, f"r{n}") for n in range(random.choice((1, 1, 2, 3)))], random)
    run = Run(plan_of(sites, random.choice((2, 2, 3, 4))), Folder(folder), sites, random, kills)
    run.go()
    for site in sites.sites:
        check(run, site, f"{seed}, {kills} kills: {site}", killed=kills > 0)
    run.check_order()
    return run


def check(run: Run, site: Site, where: str, killed: bool = False) -> None:
    end, counts = run.end(site), run.counts(site)
    if site.lost:
        assert isinstance(end, Broken), where
        assert end.cause.message.endswith("403 Forbidden"), where
        assert (counts["asked"], counts["answered"], counts["failed"]) == (1, 0, 1), where
        assert set(run.came(site)) <= set(site.all), where
        return
    assert isinstance(end, Over), where
    assert (counts["asked"], counts["answered"], counts["failed"]) == (1, 1, 0), where
    came, told = run.came(site), run.came(site, end.landings)
    if site.bag:
        assert came == told == site.all, where
    else:
        assert set(came) == set(told) == set(site.all), where
    if not killed:
        assert came == site.all, where
        assert counts["rows"] == site.all.total(), where
        assert {path: run.sites.requests[path] for path in site.rows} == dict.fromkeys(site.rows, 1), where


def shared_in(run: Run) -> list[str]:
    return [path.name for path in run.folder.shares.iterdir() if path.name.count(".") == 1]


def test_every_page_is_asked_for_once(tmp_path: Path) -> None:
    runs = [searched(seed, tmp_path / str(seed), 0) for seed in range(SEEDS)]
    assert sum(len(shared_in(run)) for run in runs) > SEEDS / 2
    assert sum(bool(site.lost) for run in runs for site in run.sites.sites) > 3


def test_whoever_is_killed_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    kills = [3 - searched(seed, tmp_path / str(seed), 3).kills for seed in range(SEEDS)]
    assert sum(kills) > SEEDS


def _only_the_first(
    self: Sharing, lookup: Lookup, request: Request, named: tuple[Request, ...]
) -> tuple[Request, ...]:
    found = _then(self, lookup, request, named)
    return named if request == self.begins(lookup) else found


def _done_first(self: Portion, due: Due) -> None:
    _write(self, Due([], [], due.done))
    _write(self, Due(due.shared, due.entries, []))


def _forgetting(self: Portion) -> None:
    _recall(self)
    self._pages = {}


_then, _write, _recall = Sharing.then, Portion.write, Portion._recall
# What each of them makes wrong, the search sees.
_MUTATIONS: dict[str, tuple[Any, str, object]] = {
    "others are not waited for": (Shared, "others", property(lambda self: set())),
    "a part is its first page": (Sharing, "then", _only_the_first),
    "what lies in other strands is not waited for": (strands, "_after", lambda entries: {}),
    "it is done before its rows are there": (Portion, "write", _done_first),
    "pages that are there are told again": (Portion, "_recall", _forgetting),
    "nobody says that a part is done": (Portion, "_end_part", lambda self, open_, end: None),
}


@pytest.mark.parametrize("name", _MUTATIONS)
def test_a_rule_that_is_left_out_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_scans, "STEPS", 500)
    monkeypatch.setattr(*_MUTATIONS[name])
    with pytest.raises((AssertionError, ExceptionGroup)):
        _searched_all(tmp_path)


def _searched_all(folder: Path) -> None:
    for seed in range(SEEDS):
        searched(seed, folder / f"{seed}", 0)
        searched(seed, folder / f"{seed} killed", 3)
