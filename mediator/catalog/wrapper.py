"""What a wrapper is to the engine: it writes requests and reads replies, and does no I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

# The values of one lookup, in the order of its bind set. Plain Python values, never None.
Binding = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, relative to a mirror's base address."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one reply, in the relation's schema, and what is still to be asked.

    Several requests in `then` may be asked side by side; one is the next link of a chain.
    """

    rows: pa.RecordBatch
    then: tuple[Request, ...] = field(default=())


class Wrapper(Protocol):
    """A site's knowledge of itself. Raises a `SourceError` from `read` for what it cannot make sense of."""

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        """The first request for these bindings (one empty binding for a scan)."""
        ...

    def read(self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply) -> Page:
        """The rows of a reply with a 2xx status."""
        ...
