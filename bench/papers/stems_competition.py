"""Competing access methods: two mirrors, one of which stalls for half the run.

The SteM paper states, and does not show, that access modules which compete for one relation share its SteM, so that
almost no work is done twice, and that the eddy goes with whichever is better at the moment. Here an index has two
mirrors, and, as a second case, a scan. One of each is twice as fast, and stalls for half the run: what is asked of it
then is answered when it is over.

The oracle is the same engine with one mirror, whose requests are sent to the fast one while it is well and to the
other while it stalls; it knows when that is, and sends nothing that the stall would catch. The engine itself knows
neither; but it may use both mirrors at once, and so it has 8 places where this oracle has 4. `vs_oracle_both` is
against one that has them too: it fills every mirror that is well, the fast one first.

`redundant` is what was sent beyond what was wanted, ÷ what was wanted: requests that were called back count, as a site
has them to deal with. `answered_twice` are those among them that were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

from bench.papers.turns import turned
from bench.result import Result
from bench.timed import Timeline
from fixtures import Behaviour, Fixed, papers
from mediator.access import HttpTransport
from mediator.answering import Mediator
from mediator.catalog.model import Catalog, Mirror, Relation
from mediator.catalog.wrapper import Reply, Request
from sources import load_papers

SUMMARY = "two mirrors of an index, and of a scan, one of which stalls for half the run"

INDEX = "select * from r, s where r.a = s.x"
SCAN = "select * from t"
_CASES = {"index": INDEX, "scan": SCAN}
_FAST, _SLOW = "fast", "slow"
_ENGINE, _ORACLE, _BOTH = "engine", "oracle", "oracle of both"
_ON_THE_WAY = 0.005  # seconds by which a request may come later than it was sent


@dataclass(frozen=True)
class Pace:
    """Times in seconds."""

    lookups: int = 480
    page: int = 2  # rows of the scan
    fast: float = 0.03  # of a lookup, or of a page
    slow: float = 0.06
    at_once: int = 4  # requests under way at each mirror

    @property
    def run(self) -> float:
        """About how long the oracle takes: half of it at either mirror's pace."""
        return self.lookups / self.at_once * 2 / (1 / self.fast + 1 / self.slow)

    @property
    def scanned(self) -> float:
        pages = self.lookups / self.page
        return pages / self.at_once * 2 / (1 / self.fast + 1 / self.slow)

    def stall(self, case: str) -> tuple[float, float]:
        """The half in the middle."""
        run = self.run if case == "index" else self.scanned
        return 0.25 * run, 0.75 * run


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="engine and oracle in turns, so many times")
    parser.add_argument("--lookups", type=int, default=480, help="how much is asked")


def measure(options: argparse.Namespace) -> Result:
    return asyncio.run(measured(Pace(options.lookups), options.rounds))


async def measured(pace: Pace, rounds: int) -> Result:
    """Ratios are the median of all rounds; what is redundant is the worst of them."""
    result = Result("stems-competition")
    for case in _CASES:
        with Mirrors(pace, case) as mirrors:
            await _run(mirrors, case, _ENGINE)  # kernels and caches are warm from here on
            contests = [
                {who: await _run(mirrors, case, who) for who in turned((_ENGINE, _ORACLE, _BOTH), turn)}
                for turn in range(rounds)
            ]
        result.figures |= {f"{case}_{name}": value for name, value in _figures(contests).items()}
        shown = _middle(contests)
        result.curves[case] = {"ours": shown[_ENGINE], "oracle": shown[_ORACLE]}
        result.detail[case] = _detail(pace, case, contests, shown[_ENGINE])
    worst = {name: max(result.figures[f"{case}_{name}"] for case in _CASES) for name in _FIGURES}
    result.figures = {**worst, **result.figures}
    result.detail["setting"] = (
        f"real HTTP on loopback; {pace.lookups} lookups of {1e3 * pace.fast:g} ms at one mirror and"
        f" {1e3 * pace.slow:g} ms at the other, {pace.at_once} at once at each; {pace.lookups // pace.page} pages"
        " for the scan; the fast one stalls for the half in the middle. The oracle has the places of one mirror, the"
        " oracle of both those of every mirror that is well"
    )
    return result


def draw(result: Result, file: Path) -> None:
    """Results, and requests per mirror, over time."""
    from bench.drawing import saved, steps

    with saved(file, 4) as axes:
        for n, (case, runs) in enumerate(result.curves.items()):
            steps(axes[2 * n], {who: run.curve() for who, run in runs.items()}, f"{case}: results", "rows")
            sent = {f"{who}, {name}": of for who, run in runs.items() for name, of in _by_mirror(run).items()}
            steps(axes[2 * n + 1], sent, f"{case}: requests", "sent")
            for axis in axes[2 * n : 2 * n + 2]:
                axis.axvspan(*result.detail[case]["stall_s"], alpha=0.1)


@dataclass(slots=True)
class Run(Timeline):
    """With the moments at which either mirror was asked."""

    sent: tuple[tuple[float, str], ...] = ()

    @property
    def redundant(self) -> float:
        """Requests beyond those that were wanted, as a share of these."""
        asked = self.requests[_FAST] + self.requests[_SLOW]
        return (asked - self.requests["wanted"]) / self.requests["wanted"]

    @property
    def twice(self) -> int:
        """Answers beyond those that were wanted."""
        return self.requests["answered"] - self.requests["wanted"]


Contest = Mapping[str, Run]  # one round, by contestant
_FIGURES = ("vs_oracle", "vs_oracle_both", "redundant", "answered_twice")


def _figures(contests: Sequence[Contest]) -> dict[str, float]:
    """In the order of `_FIGURES`."""
    ours = [contest[_ENGINE] for contest in contests]
    wanted = ours[0].requests["wanted"]
    values = (
        median(map(_vs_oracle, contests)),
        median(contest[_ENGINE].ended / contest[_BOTH].ended for contest in contests),
        max(run.redundant for run in ours),
        max(run.twice for run in ours) / wanted,
    )
    return dict(zip(_FIGURES, values, strict=True))


def _vs_oracle(contest: Contest) -> float:
    return contest[_ENGINE].ended / contest[_ORACLE].ended


def _middle(contests: Sequence[Contest]) -> Contest:
    """The round with the median ratio."""
    ratio = median(map(_vs_oracle, contests))
    return min(contests, key=lambda contest: abs(_vs_oracle(contest) - ratio))


class Mirrors:
    """Two webs with the same rows, in a process of their own. R, which drives the lookups, is not slow."""

    def __init__(self, pace: Pace, case: str) -> None:
        self.pace = pace
        self.case = case

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, self.pace, self.case), daemon=True)
        self._process.start()
        self.urls: dict[str, str] = self._line.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("end")
        self._process.join()

    def counted(self) -> dict[str, dict[str, int]]:
        """By mirror: requests, and how many of them were answered. Then it is as if nothing had been asked."""
        self._line.send("counted")
        counted: dict[str, dict[str, int]] = self._line.recv()
        return counted

    @property
    def competing(self) -> Catalog:
        """The relations with both mirrors."""
        return self._catalog([_FAST, _SLOW], self.pace.at_once)

    def single(self, places: int) -> Catalog:
        """With one mirror that bears so many requests at once; an oracle sends them on."""
        return self._catalog([_FAST], places)

    def _catalog(self, names: list[str], places: int) -> Catalog:
        built_in = load_papers(self.urls[_FAST])
        relations, sources = dict(built_in.relations), dict(built_in.sources)
        kept = {"s": "by_x", "t": "scan"}
        for name in names:
            source = replace(built_in.sources["site_s"], name=name, concurrency=places)
            sources[name] = source
        for relation, method in kept.items():
            relations[relation] = self._mirrored(built_in.relations[relation], method, names)
        return Catalog(relations, sources)

    def _mirrored(self, relation: Relation, method: str, names: list[str]) -> Relation:
        (declared,) = (m for m in relation.methods if m.name == method)
        base = declared.mirrors[0].base
        bases = [base.replace(self.urls[_FAST], self.urls[name]) for name in names]
        mirrors = tuple(Mirror(name, at) for name, at in zip(names, bases, strict=True))
        return replace(relation, methods=(replace(declared, mirrors=mirrors),))


class Sent:
    """A transport that notes who was asked when."""

    def __init__(self, transport: HttpTransport, mirrors: Mirrors) -> None:
        self.sent: list[tuple[float, str]] = []
        self.began = 0.0  # when the mirrors' clocks did, at the latest
        self._transport = transport
        self._mirrors = mirrors

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        if mirror.source in (_FAST, _SLOW):
            self.sent.append((asyncio.get_running_loop().time(), mirror.source))
        return await self._transport.send(mirror, request)


class Informed(Sent):
    """Sends each request to a mirror that is well. The fast one is left as early as a request takes there, so that the
    stall catches none."""

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        if mirror.source != _FAST:
            return await super().send(mirror, request)
        return await self._to(_SLOW if self._stalls else _FAST, mirror, request)

    @property
    def _stalls(self) -> bool:
        pace = self._mirrors.pace
        begins, ends = pace.stall(self._mirrors.case)
        return begins - pace.fast - _ON_THE_WAY <= asyncio.get_running_loop().time() - self.began < ends

    async def _to(self, name: str, mirror: Mirror, request: Request) -> Reply:
        urls = self._mirrors.urls
        self.sent.append((asyncio.get_running_loop().time(), name))
        return await self._transport.send(
            Mirror(_FAST, mirror.base.replace(urls[_FAST], urls[name])), request
        )


class Filling(Informed):
    """Fills every mirror that is well, the fast one first."""

    def __init__(self, transport: HttpTransport, mirrors: Mirrors) -> None:
        super().__init__(transport, mirrors)
        self._free = dict.fromkeys((_FAST, _SLOW), mirrors.pace.at_once)
        self._freed = asyncio.Condition()

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        if mirror.source != _FAST:
            return await super().send(mirror, request)
        name = await self._taken()
        try:
            return await self._to(name, mirror, request)
        finally:
            async with self._freed:
                self._free[name] += 1
                self._freed.notify_all()

    async def _taken(self) -> str:
        """A place at a mirror, as soon as there is one."""
        async with self._freed:
            while True:
                for name in (_SLOW,) if self._stalls else (_FAST, _SLOW):
                    if self._free[name]:
                        self._free[name] -= 1
                        return name
                await self._freed.wait()


_SENDING: Mapping[str, type[Sent]] = {_ENGINE: Sent, _ORACLE: Informed, _BOTH: Filling}


def _catalog_of(mirrors: Mirrors, who: str) -> Catalog:
    if who == _ENGINE:
        return mirrors.competing
    return mirrors.single(mirrors.pace.at_once * (2 if who == _BOTH else 1))


async def _run(mirrors: Mirrors, case: str, who: str) -> Run:
    loop, run, catalog = asyncio.get_running_loop(), Run(), _catalog_of(mirrors, who)
    async with HttpTransport(catalog.sources) as http:
        transport = _SENDING[who](http, mirrors)
        async with Mediator(catalog, transport=transport) as mediator:
            mirrors.counted()
            transport.began = began = loop.time()
            async with mediator.answering(_CASES[case]) as answers:
                async for batch in answers:
                    run.rows.append((loop.time() - began, batch.num_rows))
                run.ended = loop.time() - began
                if not answers.report.complete:
                    raise RuntimeError(f"incomplete: {answers.report}")
    pace, counted = mirrors.pace, mirrors.counted()
    if run.answers != pace.lookups:
        raise RuntimeError(f"{pace.lookups} answers were to be found, and these were: {run.answers}")
    run.sent = tuple((at - began, name) for at, name in transport.sent)
    run.requests = {name: of["requests"] for name, of in counted.items()}
    run.requests["answered"] = sum(of["answered"] for of in counted.values())
    run.requests["wanted"] = pace.lookups if case == "index" else pace.lookups // pace.page
    return run


def _by_mirror(run: Run) -> dict[str, list[tuple[float, float]]]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for at, name in run.sent:
        points = curves.setdefault(name, [(0.0, 0.0)])
        points.append((at, points[-1][1] + 1.0))
    return curves


def _detail(pace: Pace, case: str, contests: Sequence[Contest], ours: Run) -> dict[str, Any]:
    return {
        "sql": _CASES[case],
        "stall_s": [round(at, 3) for at in pace.stall(case)],
        "seconds": {who: [round(contest[who].ended, 3) for contest in contests] for who in _SENDING},
        "requests": {who: contests[-1][who].requests for who in _SENDING},
        "answered_twice": [contest[_ENGINE].twice for contest in contests],
        "called_back": sum(ours.requests[name] for name in (_FAST, _SLOW)) - ours.requests["answered"],
        "taken": f"the median ratio of {len(contests)} rounds",
    }


def _serve(line: Connection, pace: Pace, case: str) -> None:
    endpoint = "s_x" if case == "index" else "t"
    fast = Behaviour(latency=Fixed(pace.fast), stalls=(pace.stall(case),))
    slow = Behaviour(latency=Fixed(pace.slow))
    rows = {"rows": pace.lookups, "distinct": pace.lookups, "page_size": pace.page}
    with (
        papers(**rows, behaviours={endpoint: fast}) as first,
        papers(**rows, behaviours={endpoint: slow}) as second,
    ):
        webs = {_FAST: first, _SLOW: second}
        line.send({name: web.url for name, web in webs.items()})
        while line.recv() != "end":
            counted = {}
            for name, web in webs.items():
                counters = web.counters[endpoint]
                gone = counters.abandoned + counters.open
                counted[name] = {"requests": counters.requests, "answered": counters.requests - gone}
                web.reset()
            line.send(counted)
