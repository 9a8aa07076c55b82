"""Access: one for a process, shared by all its queries. Owns every task, every connection and every queue."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import count
from random import Random
from types import TracebackType
from typing import Self

from yarl import URL

from mediator.access.databases.database import DatabaseTransport
from mediator.access.desk import Desk
from mediator.access.fetch import Fetcher
from mediator.access.lane import Flight
from mediator.access.limits.backoff import Backoff, Calendar
from mediator.access.limits.daily import Book, Daily
from mediator.access.limits.gate import Gate
from mediator.access.line import Line
from mediator.access.method import Method
from mediator.access.mirrors.race import Race
from mediator.access.mirrors.runner import Runner, Slot
from mediator.access.queue import Rank
from mediator.access.reading import Unsuitable
from mediator.access.statistics import SourceStatistics, Statistics, gathered, of_sources
from mediator.access.ticket import Deliver, Ticket
from mediator.access.trip import Trip
from mediator.access.visit import Visit
from mediator.access.walk import Walk
from mediator.access.web.redaction import Redaction, Redacts
from mediator.access.web.robots import RobotsPolicy
from mediator.access.web.transport import HttpTransport, Transport
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.measured import Measurements, Place
from mediator.catalog.model import AccessMethod, BindSet, Catalog, Mirror, Source
from mediator.catalog.wrapper import Request
from mediator.errors import Cause, SourceError, Spent
from mediator.flow.events import Ask
from mediator.store.shelf import Shelf

_NOWHERE: Mapping[str, Ceilings] = {}
_log = logging.getLogger(__name__)


def _today() -> datetime:
    return datetime.now(UTC)


class Access:
    """Scan and index access modules for all queries of a process.

    `async with Access(catalog) as access`, then one `access.visit(deliver)` per query. Leaving the block
    calls back whatever is under way and closes every connection.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        transport: Transport | None = None,
        random: Random | None = None,
        today: Calendar = _today,
        shelf: Shelf | None = None,
    ) -> None:
        # Of a transport that logs in by itself, or of the one that is made here.
        self.redaction = transport.redaction if isinstance(transport, Redacts) else Redaction()
        self._catalog = catalog
        self._transport = transport
        self._backoff = Backoff(random or Random())
        self._today = today
        self._shelf = shelf
        self._order = count()
        self._methods: dict[tuple[str, str], Method] = {}
        self._lines: dict[tuple[str, str, BindSet], Line] = {}
        self._visits: dict[Visit, None] = {}
        self._trips: dict[Trip, None] = {}
        self._open = False
        self._gates: dict[str, Gate] = {}
        self._book: Book | None = None
        self.measurements = Measurements()  # by this process, and by those before it

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._desk = Desk(self._loop)
        self._gates = {name: self._gate(source) for name, source in self._catalog.sources.items()}
        self._stack = AsyncExitStack()
        if self._transport is None:
            web = HttpTransport(
                self._catalog.sources,
                follow=self._follow,
                redaction=self.redaction,
                token_asked=lambda source: self._gates[source].token_asked(),
            )
            self._transport = await self._stack.enter_async_context(web)
        databases = DatabaseTransport(self._catalog.sources, self._transport, self.redaction)
        self._transport = await self._stack.enter_async_context(databases)
        self._robots = RobotsPolicy(self._transport, self._backoff, self._today)
        self._fetcher = Fetcher(self._transport, self._backoff, self._today, self._robots, shelf=self._shelf)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        for visit in tuple(self._visits):
            visit.close()
        self._desk.close()
        for trip in tuple(self._trips):
            trip.call_back()
        async with self._stack:
            # What went wrong in the block goes on as it is; the group only waits for those called back.
            await self._group.__aexit__(None, None, None)
        for gate in self._gates.values():
            if gate.daily is not None:
                await asyncio.to_thread(gate.daily.settle)

    def recall(self, measurements: Measurements, book: Book) -> None:
        """What earlier processes measured and spent. Before it is opened."""
        self.measurements = measurements
        self._book = book

    def visit(
        self, deliver: Deliver, ceilings: Ceilings = NO_CEILINGS, at: Mapping[str, Ceilings] = _NOWHERE
    ) -> Visit:
        """A door for one query. Its events go to `deliver`, in order; to be closed when the query ends.

        Its ceilings are those of all that it sends, and of what it sends `at` single sources; it never gets more than
        a source declares.
        """
        visit = Visit(
            deliver,
            ceilings,
            self._catalog.ceilings(at),
            self._line_for,
            self._admitted,
            lambda line: self._desk.stir(line),
            self._left,
        )
        self._visits[visit] = None
        return visit

    def statistics(self) -> Statistics:
        """What every source, method and mirror has done and is doing."""
        return gathered(self._gates.values(), tuple(self._methods.values()), tuple(self._lines.values()))

    def sources(self, names: Collection[str]) -> tuple[SourceStatistics, ...]:
        """What these sources have done and are doing."""
        methods, lines = tuple(self._methods.values()), tuple(self._lines.values())
        return of_sources(names, self._gates.values(), methods, lines)

    def concurrency(self, method: AccessMethod) -> int:
        """Requests that the mirrors of a method bear at once, together."""
        return sum(self._catalog.sources[place].concurrency for place in {m.source for m in method.mirrors})

    async def _follow(self, mirror: Mirror, request: Request, url: URL) -> None:
        await self._robots.follow(self._gates[mirror.source], request, url)

    def _gate(self, source: Source) -> Gate:
        most = source.daily
        daily = Daily(source.name, most, self._today, self._book) if most is not None else None
        return Gate(source, self._loop.time, daily)

    def left_today(self) -> dict[str, int]:
        """Requests that may still be sent today, by source, where there is a daily budget."""
        return {name: gate.daily.left for name, gate in self._gates.items() if gate.daily is not None}

    def _line_for(self, ask: Ask) -> Line:
        key = ask.relation, ask.method, ask.bind_set
        if key not in self._lines:
            method = self._method(ask.relation, ask.method)
            self._lines[key] = Line(method, ask.bind_set, self._order, self._depart)
        return self._lines[key]

    def _method(self, relation_name: str, name: str) -> Method:
        if (relation_name, name) not in self._methods:
            relation = self._catalog.relations[relation_name]
            declared = relation.method(name)
            if declared.wrapper is None:
                raise ValueError(
                    f"{relation_name}.{name} has no wrapper: its rows come from the engine itself"
                )
            runners = [
                Runner(
                    mirror,
                    self._gates[mirror.source],
                    self._desk,
                    Place(relation_name, name, mirror.source),
                    self.measurements,
                )
                for mirror in declared.mirrors
            ]
            self._methods[relation_name, name] = Method(relation, declared, declared.wrapper, Race(runners))
        return self._methods[relation_name, name]

    def _admitted(self, line: Line, ticket: Ticket, joined: list[Trip]) -> None:
        for trip in joined:
            self._loop.call_soon(trip.catch_up, ticket)
        self._desk.stir(line)

    def _left(self, visit: Visit) -> None:
        self._visits.pop(visit, None)

    def _depart(self, line: Line, runner: Runner, slot: Slot, flights: list[Flight], rank: Rank) -> None:
        trip = Trip(line, flights, rank, self._loop.time())
        self._trips[trip] = None
        trip.task = self._group.create_task(self._carry_out(trip, runner, slot), name=line.method.name)
        trip.task.add_done_callback(self._returned(trip, slot))

    def _returned(self, trip: Trip, slot: Slot) -> Callable[[asyncio.Task[None]], None]:
        def clear(_: asyncio.Task[None]) -> None:
            # A task that is cancelled before its first step never gets to give its place back.
            slot.leave()
            del self._trips[trip]

        return clear

    async def _carry_out(self, trip: Trip, runner: Runner, slot: Slot) -> None:
        """Ends the trip, whatever happens on the way."""
        try:
            await Walk(trip, self._fetcher).answer(runner, slot)
        except SourceError as error:
            self._give_up(trip, error)
        except Exception as error:
            said = self.redaction.clean("".join(traceback.format_exception(error)))
            _log.error("%s: a fault of the engine\n%s", trip.line.method.name, said)
            fault = f"{trip.line.method.name}: a fault of the engine: {error!r}"
            trip.fail(Cause("internal", self.redaction.clean(fault)))
        else:
            trip.exhaust()

    def _give_up(self, trip: Trip, error: SourceError) -> None:
        line, cause = trip.line, Cause.of(self.redaction.cleaned(error))
        if isinstance(error, Unsuitable) and trip.split():
            self._desk.stir(line)
            return
        if isinstance(error, Spent) and trip.unload(error.source):
            self._desk.stir(line)
            return
        trip.fail(cause)
        # Where its gates are shut the line finds that out by itself, and says why.
        if line.method.race.down and line.method.race.shut is None and not isinstance(error, Spent):
            line.fail_waiting(
                Cause(cause.kind, f"{line.method.name} does not answer; the last: {cause.message}")
            )
