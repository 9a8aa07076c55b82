"""The papers' sources over real HTTP, in a process of their own: they take no time from whom they serve.

The paper's scan of R takes 59 s for 1,000 rows; figure 8 bends there because T's scan, the slower one, goes on. Here
all is forty times as fast: R takes 59 s / 40, T a hundred, a page is ten rows, and a lookup is a sleep of 20 ms. Two
lookups may be under way at once, so that the index, at 100 rows a second, is slower than either scan.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from fixtures import Behaviour, Fixed, paced, papers
from mediator.catalog.model import Catalog, Relation, Source
from sources import load_papers


@dataclass(frozen=True)
class Pace:
    """How fast the sites are; times in seconds."""

    rows: int = 1_000
    distinct: int = 250
    page: int = 10
    r_scan: float = 59 / 40
    t_scan: float = 100 / 40
    lookup: float = 0.02
    concurrency: int = 2  # lookups under way at once

    @property
    def pages(self) -> int:
        """Of R, and of T."""
        return -(-self.rows // self.page)


class Site:
    """`with Site(pace) as site`: serves until the block ends."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, self.pace), daemon=True)
        self._process.start()
        self.catalog = _catalog(self._line.recv(), self.pace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("end")
        self._process.join()

    def reset(self) -> None:
        """As if nothing had been asked yet."""
        self._asked("reset")

    def requests(self) -> dict[str, int]:
        """How many requests each endpoint has had: r, t, s_x, s_y, t_key."""
        counted: dict[str, int] = self._asked("requests")
        return counted

    def _asked(self, what: str) -> Any:
        self._line.send(what)
        return self._line.recv()


def without(catalog: Catalog, relation: str, method: str) -> Catalog:
    """The catalog in which a relation cannot be asked in one of its ways."""
    known = catalog.relations[relation]
    left = tuple(m for m in known.methods if m.name != method)
    return Catalog({**catalog.relations, relation: replace(known, methods=left)}, catalog.sources)


def _catalog(url: str, pace: Pace) -> Catalog:
    """The built-in one, but for the indexes: each is a source of its own, as in the paper, with its own concurrency."""
    built_in = load_papers(url)
    relations, sources = {}, dict(built_in.sources)
    for name, relation in built_in.relations.items():
        relations[name] = _with_sites_of_their_own(relation, sources, pace.concurrency)
    return Catalog(relations, sources)


def _with_sites_of_their_own(relation: Relation, sources: dict[str, Source], concurrency: int) -> Relation:
    methods = []
    for method in relation.methods:
        if method.kind == "index":
            (mirror,) = method.mirrors
            site = replace(
                sources[mirror.source], name=f"{mirror.source}_{method.name}", concurrency=concurrency
            )
            sources[site.name] = site
            method = replace(method, mirrors=(replace(mirror, source=site.name),))
        methods.append(method)
    return replace(relation, methods=tuple(methods))


def _serve(line: Connection, pace: Pace) -> None:
    slow = Behaviour(latency=Fixed(pace.lookup))
    behaviours = {
        "r": paced(pace.rows / pace.r_scan, pace.page),
        "t": paced(pace.rows / pace.t_scan, pace.page),
        "s_x": slow,
        "s_y": slow,
        "t_key": slow,
    }
    with papers(pace.rows, behaviours=behaviours, page_size=pace.page, distinct=pace.distinct) as web:
        line.send(web.url)
        while (what := line.recv()) != "end":
            if what == "reset":
                web.reset()
            line.send({name: counters.requests for name, counters in web.counters.items()})
