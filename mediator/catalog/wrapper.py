"""What a wrapper is to the engine: it writes requests and reads replies, and does no I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable
from urllib.parse import parse_qsl, urljoin

import pyarrow as pa

from mediator.errors import SourceError

# The values of one lookup, in the order of its bind set. Plain Python values, never None.
Binding = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, relative to a mirror's base address.

    The path is percent-encoded, the query is not. A link that the site gave may be a whole address, and may
    then point to another host: whoever sends it decides whether to follow. A path may end in a query as the site
    wrote it, which is sent as it is.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    rooted: bool = False  # the path starts at the root of the base's host, not at the base

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All that the query says, to be read and compared: bytes that are no UTF-8 are escaped."""
        _, written, said = self.path.partition("#")[0].partition("?")
        pairs = parse_qsl(said, keep_blank_values=True, errors="backslashreplace") if written else ()
        return (*pairs, *self.query)

    def url(self, base: str) -> str:
        """Where this goes, without the query that is not in the path."""
        if self.path.startswith(("http://", "https://")):
            return self.path
        if self.rooted:
            return urljoin(base, self.path)
        # Between the two is always a slash: without it a path could add to the name of the host.
        return f"{base.rstrip('/')}/{self.path.removeprefix('/')}"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    # Path and query of the address that it came from in the end, where the request was led on.
    address: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one reply, in the relation's schema, and what is still to be asked.

    Several requests in `then` may be asked side by side; one is the next link of a chain. `astray` is why nobody can
    tell what is still to be asked: the rows were found, and the lookup fails with it.
    """

    rows: pa.RecordBatch
    then: tuple[Request, ...] = field(default=())
    astray: SourceError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a reply means, whatever its status: by what this site is known to say. `said` is the reason in words."""

    means: Literal["retry", "empty", "fail", "rate_limited"]
    said: str
    after: float | None = None  # seconds to wait, where the reply has no Retry-After


@runtime_checkable
class Interprets(Protocol):
    """A wrapper that knows more of its site's replies than their status tells."""

    def meaning(self, reply: Reply) -> Meaning | None:
        """The meaning of a reply of any status; None where the status says all."""
        ...


class Cutter(Protocol):
    """Where a reply that is still on its way may be cut: each stretch of it is whole records, and is read by itself.

    `head` is what of the first stretch belongs to no record and is needed with the records of every other; it is empty
    for the first.
    """

    def whole(self, part: bytes, head: bytes) -> int | None:
        """How many bytes of this part, which begins as a stretch does, are whole records: 0 where more has to come to
        know, and None where all that is left has to be read as a whole."""
        ...

    def head(self, first: bytes) -> bytes:
        """That of the first stretch."""
        ...

    def reply(self, stretch: bytes, head: bytes, last: bool) -> bytes:
        """A stretch as a reply of its own. It is no less wrong than in its place."""
        ...


@runtime_checkable
class Cuts(Protocol):
    """A wrapper that can read a long reply stretch by stretch."""

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        """How a reply with these headers is cut; None where it is read as a whole."""
        ...


@runtime_checkable
class MayBeSlow(Protocol):
    """A wrapper that is somebody's code, which may take its time or never end: only its own lookup may wait for it."""

    @property
    def may_be_slow(self) -> bool: ...


class Wrapper(Protocol):
    """A site's knowledge of itself. Raises a `SourceError` from `read` for what it cannot make sense of."""

    @property
    def empty_statuses(self) -> frozenset[int]:
        """Statuses outside 2xx by which this site says "no rows", such as 404."""
        ...

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        """The first request for these bindings (one empty binding for a scan).

        Raises `Refused` for a binding that cannot be put to this site.
        """
        ...

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        """The rows of a reply with a 2xx status, or with one of `empty_statuses` or that means "empty" (then none)."""
        ...
