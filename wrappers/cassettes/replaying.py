"""A transport that answers from a cassette, and from nothing else."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from mediator.access.web.redaction import Redaction
from mediator.access.web.robots_text import ROBOTS_TXT
from mediator.catalog.model import Catalog, Mirror
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Refused
from wrappers.cassettes.cassette import Asked, Cassette
from wrappers.cassettes.scrubbing import scrubbed_request

_NO_SECRETS = Redaction()


class NotRecorded(Refused):
    """A request that is not on the cassette."""


class Replaying:
    """Several replies to one request are played in their order; the last of them for ever."""

    def __init__(self, cassette: Cassette, redaction: Redaction = _NO_SECRETS) -> None:
        self.unknown: list[str] = []  # what was asked and is not on it, in words
        self._cassette = cassette
        self._redaction = redaction
        self._played: Counter[Asked] = Counter()

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        if isinstance(request, Statement):
            said = f"{mirror.source} is a database, and cassettes hold what web sites answer: leave it out"
            self.unknown.append(said)
            raise NotRecorded(said)
        bases = [base] if (base := self._cassette.bases.get(mirror.source)) else []
        asked = scrubbed_request(Asked.of(mirror, request, bases), self._redaction)
        replies = self._cassette.exchanges.get(asked)
        if replies is None:
            said = self._missing(asked)
            self.unknown.append(said)
            raise NotRecorded(said)
        played = self._played[asked]
        self._played[asked] += 1
        return replies[min(played, len(replies) - 1)]

    def unused(self) -> list[str]:
        """Every recording that was never asked for, in words; a robots.txt, which nobody has to ask for, is none."""
        exchanges = sorted(self._cassette.exchanges)
        return [a.line() for a in exchanges if not self._played[a] and a.path != ROBOTS_TXT.path]

    def _missing(self, asked: Asked) -> str:
        said = f"not on the cassette: {asked.line()}"
        near = self._nearest(asked)
        if near is None:
            return f"{said}; it has nothing of {asked.source}: record it again"
        return f"{said}; nearest is {near.line()}, where {'; '.join(differences(asked, near))}"

    def _nearest(self, asked: Asked) -> Asked | None:
        """The one of the same source with the fewest differences, and of those the most alike."""
        known = [other for other in self._cassette.exchanges if other.source == asked.source]
        if not known:
            return None
        least = min(len(list(differences(asked, other))) for other in known)
        close = [other for other in known if len(list(differences(asked, other))) == least]
        alike = difflib.SequenceMatcher(b=asked.line())

        def likeness(other: Asked) -> float:
            alike.set_seq1(other.line())
            return alike.quick_ratio()

        return max(close, key=likeness)


def offline(catalog: Catalog) -> Catalog:
    """The same catalog where nobody logs in, asks for leave or has to wait: for what is played from a cassette."""
    sources = {
        name: replace(source, login=None, password=None, rate=None, daily=None, robots="ignore")
        for name, source in catalog.sources.items()
    }
    return replace(catalog, sources=sources)


def differences(asked: Asked, recorded: Asked) -> Iterator[str]:
    """What would have to be otherwise for the one to be the other."""
    for what in ("method", "path", "rooted"):
        mine, theirs = getattr(asked, what), getattr(recorded, what)
        if mine != theirs:
            yield f"the {what} is {theirs!r}, not {mine!r}"
    yield from _pairs("parameter", asked.query, recorded.query)
    yield from _pairs("header", asked.headers, recorded.headers)
    if asked.body != recorded.body:
        yield f"the body is {_short(recorded.body)}, not {_short(asked.body)}"


def _pairs(
    kind: str, asked: tuple[tuple[str, str], ...], recorded: tuple[tuple[str, str], ...]
) -> Iterator[str]:
    mine, theirs = _by_name(asked), _by_name(recorded)
    for name in [*mine, *(n for n in theirs if n not in mine)]:
        if mine.get(name) == theirs.get(name):
            continue
        if name not in theirs:
            yield f"there is no {kind} {name!r}"
        elif name not in mine:
            yield f"there is a {kind} {name!r} besides"
        else:
            yield f"the {kind} {name!r} is {_said(theirs[name])}, not {_said(mine[name])}"
    if mine == theirs and asked != recorded:
        yield f"the {kind}s are in another order"


def _by_name(pairs: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _said(values: list[str]) -> str:
    return ", ".join(repr(v[:60]) for v in values)


def _short(body: bytes) -> str:
    return repr(body[:80].decode("utf-8", "replace")) if body else "empty"
