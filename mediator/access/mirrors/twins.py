"""Mirrors that show the same pages, found out during a walk: any of them may then be asked for any of its pages.

Two mirrors hold the same rows, but need not show them in the same order; a page in the middle of one would then miss
rows that another has shown. So before a mirror goes on where another began, it has to show a page that the other has
shown, row by row the same. The page that came last is taken: up to there nothing was put in or left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mediator.access.mirrors.runner import LeftAlone, Runner
from mediator.catalog.wrapper import Page, Request
from mediator.errors import SourceError, Unreadable

Fetch = Callable[[Runner, Request], Awaitable[Page]]


class NotAlike(Unreadable):
    """It shows another page than the mirror that is walked: what it has cannot be put together with the rest."""


class Twins:
    """Of one walk. `leader` is the mirror that began it."""

    def __init__(self, leader: Runner, first: Request, shown: Page, fetch: Fetch) -> None:
        self.leader = leader
        self._shown = first, shown
        self._fetch = fetch
        self._alike: dict[Runner, bool] = {leader: True}
        self._looking = asyncio.Lock()

    @property
    def known(self) -> list[Runner]:
        """Who may be asked for a page."""
        return [runner for runner, alike in self._alike.items() if alike]

    def promising(self, runner: Runner) -> bool:
        """Whether it may turn out to be one, if it is not known to be."""
        return self._alike.get(runner, True)

    async def page(self, runner: Runner, request: Request) -> Page:
        """From a mirror that is found to be a twin first. Raises `NotAlike`, or whatever is wrong with it."""
        if "://" in request.path.partition("?")[0]:
            # A whole address belongs to the mirror that gave it, whoever asks.
            self._alike.update({other: other is self.leader for other in [*self._alike, runner]})
        if runner in self._alike:
            page = await self._fetched(runner, request) if self._alike[runner] else None
        else:
            page = await self._tried(runner, request)
        if page is None:
            raise NotAlike(f"it does not show the pages that {self.leader.mirror.source} does")
        if isinstance(page, SourceError):
            raise page
        if runner is self.leader:
            self._shown = request, page
        return page

    async def _tried(self, runner: Runner, request: Request) -> Page | SourceError | None:
        """The page is asked for while it is found out whether it counts: there is no time to lose."""
        async with asyncio.TaskGroup() as group:
            look = group.create_task(self._looked(runner))
            page = await self._fetched(runner, request)
        alike = look.result()
        if isinstance(alike, LeftAlone):
            return alike
        return page if alike else None

    async def _fetched(self, runner: Runner, request: Request) -> Page | SourceError:
        try:
            return await self._fetch(runner, request)
        except SourceError as error:
            return error

    async def _looked(self, runner: Runner) -> bool | LeftAlone:
        """Once for all who want to know; to be found out later, where it is to be left alone for now."""
        async with self._looking:
            if runner not in self._alike:
                try:
                    self._alike[runner] = await self._same(runner)
                except LeftAlone as error:
                    return error
        return self._alike[runner]

    async def _same(self, runner: Runner) -> bool:
        request, shown = self._shown
        try:
            page = await self._fetch(runner, request)
        except LeftAlone:
            raise
        except SourceError:
            return False
        return bool(page.astray is None and page.then == shown.then and page.rows.equals(shown.rows))
