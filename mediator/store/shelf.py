"""The shelf: replies of walks that are not at their end, so that whoever goes on need not ask for them again. Blocks.

A scan of a thousand pages is covered when its last page has come, and not before. Each reply lies here from the moment
when it was read, in a file of its own that appears when it is whole; it goes when the walk's rows are in a store. What
is damaged, or too old, counts as not there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote, unquote

from mediator.catalog.model import BindSet, Mirror, Relation
from mediator.catalog.wrapper import Binding, Reply, Request
from mediator.clock import Clock, wall
from mediator.store.records import Covered

_FORMAT = 1
_FORGOTTEN = 30 * 86_400.0  # seconds
_UNSAID = frozenset({"set-cookie", "authorization", "www-authenticate", "proxy-authenticate"})


@dataclass(frozen=True, slots=True)
class Walked:
    """What is walked through, page by page: a scan, or the lookups that one request carries."""

    relation: str
    method: str
    bind_set: BindSet
    bindings: Sequence[Binding]

    @property
    def digest(self) -> str:
        return _digest(self.relation, self.method, self.bind_set, tuple(self.bindings))


@dataclass(frozen=True, slots=True)
class Shelved:
    """A reply, when it was asked for, and until when its site vouches for it: seconds of the wall's clock."""

    reply: Reply
    at: float
    until: float


class Shelf:
    """A folder of replies. Several processes may use it at once, each for other pages."""

    def __init__(self, folder: Path, max_age: float = float("inf"), now: Clock = wall) -> None:
        self._folder = folder
        self._max_age = max_age  # seconds for which a reply may lie here
        self.now = now

    def get(self, walked: Walked, mirror: Mirror, request: Request, fresh_for: float) -> Shelved | None:
        """The reply to this request of that mirror, if it is there and not older than it may be."""
        found = _read(self._path(walked, mirror, request))
        if found is None:
            return None
        now = self.now()
        young = now - found.at <= min(self._max_age, fresh_for)
        return found if young and now <= found.until else None

    def put(self, walked: Walked, mirror: Mirror, request: Request, shelved: Shelved) -> None:
        """When it returns, the reply outlives the process and the machine."""
        path = self._path(walked, mirror, request)
        path.parent.mkdir(parents=True, exist_ok=True)
        reply = shelved.reply
        head = {
            "format": _FORMAT,
            "at": shelved.at,
            "until": None if shelved.until == float("inf") else shelved.until,
            "status": reply.status,
            "address": reply.address,
            "headers": {k: v for k, v in reply.headers.items() if k.lower() not in _UNSAID},
            "body": blake2b(reply.body, digest_size=16).hexdigest(),
        }
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        with unfinished.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(reply.body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        _settle(path.parent)

    def began(self, walked: Walked) -> bool:
        """Whether there is anything of this walk."""
        return self._walk(walked).is_dir()

    def count(self, relation: str) -> int:
        """Replies of one relation that are there."""
        return sum(1 for _ in self._of(relation).glob("*/*.page"))

    def clear(self, walked: Walked) -> None:
        """The walk's rows are in the store."""
        shutil.rmtree(self._walk(walked), ignore_errors=True)

    def tidy(self, relation: Relation, covered: Sequence[Covered]) -> None:
        """Walks that are covered go, whoever has walked them."""
        there = {path.name for path in self._of(relation.name).glob("*")}
        if there and not any(not c.bind_set for c in covered):
            walks = (
                Walked(relation.name, m.name, c.bind_set, (c.binding,))
                for m in relation.methods
                for c in covered
            )
            there &= {walked.digest for walked in walks}
        for name in there:
            shutil.rmtree(self._of(relation.name) / name, ignore_errors=True)
        for folder in (self._of(relation.name), self._folder):
            with suppress(OSError):  # there is something in it
                folder.rmdir()

    def relations(self) -> list[str]:
        """Of which there is anything."""
        return [unquote(path.name) for path in self._folder.iterdir()] if self._folder.is_dir() else []

    def sweep(self) -> None:
        """Remove what a process that was killed had not finished, and what nobody has come back for. For who has the
        shelf to himself."""
        for path in self._folder.glob("*/*/*.unfinished"):
            path.unlink(missing_ok=True)
        for path in self._folder.glob("*/*"):
            if self.now() - path.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(path, ignore_errors=True)

    def _of(self, relation: str) -> Path:
        return self._folder / quote(relation, safe="")

    def _walk(self, walked: Walked) -> Path:
        return self._of(walked.relation) / walked.digest

    def _path(self, walked: Walked, mirror: Mirror, request: Request) -> Path:
        said = (request.method, request.path, request.query, request.headers, request.body, request.rooted)
        return self._walk(walked) / f"{_digest(mirror.source, mirror.base, said)}.page"


def _read(path: Path) -> Shelved | None:
    try:
        first, body = path.read_bytes().split(b"\n", 1)
        head = json.loads(first)
        if head["format"] != _FORMAT or head["body"] != blake2b(body, digest_size=16).hexdigest():
            raise ValueError("not what was written")
        until = float("inf") if head["until"] is None else float(head["until"])
        reply = Reply(int(head["status"]), dict(head["headers"]), body, address=str(head.get("address", "")))
        return Shelved(reply, float(head["at"]), until)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        with suppress(OSError):
            path.unlink()
        return None


def _digest(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _settle(folder: Path) -> None:
    """A renamed file is found again after a power cut only if its folder is on the disk too."""
    for path in (folder, folder.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
