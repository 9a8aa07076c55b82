"""A scan that several askers share: every page is asked for once, no row is lost and none told twice."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mediator.access.mirrors.latency import Distribution
from mediator.access.statistics import SourceStatistics, Statistics
from mediator.access.web.redaction import Redaction
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Request
from pipeline.cells.envelopes import Broken, Lookup, Over
from pipeline.spread import portion, strands
from pipeline.spread.folder import Folder
from pipeline.spread.pieces import count
from pipeline.spread.portion import Due, Portion, whose
from pipeline.spread.requests import can_be_told, mark, read, written
from pipeline.spread.shares import Shared, Shares
from pipeline.spread.sharing import Sharing
from pipeline.spread.strands import strand_of
from pipeline.spread.watching import standing, watched
from tests.pipeline import shared_scans
from tests.pipeline.shared_scans import Run, Site, Sites, drawn_site, plan_of
from wrappers.paging.turning import paged
from wrappers.requesting import get

SEEDS, KILLS = 40, 6


@pytest.fixture(autouse=True)
def no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk: only askers are killed here."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


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
    assert counts["rows"] == run.came(site).total(), where
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
    kills = [KILLS - searched(seed, tmp_path / str(seed), KILLS).kills for seed in range(SEEDS)]
    assert sum(kills) > 2 * SEEDS


def _only_the_first(
    self: Sharing, lookup: Lookup, request: Request, named: tuple[Request, ...]
) -> tuple[Request, ...]:
    found = _then(self, lookup, request, named)
    return named if request == self.begins(lookup) else found


def _done_first(self: Portion, due: Due) -> None:
    _write(self, Due([], [], due.done))
    _write(self, Due(due.shared, due.entries, [], due.counts))


def _as_it_stands(self: Portion, due: Due) -> None:
    _write(self, replace(due, counts=self._counts))


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
    "what came while a piece was written is counted in it": (Portion, "write", _as_it_stands),
    "pages that are there are told again": (Portion, "_recall", _forgetting),
    "a page is known by its place": (portion, "_page_of", lambda landing: f"{landing.place}"),
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
        searched(seed, folder / str(seed), KILLS)


# What the search does not draw.


def _site(name: str, pages: int, bag: bool = True) -> Site:
    """A first page that names all others, of a row each."""
    site = Site(name, bag)
    for number in range(pages):
        site.rows[f"/{name}/{number}"], site.then[f"/{name}/{number}"] = [(number, "v")], []
    site.then[f"/{name}/0"] = [f"/{name}/{number}" for number in range(1, pages)]
    return site


def _run(folder: Path, *drawn: Site, askers: int = 3, **declared: object) -> Run:
    random = Random(1)
    sites = Sites(list(drawn), random)
    return Run(plan_of(sites, askers, **declared), Folder(folder), sites, random)


def _parts(run: Run) -> dict[int, list[str]]:
    (shared,), _ = Shares(run.folder.shares, run.plan.relations).look()
    return {asker: [request.path for request in part] for asker, part in shared.parts.items()}


def test_pages_are_dealt_out_in_turns_the_owner_first(tmp_path: Path) -> None:
    site = _site("r0", 8)
    run = _run(tmp_path, site)
    run.go()
    check(run, site, "")
    owner = whose(run.plan, site.lookup)
    order = [owner, (owner + 1) % 3, (owner + 2) % 3]
    assert _parts(run) == {asker: [f"/r0/{n}" for n in range(1 + k, 8, 3)] for k, asker in enumerate(order)}
    assert all(count(run.folder.strand(strand_of(asker))) for asker in order)


@pytest.mark.parametrize(
    "declared", [{"at_most": 100}, {"order": ("k",)}, {"max_pages": 7}, {"batch_size": 2}], ids=str
)
def test_a_scan_that_is_one_asker_s(declared: dict[str, object], tmp_path: Path) -> None:
    """Where its rows have an order or are counted, or there are too many pages, which one alone is to notice."""
    site = _site("r0", 8)
    run = _run(tmp_path, site, **declared)
    run.go()
    assert not shared_in(run)
    if "max_pages" in declared:
        end = run.end(site)
        assert isinstance(end, Broken)
        assert "more than 7 pages" in end.cause.message
    else:
        check(run, site, "")


def test_more_pages_than_allowed_are_noticed_by_all_together(tmp_path: Path) -> None:
    """Each of two parts leads on to three pages: either of them alone might."""
    site = _site("r0", 3)
    for number in (1, 2):
        for step in range(3):
            last = f"/r0/{number}" + "x" * step
            site.then[last], site.then[last + "x"], site.rows[last + "x"] = [last + "x"], [], [(9, "v")]
    for most, ends in ((9, Over), (8, Broken)):
        run = _run(tmp_path / str(most), site, askers=2, max_pages=most)
        run.go()
        end = run.end(site)
        assert isinstance(end, ends)
        if isinstance(end, Broken):
            assert end.cause.kind == "endless"
            assert "more than 8 pages" in end.cause.message
            assert sum(run.sites.requests.values()) <= 8 + 1
    assert shared_in(run)


@pytest.mark.parametrize("back", ["/r0/0", "/r0/1", "/r0/2", "/r0/3", "/r0/4"])
def test_pages_that_lead_back_are_noticed_whoever_has_them(back: str, tmp_path: Path) -> None:
    site = _site("r0", 5)
    site.then["/r0/3"] = [back]
    run = _run(tmp_path, site)
    run.go()
    end = run.end(site)
    assert isinstance(end, Broken)
    assert "lead back to one that was read already" in end.cause.message


def test_pages_that_lead_to_the_same_one_are_noticed(tmp_path: Path) -> None:
    """From two parts, neither of which knows of the other: equal rows of a bag would be there twice."""
    site = _site("r0", 3)
    site.then["/r0/1"] = site.then["/r0/2"] = ["/r0/9"]
    site.rows["/r0/9"], site.then["/r0/9"] = [(9, "v")], []
    run = _run(tmp_path, site, askers=2)
    run.go()
    end = run.end(site)
    assert isinstance(end, Broken)
    assert end.cause.kind == "endless"


def test_a_failure_waits_for_the_rows_of_others(tmp_path: Path) -> None:
    site = _site("r0", 9)
    run = _run(tmp_path, site)
    site.lost.add("/r0/1")
    run.go()
    check(run, site, "")
    parts = _parts(run)
    owner = whose(run.plan, site.lookup)
    assert "/r0/1" in parts.pop(owner)
    assert {row for part in parts.values() for path in part for row in site.rows[path]} <= set(run.came(site))


def test_what_was_dealt_and_done_stays_so(tmp_path: Path) -> None:
    """A site that names one page more when its owner begins anew."""
    site = _site("r0", 8)
    run = _run(tmp_path, site)
    owner = whose(run.plan, site.lookup)
    run.go()
    before, parts = dict(run.sites.requests), _parts(run)
    strand = run.folder.strand(strand_of(owner))
    for piece in sorted(strand.glob("*.arrow"))[1:] or strand.glob("*.arrow"):
        piece.unlink()  # as if it had been killed before it wrote them
    site.rows["/r0/new"], site.then["/r0/new"] = [(99, "v")], []
    site.then["/r0/0"].append("/r0/new")
    again = Run(run.plan, run.folder, run.sites, run.random)
    again.go()
    asked = {path: run.sites.requests[path] - before.get(path, 0) for path in site.rows}
    assert asked == {path: int(path in ("/r0/0", "/r0/new", *parts[owner])) for path in site.rows}
    assert _parts(again) == parts
    check(again, site, "", killed=True)
    again.check_order()


def test_requests_that_cannot_be_told_stay_where_they_are() -> None:
    def rows(reply: object) -> object:
        return reply

    assert can_be_told(get("/a"))
    assert not can_be_told(get("/a", rows=rows))
    assert not can_be_told(get("/a", kept="what it learnt"))
    assert not can_be_told(Statement("t", sql="SELECT 1"))


@pytest.mark.parametrize(
    "request_",
    [
        Request("/a"),
        Request(
            "http://other.test/a", (("q", "ä"), ("q", "")), "POST", (("Accept", "x"),), b"\xff\x00", True
        ),
        get("/a", query={"page": 2}),
        paged(Request("/a", (("page", "3"),)), 3, 0, b"\x01\xff", 2),
    ],
)
def test_a_request_is_what_was_written(request_: Request) -> None:
    found = read(json.loads(json.dumps(written(request_))))
    assert found == request_
    assert type(found) is type(request_)
    assert repr(found) == repr(request_), "also what is not compared"


def test_requests_are_told_apart_whoever_has_made_them() -> None:
    plain = Request("/a", (("page", "3"),))
    assert mark(plain) == mark(paged(plain, 3, 0, b"\x01", 2)) == mark(paged(plain, 3))
    assert mark(plain) != mark(Request("/a", (("page", "4"),)))
    pages = [
        Statement("t", sql="SELECT k FROM t WHERE k > ?", parameters=(last,)) for last in (1, 2, "2", None)
    ]
    assert len({mark(page) for page in pages}) == 4


def test_a_page_that_a_secret_leads_to_is_not_written_down(tmp_path: Path) -> None:
    site = _site("r0", 5)
    run = _run(tmp_path, site)
    redaction = Redaction()
    redaction.add("open sesame")
    sharing = Sharing(run.plan, whose(run.plan, site.lookup))
    sharing.hides = redaction.holds
    pages = (Request("/a"), Request("/b", (("key", "open sesame"),)))
    assert sharing.then(site.lookup, Request("/r0/0"), pages) == pages
    assert not sharing.new
    other = Sharing(run.plan, whose(run.plan, site.lookup))
    other.hides = redaction.holds
    assert other.then(site.lookup, Request("/r0/0"), (Request("/a"), Request("/b"))) == (Request("/a"),)
    assert other.new


def test_a_scan_that_is_helped_with_is_asked_once_in_the_progress(tmp_path: Path) -> None:
    def of(asked: int, rows: int) -> Statistics:
        latency = Distribution()
        return Statistics(
            (SourceStatistics("site", asked, asked, 0, 1, 2, 0, 0, 5, 0, rows, latency, width=4),), ()
        )

    folder = Folder(tmp_path)
    folder.asking.mkdir(parents=True)
    (folder.asking / "a.json").write_text(standing(of(3, 10), {}))
    (folder.asking / "b.json").write_text(standing(of(2, 20), {"site": {"asked": 1, "answered": 1}}))
    (source,) = watched(folder)
    assert (source.asked, source.answered, source.requests, source.rows, source.width) == (4, 4, 10, 30, 8)
