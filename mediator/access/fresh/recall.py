"""One request that may have been made before: asked on condition that something is new, where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import pyarrow as pa

from mediator.access.fresh.remembered import Memory, Remembered
from mediator.access.fresh.validators import conditional, validators_of
from mediator.access.method import Method
from mediator.catalog.model import BindSet, Mirror
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.errors import Unreadable

NOT_MODIFIED = 304
# What a 304 leaves out is as it was. `Date` and `Age` are of the reply that has them alone.
_LASTING = ("cache-control", "expires", "etag", "last-modified", "vary", "link")


class Recall:
    """Of one attempt. What it knows it holds on to, so that it may be forgotten by others meanwhile.

    A 304 that answers a condition of ours means what HTTP says it does, whatever the rules of the site's wrapper say
    of other replies: there is no body that they could look at.
    """

    def __init__(
        self,
        memory: Memory,
        mirror: Mirror,
        method: Method,
        bind_set: BindSet,
        bindings: tuple[Binding, ...],
        request: Request,
    ) -> None:
        self._memory = memory
        self._key = (mirror, method.name, bind_set, bindings, request)
        self._asked = request
        # Where the site says "no rows" by a 304, nobody could tell what it means.
        self._possible = conditional(request) and NOT_MODIFIED not in method.wrapper.empty_statuses
        self._carried = _unsent(request)
        known = memory.get(self._key) if self._possible else None
        self._parts: list[pa.RecordBatch] = []
        # Equal requests are read otherwise where they know something else, such as how many pages there are.
        self._known = known if known is not None and _same(known.carried, self._carried) else None

    @property
    def request(self) -> Request:
        """What to send."""
        return self._known.validators.condition(self._asked) if self._known else self._asked

    def confirmed(self, reply: Reply) -> Page | None:
        """The page that is still as it was, where the reply says so."""
        if reply.status != NOT_MODIFIED or self._known is None:
            return None
        headers = _small(reply.headers)
        # Where a header leads to the next page, it is a part of what was read.
        led_elsewhere = headers.get("link", "") not in ("", self._known.headers.get("link", ""))
        if self._known.validators.contradicted(headers) or led_elsewhere:
            self._memory.forget(self._key)
            raise Unreadable(
                "304 Not Modified, but of another version than the one that it was asked about", again=True
            )
        return self._known.page

    def part(self, rows: pa.RecordBatch) -> None:
        """What came before the page that is to be learnt, of the same reply."""
        self._parts.append(rows)
        if sum(part.get_total_buffer_size() for part in self._parts) > self._memory.largest:
            self._possible = False
            self._parts.clear()

    def learn(self, reply: Reply, page: Page) -> Mapping[str, str]:
        """Remembers what the reply was read as, if it may be. Its headers, with those that a 304 leaves out."""
        headers = _small(reply.headers)
        status = reply.status
        if status == NOT_MODIFIED and self._known is not None:
            status, headers = 200, {**self._known.headers, **headers}
        if not self._possible:
            return headers
        # Whoever asks once more after a failure wants to see for himself.
        validators = validators_of(status, headers) if page.astray is None else None
        if validators is None and self._known is not None:
            self._memory.forget(self._key)
        elif validators is not None:
            if self._parts:
                page = replace(page, rows=pa.concat_batches([*self._parts, page.rows]))
            lasting = {name: headers[name] for name in _LASTING if name in headers}
            self._memory.put(self._key, Remembered(validators, page, lasting, self._carried))
        return headers


def _unsent(request: Request) -> tuple[object, ...]:
    """What it knows by which it is not told apart from others."""
    return tuple(getattr(request, f.name) for f in fields(request) if not f.compare)


def _same(known: tuple[object, ...], carried: tuple[object, ...]) -> bool:
    """Some of it is an author's own, and may not know what it equals."""
    try:
        return bool(known == carried)
    except Exception:
        return False


def _small(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
