"""What every kind of paging needs: where a parameter goes in a request, and whether a site turns its pages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote_plus, urlencode

import orjson
from pydantic import BaseModel, ConfigDict

from mediator.catalog.wrapper import Request
from mediator.errors import Endless, Miscounted
from wrappers.columns import ABSENT
from wrappers.parsed import Parsed
from wrappers.record_reader import steps

_SAME = 3  # pages with the same rows in a row: two of them may be chance
_LARGEST = 1 << 53  # of numbers that every site means the same by

Place = Literal["query", "form", "json"]


class SameRows(Endless):
    """A page that holds what others have brought: its rows are none."""


@dataclass(frozen=True, slots=True)
class Paged(Request):
    """A request that knows which page it asks for, and what the page before it held. Equal to those like it."""

    start: int = field(default=0, compare=False)  # the page's number, or the offset of its first row
    end: int = field(default=0, compare=False)  # where the part ends that this request began; 0: unknown
    rows: bytes = field(default=b"", compare=False)  # a digest of the rows of the page before
    same: int = field(default=1, compare=False)  # how many pages had these rows


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page that was read, and all that shows whether and where there is another."""

    relation: str
    request: Request
    parsed: Parsed
    headers: Mapping[str, str]
    most: int  # pages that a lookup may have
    address: str = ""  # where the request was led to

    def count(self, place: str, what: str) -> int:
        """The number at a place of the page. Raises `Miscounted` where there is none."""
        found = self.parsed.find(place)
        if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 17:
            return int(found)
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return min(found, _LARGEST)
        said = "nothing" if found is ABSENT else repr(found)[:60]
        raise Miscounted(f"{self.relation}: expected the number of {what} at {place!r}, found {said}")

    def onward(self, request: Request, what: str, start: int = 0, end: int = 0) -> Request:
        """The request for the page that comes after this one.

        Raises `SameRows` where the site has sent the same rows again and again, whatever it was asked for. Pages
        without rows say nothing of that: a site may hide what is on them.
        """
        here, rows = self.request, _digest(self.parsed)
        again = isinstance(here, Paged) and here.rows == rows and self.parsed.count > 0
        same = here.same + 1 if isinstance(here, Paged) and again else 1
        if same >= _SAME:
            raise SameRows(
                f"{self.relation}: {same} pages in a row hold the same rows: the site takes no notice of {what}"
            )
        return paged(request, start, end, rows, same)

    def beside(self, request: Request, start: int, end: int = 0) -> Request:
        """A request for one of the pages that may be asked together, once this first one is here."""
        return paged(request, start, end, _digest(self.parsed))

    def check_beside(self, param: str) -> None:
        """Raises `SameRows` where this page, asked beside others, is the first once more.

        A page of one row may be so by chance.
        """
        here = self.request
        if isinstance(here, Paged) and self.parsed.count > 1 and here.rows == _digest(self.parsed):
            raise SameRows(
                f"{self.relation}: a later page is the first once more: the site takes no notice of {param!r}"
            )


class Parameter(BaseModel):
    """A kind of paging that sets a parameter: in the query, the form, or the JSON body (where it is a path)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    place: Place = "query"

    def _with(self, request: Request, param: str, value: int | str) -> Request:
        if self.place == "json":
            return replace(request, body=_set(request.body, param, value))
        if self.place == "form":
            pairs = parse_qsl((request.body or b"").decode(), keep_blank_values=True)
            kept = [pair for pair in pairs if pair[0] != param]
            return replace(request, body=urlencode([*kept, (param, str(value))]).encode())
        others = tuple(pair for pair in request.query if pair[0] != param)
        return replace(request, path=_without(request.path, param), query=(*others, (param, str(value))))


def paged(request: Request, start: int, end: int = 0, rows: bytes = b"", same: int = 1) -> Paged:
    return Paged(
        request.path,
        request.query,
        request.method,
        request.headers,
        request.body,
        request.rooted,
        start,
        end,
        rows,
        same,
    )


def _without(path: str, param: str) -> str:
    """Of a query that the site wrote, all but this parameter."""
    place, written, query = path.partition("?")
    kept = [said for said in query.split("&") if unquote_plus(said.partition("=")[0]) != param]
    return f"{place}?{'&'.join(kept)}" if written and kept else place


def start_of(request: Request) -> int:
    """The number or offset that this request asks for."""
    assert isinstance(request, Paged), "every request of a paged lookup was made by its paging"
    return request.start


def _set(body: bytes | None, path: str, value: int | str) -> bytes:
    document: dict[str, Any] = orjson.loads(body) if body else {}
    part = document
    *above, last = steps(path)
    for step in above:
        part = part.setdefault(step, {})
    part[last] = value
    return orjson.dumps(document)


def _digest(parsed: Parsed) -> bytes:
    digest = hashlib.blake2b(parsed.count.to_bytes(8, "big"), digest_size=16)
    for column in parsed.columns:
        for buffer in column.buffers():
            digest.update(buffer if buffer is not None else b"-")
    return digest.digest()
