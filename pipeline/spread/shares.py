"""Scans that several askers share, as files of the spread: who asks for which of the pages, and what came of it.

`LOOKUP.json` says how a scan was dealt out; once for all, whoever is killed. `LOOKUP.STRAND.json` says that one of
those who have a part has done it: its rows are in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mediator.catalog.model import Relation
from mediator.catalog.wrapper import Request
from mediator.errors import Cause, Endless
from mediator.store import bindings
from pipeline.cells.envelopes import Broken, Lookup, Over
from pipeline.files import put_text
from pipeline.spread.folder import read_json
from pipeline.spread.requests import read, written
from pipeline.spread.strands import strand_of

_NEVER = float("inf")


@dataclass(frozen=True)
class Shared:
    """How a scan was dealt out by its owner, who had walked so far: to the page that named those of all parts."""

    lookup: Lookup
    owner: int
    walked: tuple[Request, ...]
    parts: Mapping[int, tuple[Request, ...]]  # by asker, the owner's among them

    @property
    def named_by(self) -> Request:
        return self.walked[-1]

    @cached_property
    def known(self) -> frozenset[Request]:
        """All pages that were known then."""
        return frozenset([*self.walked, *(request for part in self.parts.values() for request in part)])

    @property
    def others(self) -> set[int]:
        """Who has a part beside the owner."""
        return set(self.parts) - {self.owner}


@dataclass(frozen=True)
class Done:
    """What came of one part. `further` are pages that it has led to, by what tells them apart."""

    lookup: Lookup
    asker: int
    landings: tuple[int, ...]
    cells: tuple[int, ...]  # that have any of its rows
    further: tuple[str, ...]
    at: float = 0.0
    until: float = _NEVER
    cause: Cause | None = None  # where it failed
    pieces: int = 0  # of its asker's strand, with all rows in them


class Shares:
    def __init__(self, folder: Path, relations: Mapping[str, Relation]) -> None:
        self._folder, self._relations = folder, relations
        self._seen: set[str] = set()

    def put(self, shared: Shared) -> None:
        parts = {str(asker): list(map(written, part)) for asker, part in shared.parts.items()}
        said = {"owner": shared.owner, "walked": list(map(written, shared.walked)), "parts": parts}
        self._put(shared.lookup, "json", said)

    def put_done(self, done: Done) -> None:
        said = {
            "asker": done.asker,
            "landings": done.landings,
            "cells": done.cells,
            "further": done.further,
            "at": done.at,
            "until": None if done.until == _NEVER else done.until,  # which JSON has not
            "cause": None if done.cause is None else [done.cause.kind, done.cause.message],
            "pieces": done.pieces,
        }
        self._put(done.lookup, f"{strand_of(done.asker)}.json", said)

    def look(self) -> tuple[list[Shared], list[Done]]:
        """What has come since this was last asked. Reads files."""
        shared, done = [], []
        for path in sorted(self._folder.glob("[!.]*.json")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            said = read_json(path)
            if "parts" in said:
                shared.append(self._shared(said))
            else:
                done.append(self._done(said))
        return shared, done

    def _put(self, lookup: Lookup, ending: str, said: Mapping[str, Any]) -> None:
        (text,) = bindings.written(self._relations[lookup.relation].schema, lookup.bind_set, [lookup.binding])
        whose = [lookup.relation, lookup.method, lookup.bind_set, text]
        name = blake2b(json.dumps(whose).encode(), digest_size=12).hexdigest()
        put_text(self._folder / f"{name}.{ending}", json.dumps({"lookup": whose, **said}))

    def _lookup(self, said: Mapping[str, Any]) -> Lookup:
        relation, method, fields, text = said["lookup"]
        (binding,) = bindings.read(self._relations[relation].schema, tuple(fields), [text])
        return Lookup(relation, method, tuple(fields), binding)

    def _shared(self, said: Mapping[str, Any]) -> Shared:
        parts = {int(asker): tuple(map(read, part)) for asker, part in said["parts"].items()}
        return Shared(self._lookup(said), said["owner"], tuple(map(read, said["walked"])), parts)

    def _done(self, said: Mapping[str, Any]) -> Done:
        return Done(
            self._lookup(said),
            said["asker"],
            tuple(said["landings"]),
            tuple(said["cells"]),
            tuple(said["further"]),
            said["at"],
            _NEVER if said["until"] is None else said["until"],
            None if said["cause"] is None else Cause(*said["cause"]),
            said["pieces"],
        )


def together(
    shared: Shared, own: Over | Broken, further: Iterable[str], done: Iterable[Done], most: int
) -> Over | Broken:
    """What a scan comes to, of the owner's part of it and all others. It may have `most` pages."""
    others = sorted(done, key=lambda one: one.asker)
    causes = [own.cause] if isinstance(own, Broken) else []
    causes += [one.cause for one in others if one.cause is not None]
    found = [*further, *(one for part in others for one in part.further)]
    if not causes and len(set(found)) < len(found):
        causes = [Cause(Endless.kind, "its pages lead to the same one from several sides")]
    if not causes and len(shared.known) + len(found) > most:
        causes = [
            Cause(Endless.kind, f"it has more than {most:,} pages, which is as many as max_pages allows")
        ]
    if causes or isinstance(own, Broken):
        return Broken(shared.lookup, causes[0])
    landings = (*own.landings, *(number for part in others for number in part.landings))
    at, until = min(own.at, *(p.at for p in others)), min(own.until, *(p.until for p in others))
    return Over(shared.lookup, at, until, landings)
