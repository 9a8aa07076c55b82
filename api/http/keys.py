"""Keys: who may ask the server, for what, and how much.

A key is a random token, shown once when it is made. The file of keys holds the SHA-256 of each: a token is 256 random
bits, which nobody finds by trying, so a slow hash would protect nothing more. Writers replace the file as a whole, one
at a time; a server sees the change within a second.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import logging
import math
import os
import re
import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from api.exits import Mistake
from api.http.problems import Problem
from mediator.clock import Clock, monotonic, wall
from mediator.errors import CatalogError
from sources.yaml_file import YamlFile, read_yaml

Scope = Literal["query", "read", "metrics"]
SCOPES: tuple[Scope, ...] = ("query", "read", "metrics")

LOCAL = "local"  # the name of the key that everybody has where none is needed
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_PREFIX = "mk_"  # by which a token that lies about somewhere is known for what it is
_LOOK = 1.0  # seconds between two looks at the file, at least
_MINUTE = 60.0
_SOON = 1  # seconds after which to try again where nobody knows when a query will end
_HEADER = (
    "# Written by `mediator keys`, which keeps no comments. What stands here are hashes, not the keys.\n"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a key may use; None is any amount. `calls` to `bytes` are of one query."""

    concurrent: int | None = None
    per_minute: int | None = None
    calls: int | None = None
    seconds: float | None = None
    rows: int | None = None
    bytes: int | None = None

    def within(self, budget: Mapping[str, float | None]) -> dict[str, float | None]:
        """The largest budget for one query that is asked for and allowed."""
        allowed = {"calls": self.calls, "seconds": self.seconds, "rows": self.rows, "bytes": self.bytes}
        return {name: _smaller(budget.get(name), most) for name, most in allowed.items()}


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    digest: str = field(repr=False)
    scopes: frozenset[Scope]
    quota: Quota = Quota()
    expires: float | None = None  # seconds since 1970

    def check(self, scope: Scope) -> None:
        """Raises the problem that says so where the key is not for this."""
        if scope not in self.scopes:
            raise Problem(
                403,
                "forbidden",
                f"The key {self.name} is not for this: it lacks the scope {scope}",
                hint=f"use a key with the scope {scope}: mediator keys add NAME --scope {scope} --keys FILE",
            )


class Keyring:
    """The keys that count at this moment."""

    def __init__(
        self,
        keys: Mapping[str, Key],
        *,
        everybody: Key | None = None,
        file: _Watched | None = None,
        now: Clock = wall,
    ) -> None:
        self._keys = keys
        self._file = file
        self._now = now
        self.everybody = everybody  # whose rights all have; None where a key is needed

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        now: Clock = wall,
        clock: Clock = monotonic,
        complain: Callable[[str], None] = _log.warning,
    ) -> Keyring:
        """The keys of a file, and later those it has then. While it cannot be read, the keys stay as they were and
        `complain` is told once. Raises `Mistake` when it cannot be read now."""
        file = _Watched(path, clock, complain)
        return cls(read(path), file=file, now=now)

    @classmethod
    def open_to_all(cls) -> Keyring:
        """No key is needed, and nobody is held to a quota."""
        return cls({}, everybody=Key(LOCAL, "", frozenset(SCOPES)))

    def find(self, token: str) -> Key | None:
        """The key that this is the token of, unless it has expired."""
        if self.everybody is not None:
            return self.everybody
        self._look()
        digest = _digest(token)
        found: Key | None = None
        for key in self._keys.values():  # all of them: how long it takes says nothing about any
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None or (found.expires is not None and found.expires <= self._now()):
            return None
        return found

    def __len__(self) -> int:
        return len(self._keys)

    def _look(self) -> None:
        if self._file is not None and (keys := self._file.news()) is not None:
            self._keys = keys


class Meter:
    """Counts each key's queries, at once and in the last minute. For one thread: that of the server's loop."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._running: dict[str, int] = {}
        self._begun: dict[str, deque[float]] = {}

    @contextmanager
    def query(self, key: Key) -> Iterator[None]:
        """One query, for as long as it runs."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def acquire(self, key: Key) -> None:
        """A query begins. Raises the problem that says when to try again where the key has no room for it."""
        quota, now = key.quota, self._clock()
        if quota.concurrent is not None and self.running(key) >= quota.concurrent:
            raise _too_many(
                f"The key {key.name} has {quota.concurrent} queries at once, and as many are running",
                "wait for one to end, or cancel one: DELETE /v1/queries/{id}",
                _SOON,
            )
        if quota.per_minute is not None:
            self._count(key, quota.per_minute, now)
        self._running[key.name] = self.running(key) + 1

    def release(self, key: Key) -> None:
        """It has ended."""
        left = self.running(key) - 1
        if left > 0:
            self._running[key.name] = left
        else:
            self._running.pop(key.name, None)

    def running(self, key: Key) -> int:
        return self._running.get(key.name, 0)

    def _count(self, key: Key, most: int, now: float) -> None:
        begun = self._begun.setdefault(key.name, deque())
        while begun and begun[0] <= now - _MINUTE:
            begun.popleft()
        if len(begun) >= most:
            room_at = begun[-most] + _MINUTE
            raise _too_many(
                f"The key {key.name} has {most} queries a minute, and they are used up",
                "ask again later, or ask more in one query",
                max(1, math.ceil(room_at - now)),
            )
        begun.append(now)


def read(path: Path) -> dict[str, Key]:
    """The keys of a file, by name. Raises `Mistake` with the file, the line, the key and the field."""
    if not path.exists():
        raise Mistake(f"{path}: there is no such file: `mediator keys add NAME --keys {path}` begins one")
    try:
        return _keys(read_yaml(path))
    except CatalogError as error:
        # What reads YAML files reads declarations otherwise, and says what those begin with.
        raise Mistake(str(error).replace("'sources' and 'relations'", "'keys'")) from None


def add(
    path: Path, name: str, scopes: frozenset[Scope], quota: Quota | None = None, expires: float | None = None
) -> str:
    """Makes a key, and the file if there is none. Gives the token, which is not kept anywhere."""
    if not _NAME.fullmatch(name):
        raise Mistake(f"{name!r} is no name for a key: take up to 64 letters, digits, dots, dashes")
    if name == LOCAL:
        raise Mistake(f"{LOCAL!r} is whoever asks where no key is needed: take another name")
    token = _PREFIX + secrets.token_urlsafe(32)
    with _changing(path) as keys:
        if name in keys:
            raise Mistake(f"{path} has a key {name!r} already: remove that one first, or take another name")
        keys[name] = Key(name, _digest(token), scopes, quota or Quota(), expires)
    return token


def remove(path: Path, name: str) -> None:
    """Takes a key out of the file: from then on it opens nothing."""
    read(path)  # a file that is not there is not made
    with _changing(path) as keys:
        if name not in keys:
            raise Mistake(f"{path} has no key {name!r}; it has {', '.join(keys) or 'none'}")
        del keys[name]


class _Watched:
    """A file that may be replaced at any time."""

    def __init__(self, path: Path, clock: Clock, complain: Callable[[str], None]) -> None:
        self._path, self._clock, self._complain = path, clock, complain
        self._seen = self._state()  # before it is read: what is written meanwhile is news
        self._looked = clock()

    def news(self) -> dict[str, Key] | None:
        """Its keys, if they may be others than before."""
        now = self._clock()
        if now - self._looked < _LOOK:
            return None
        self._looked = now
        state = self._state()
        if state == self._seen:
            return None
        self._seen = state
        try:
            return read(self._path)
        except Mistake as error:
            self._complain(f"{error}. The keys stay as they were")
            return None

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size)


_Count = Annotated[int, Field(ge=1)]
_Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Quota(_Part):
    concurrent: _Count | None = None
    per_minute: _Count | None = None
    calls: _Count | None = None
    seconds: _Amount | None = None
    rows: _Count | None = None
    bytes: _Count | None = None


class _Key(_Part):
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    scopes: Annotated[list[Scope], Field(min_length=1)]
    quota: _Quota = _Quota()
    expires: datetime | None = None


class _File(_Part):
    keys: dict[Annotated[str, StringConstraints(pattern=f"^{_NAME.pattern}$")], _Key]


def _keys(file: YamlFile) -> dict[str, Key]:
    try:
        said = _File.model_validate(file.content)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        name = str(first["loc"][-1]) if first["loc"] else ""
        raise file.error(first["loc"], _complaint(first["type"], name, first["msg"])) from None
    keys: dict[str, Key] = {}
    for name, key in said.keys.items():
        if twin := next((k.name for k in keys.values() if k.digest == key.sha256), None):
            raise file.error(("keys", name, "sha256"), f"the same key as {twin!r}: remove one of them")
        quota = Quota(**key.quota.model_dump())
        keys[name] = Key(name, key.sha256, frozenset(key.scopes), quota, _seconds(key.expires))
    return keys


def _complaint(kind: str, name: str, message: str) -> str:
    match kind:
        case "extra_forbidden":
            return f"unknown field {name!r}: remove it"
        case "missing":
            return f"{name!r} is missing: add it"
        case _:
            return message


def _seconds(at: datetime | None) -> float | None:
    if at is None:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Key]]:
    """The keys as they are, which become what the caller makes of them. Others who change them wait."""
    path = path.resolve()  # where it is a link, what it leads to is replaced
    try:
        with _locked(path):
            keys = read(path) if path.exists() else {}
            yield keys
            _replace(path, keys)
    except OSError as error:
        raise Mistake(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """On a file beside it, as the file itself is replaced. It stays there: to remove it would let two in."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _replace(path: Path, keys: Mapping[str, Key]) -> None:
    """When it returns, the new keys outlive the machine; until then the old ones do."""
    content = yaml.safe_dump({"keys": {k.name: _written(k) for k in keys.values()}}, sort_keys=False)
    handle, unfinished = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_HEADER + content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _written(key: Key) -> dict[str, object]:
    quota = {name: most for name, most in asdict(key.quota).items() if most is not None}
    return {
        "sha256": key.digest,
        "scopes": [scope for scope in SCOPES if scope in key.scopes],
        **({"quota": quota} if quota else {}),
        **({"expires": datetime.fromtimestamp(key.expires, UTC)} if key.expires is not None else {}),
    }


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _smaller(asked: float | None, most: float | None) -> float | None:
    return most if asked is None else asked if most is None else min(asked, most)


def _too_many(detail: str, hint: str, after: int) -> Problem:
    return Problem(429, "too-many-queries", detail, hint=hint, headers={"Retry-After": str(after)})
