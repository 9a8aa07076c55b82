"""The pages of one trip at one mirror: in a chain, or side by side where a page names several."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import fields
from urllib.parse import urlsplit

from mediator.access.promises import cut_short
from mediator.access.trip import Trip
from mediator.access.web.stretches import Landed
from mediator.catalog.wrapper import Page, Request
from mediator.errors import Endless, SourceError
from mediator.flow.events import Landing

Fetch = Callable[[Request], Awaitable[Page]]

_EVERY = frozenset(f.name for f in fields(Request))


class Pages:
    """Asks for every page once and lands its rows as soon as they are read.

    Raises `Endless` when there are more than allowed, or when one leads back to another; `CutShort` as soon as so many
    rows have come that there may be others which never do.
    """

    def __init__(
        self, trip: Trip, first: Request, fetch: Fetch, width: int, landed: Landed, base: str
    ) -> None:
        self._trip = trip
        self._fetch = fetch
        self._width = width  # pages that are under way at once, at most
        self._first = first
        self._base = base  # of the mirror
        self._made = {_sent(first, base)}
        self._todo: deque[tuple[int, Request]] = deque()  # each with its place among the pages
        self._workers = 0
        self._landed = landed  # of the first page
        self.rows = landed.rows

    @property
    def count(self) -> int:
        """Of the pages that are known."""
        return len(self._made)

    async def land_all(self, first: Page) -> None:
        """Lands the first page, and all those that it and they lead to."""
        if not self._landed.count:
            self._trip.begin()
        self._land(0, self._first, first)
        while len(self._todo) == 1:
            await self._next()
        if self._todo:
            await self._side_by_side()

    async def _side_by_side(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._staff(group)
        except* SourceError as errors:
            failed = _first_of(errors)
        else:
            return
        raise failed

    def _staff(self, group: asyncio.TaskGroup) -> None:
        for _ in range(min(len(self._todo), self._width - self._workers)):
            self._workers += 1
            group.create_task(self._work(group))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while self._todo:
            await self._next()
            self._staff(group)
        self._workers -= 1

    async def _next(self) -> None:
        place, request = self._todo.popleft()
        self._land(place, request, await self._fetch(request))

    def _land(self, place: int, request: Request, page: Page) -> None:
        """The rows go out even when the page leads astray: they were found."""
        self.rows += page.rows.num_rows
        line = self._trip.line
        if page.rows.num_rows or line.method.declared.order:
            stretch = self._landed.count if place == 0 else 0
            self._trip.land(Landing(page.rows, place=place, page=request, stretch=stretch))
        if (cut := cut_short(line.method, line.bind_set, self.rows)) is not None:
            raise cut
        if page.astray is not None:
            raise page.astray
        for following in page.then:
            self._note(following)

    def _note(self, request: Request) -> None:
        most = self._trip.line.method.declared.max_pages
        sent = _sent(request, self._base)
        if sent in self._made:
            place = request.path.partition("?")[0]
            raise Endless(f"its pages lead back to one that was read already: {request.method} {place}")
        if len(self._made) >= most:
            raise Endless(f"it has more than {most:,} pages, which is as many as max_pages allows")
        self._todo.append((len(self._made), request))
        self._made.add(sent)


def _sent(request: Request, base: str) -> tuple[object, ...]:
    """What the site gets to see: requests that only their wrapper tells apart, or that are written differently, ask for
    the same page."""
    own = tuple(getattr(request, f.name) for f in fields(request) if f.compare and f.name not in _EVERY)
    return request.method, _address(request.url(base)), request.pairs, request.headers, request.body, own


def _address(url: str) -> object:
    try:
        parts = urlsplit(url)
    except ValueError:  # whoever sends it will say so
        return url
    return parts.scheme, parts.netloc.lower(), parts.path or "/"


def _first_of(errors: BaseExceptionGroup[SourceError]) -> SourceError:
    error = errors.exceptions[0]
    return _first_of(error) if isinstance(error, BaseExceptionGroup) else error
