"""Competing access methods: two mirrors, one of which stalls for half the run.

The SteM paper states, and does not show, that access modules which compete for one relation share its SteM, so that
almost no work is done twice, and that the eddy goes with whichever is better at the moment. Here an index has two
mirrors, and, as a second case, a scan. One of each is twice as fast, and stalls for half the run: what is asked of it
then is answered when it is over.

The oracle is the same engine with one mirror, whose requests are sent to the fast one while it is well and to the
other while it stalls; it knows when that is, and sends nothing that the stall would catch. The engine itself knows
neither; it may use both at once, where its source's limit keeps it waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

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
    """Figures are of the round with the median ratio; `redundant` is the worst of all rounds."""
    result = Result("stems-competition")
    ratios, redundant = {}, {}
    for case in _CASES:
        with Mirrors(pace, case) as mirrors:
            await _engine(mirrors, case)  # kernels and caches are warm from here on
            pairs = [(await _engine(mirrors, case), await _oracle(mirrors, case)) for _ in range(rounds)]
        ratio = median(ours.ended / oracle.ended for ours, oracle in pairs)
        ours, oracle = min(pairs, key=lambda pair: abs(pair[0].ended / pair[1].ended - ratio))
        twice = [run.requests["answered"] - run.requests["wanted"] for run, _ in pairs]
        ratios[case], redundant[case] = ratio, max(twice) / ours.requests["wanted"]
        result.figures[f"{case}_vs_oracle"] = ratio
        result.figures[f"{case}_redundant"] = redundant[case]
        result.curves[case] = {"ours": ours, "oracle": oracle}
        result.detail[case] = _detail(pace, case, pairs, ours)
    result.figures = {
        "vs_oracle": max(ratios.values()),
        "redundant": max(redundant.values()),
        **result.figures,
    }
    result.detail["setting"] = (
        f"real HTTP on loopback; {pace.lookups} lookups of {1e3 * pace.fast:g} ms at one mirror and"
        f" {1e3 * pace.slow:g} ms at the other, {pace.at_once} at once at each; {pace.lookups // pace.page} pages"
        " for the scan; the fast one stalls for the half in the middle"
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
        return self._catalog([_FAST, _SLOW])

    @property
    def single(self) -> Catalog:
        """With one mirror, whose requests an oracle sends on."""
        return self._catalog([_FAST])

    def _catalog(self, names: list[str]) -> Catalog:
        built_in = load_papers(self.urls[_FAST])
        relations, sources = dict(built_in.relations), dict(built_in.sources)
        kept = {"s": "by_x", "t": "scan"}
        for name in names:
            source = replace(built_in.sources["site_s"], name=name, concurrency=self.pace.at_once)
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
    """A transport that notes who was asked when. `informed`: it sends each request to the mirror that is well."""

    def __init__(self, transport: HttpTransport, mirrors: Mirrors, informed: bool) -> None:
        self.sent: list[tuple[float, str]] = []
        self._transport = transport
        self._mirrors = mirrors
        self._informed = informed
        self._began: float | None = None

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        if mirror.source == _FAST and self._informed:
            begins, ends = self._mirrors.pace.stall(self._mirrors.case)
            if begins - 2 * self._mirrors.pace.fast <= now - self._began < ends:
                urls = self._mirrors.urls
                mirror = Mirror(_FAST, mirror.base.replace(urls[_FAST], urls[_SLOW]))
                self.sent.append((now, _SLOW))
                return await self._transport.send(mirror, request)
        if mirror.source in (_FAST, _SLOW):
            self.sent.append((now, mirror.source))
        return await self._transport.send(mirror, request)


async def _engine(mirrors: Mirrors, case: str) -> Run:
    return await _run(mirrors, mirrors.competing, case, informed=False)


async def _oracle(mirrors: Mirrors, case: str) -> Run:
    return await _run(mirrors, mirrors.single, case, informed=True)


async def _run(mirrors: Mirrors, catalog: Catalog, case: str, informed: bool) -> Run:
    loop, run = asyncio.get_running_loop(), Run()
    async with HttpTransport(catalog.sources) as http:
        transport = Sent(http, mirrors, informed)
        async with Mediator(catalog, transport=transport) as mediator:
            mirrors.counted()
            began = loop.time()
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


def _detail(pace: Pace, case: str, pairs: list[tuple[Run, Run]], ours: Run) -> dict[str, Any]:
    return {
        "sql": _CASES[case],
        "stall_s": [round(at, 3) for at in pace.stall(case)],
        "seconds": [round(run.ended, 3) for run, _ in pairs],
        "oracle_s": [round(run.ended, 3) for _, run in pairs],
        "requests": {name: ours.requests[name] for name in (_FAST, _SLOW)},
        "answered_twice": [run.requests["answered"] - run.requests["wanted"] for run, _ in pairs],
        "called_back": sum(ours.requests[name] for name in (_FAST, _SLOW)) - ours.requests["answered"],
        "taken": f"the median ratio of {len(pairs)} rounds",
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
