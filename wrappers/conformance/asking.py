"""How the suite asks: one mirror, one page after another, every reply kept, and never more than it was allowed.

Nothing here races, hedges or shares: what a mirror says to one request has to be seen as it is. The source's rate
and its own word are obeyed as `mediator.access` obeys them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from random import Random

from mediator.access.limits.backoff import Backoff
from mediator.access.limits.gate import Gate
from mediator.access.method import Method
from mediator.access.mirrors.race import Race
from mediator.access.reading import understood, written
from mediator.access.web.quoting import plain
from mediator.access.web.redaction import MARK, Redaction, Redacts
from mediator.access.web.robots import RobotsPolicy
from mediator.access.web.transport import Transport, address
from mediator.catalog.model import AccessMethod, BindSet, Catalog, Mirror, Relation
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.errors import Endless, RateLimited, SourceError, TimedOut, Unreachable, Unreadable
from wrappers.cassettes.scrubbing import is_secret

MOST_REQUESTS = 40  # to one source
MOST_PAGES = 10  # of one lookup
_ATTEMPTS = 3

Row = tuple[object, ...]
Told = Callable[[str], None]


@dataclass(frozen=True)
class Exchange:
    """One request, what came back, and how the wrapper understood it: as a page or as an error."""

    request: Request
    reply: Reply | None
    page: Page | None
    error: SourceError | None

    @cached_property
    def rows(self) -> list[Row]:
        return [] if self.page is None else rows_of(self.page)


@dataclass(frozen=True)
class Lookup:
    """What one mirror answered to some bindings. `cut` says why it was not read to its end, if it was not."""

    mirror: Mirror
    bind_set: BindSet
    bindings: tuple[Binding, ...]
    exchanges: tuple[Exchange, ...] = ()
    error: SourceError | None = None
    cut: str = ""
    repeated: tuple[Exchange, ...] = ()  # attempts that failed, and were made again

    @property
    def good(self) -> bool:
        """Whether it was asked, and all that was read of it could be read."""
        return self.error is None and any(e.page is not None for e in self.exchanges)

    @property
    def whole(self) -> bool:
        return self.good and not self.cut

    @property
    def pages(self) -> list[Exchange]:
        """The exchanges that brought a page."""
        return [e for e in self.exchanges if e.page is not None]

    @cached_property
    def rows(self) -> list[Row]:
        return [row for e in self.pages for row in e.rows]

    @property
    def last(self) -> Exchange | None:
        return self.exchanges[-1] if self.exchanges else None


@dataclass
class Asker:
    """Asks the sources of one catalog. `stop` ends it: what is asked after that is cut."""

    catalog: Catalog
    transport: Transport
    most_requests: int = MOST_REQUESTS
    most_pages: int = MOST_PAGES
    pause: float = 0.5  # seconds before a second attempt, where the site names none
    told: Told = lambda _: None
    redaction: Redaction = field(default_factory=Redaction)  # knows what no message may say
    sent: Counter[str] = field(default_factory=Counter)
    _gates: dict[str, Gate] = field(default_factory=dict)
    stopped: str = ""
    _scope: asyncio.Timeout | None = None

    def __post_init__(self) -> None:
        self._robots = RobotsPolicy(self, Backoff(Random()), _today)
        if isinstance(self.transport, Redacts):
            self.redaction = self.transport.redaction

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        """As a transport: everything that goes out goes through here, a robots.txt too."""
        self.sent[mirror.source] += 1
        return await self.transport.send(mirror, request)

    async def lookup(
        self, relation: Relation, method: AccessMethod, mirror: Mirror, bind_set: BindSet, *bindings: Binding
    ) -> Lookup:
        way = way_of(relation, method)
        self.told(f"{way.name} at {mirror.source}: request {self.sent[mirror.source] + 1}")
        deadline = self._gate(mirror).source.deadline
        try:
            async with asyncio.timeout(deadline):
                first = await written(way, bind_set, bindings)
        except TimeoutError:
            return Lookup(
                mirror, bind_set, bindings, error=TimedOut(f"no request was written within {deadline:g} s")
            )
        except SourceError as error:
            return Lookup(mirror, bind_set, bindings, error=error)
        return await self.walk(way, mirror, bind_set, bindings, first)

    async def walk(
        self, way: Method, mirror: Mirror, bind_set: BindSet, bindings: tuple[Binding, ...], first: Request
    ) -> Lookup:
        """The pages from this request on: the first few of them and, where they are known, the last."""
        walk = _Walk(deque([first]), {first})
        while walk.todo and len(walk.exchanges) < self.most_pages:
            if why := self._why_not(mirror.source):
                return walk.ended(mirror, bind_set, bindings, cut=why)
            near_the_end = len(walk.exchanges) == self.most_pages - 1
            request = walk.todo.pop() if near_the_end else walk.todo.popleft()
            try:
                exchange = await self._exchange(way, mirror, bind_set, bindings, request, walk.repeated)
                walk.add(exchange)
                if exchange.error is not None:
                    raise exchange.error
            except _Stopped:
                return walk.ended(mirror, bind_set, bindings, cut=self.stopped)
            except SourceError as error:
                return walk.ended(mirror, bind_set, bindings, error)
        cut = f"only {self.most_pages} pages of it were read" if walk.todo else ""
        return walk.ended(mirror, bind_set, bindings, cut=cut)

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    def _why_not(self, source: str) -> str:
        if self.stopped:
            return self.stopped
        if self.sent[source] >= self.most_requests:
            return (
                f"{source} was asked {self.most_requests} times, which is as often as --most-requests allows"
            )
        return ""

    async def _exchange(
        self,
        way: Method,
        mirror: Mirror,
        bind_set: BindSet,
        bindings: tuple[Binding, ...],
        request: Request,
        repeated: list[Exchange],
    ) -> Exchange:
        """One page; asked again where the site, not the wrapper, failed for now."""
        for attempt in range(1, _ATTEMPTS + 1):
            reply = None
            try:
                reply = await self._send(mirror, request)
                async with asyncio.timeout(self._gate(mirror).source.deadline):
                    page = await understood(way, request, bind_set, bindings, reply, _today)
                if page.astray is not None:
                    raise page.astray
                return Exchange(request, reply, page, None)
            except TimeoutError:
                return Exchange(request, reply, None, Unreadable(f"{way.name}: it was not read in time"))
            except SourceError as error:
                exchange = Exchange(request, reply, None, self.redaction.cleaned(error))
                if not error.again or isinstance(error, Unreadable) or attempt == _ATTEMPTS:
                    return exchange
                if self._why_not(mirror.source) or not await self._rested(mirror, error, attempt):
                    return exchange
                repeated.append(exchange)
        raise AssertionError("the last attempt returns")

    async def _send(self, mirror: Mirror, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        gate = self._gate(mirror)
        try:
            async with asyncio.timeout(None) as scope:
                self._scope = scope
                await asyncio.sleep(max(0.0, gate.limited_until() - loop.time()))
                scope.reschedule(loop.time() + gate.source.deadline)
                gate.enter()
                try:
                    if gate.source.robots == "obey":
                        url = address(mirror, request)
                        await self._robots.follow(gate, request, url)
                        self._robots.space(gate, url)
                    return await self.send(mirror, request)
                finally:
                    gate.leave()
        except TimeoutError:
            if self.stopped:
                raise _Stopped from None
            raise TimedOut(f"no reply within {gate.source.deadline:g} s") from None
        except SourceError:
            raise
        except Exception as error:
            raise Unreachable(f"the transport failed: {plain(repr(error))}") from error
        finally:
            self._scope = None

    async def _rested(self, mirror: Mirror, error: SourceError, attempt: int) -> bool:
        """Waits as long as the site wants. False where that is longer than the deadline allows."""
        gate = self._gate(mirror)
        seconds = self.pause * 2 ** (attempt - 1) if error.after is None else error.after
        if seconds > gate.source.deadline:
            return False
        if isinstance(error, RateLimited):
            gate.hold(asyncio.get_running_loop().time() + seconds)
        else:
            await asyncio.sleep(seconds)
        return True

    def _gate(self, mirror: Mirror) -> Gate:
        if mirror.source not in self._gates:
            source = self.catalog.sources[mirror.source]
            self._gates[mirror.source] = Gate(source, asyncio.get_running_loop().time)
        return self._gates[mirror.source]


class _Stopped(Exception):
    """What was under way is no longer wanted."""


@dataclass
class _Walk:
    """The pages of one lookup, as far as they were read."""

    todo: deque[Request]
    made: set[Request]
    exchanges: list[Exchange] = field(default_factory=list)
    repeated: list[Exchange] = field(default_factory=list)

    def ended(
        self,
        mirror: Mirror,
        bind_set: BindSet,
        bindings: tuple[Binding, ...],
        error: SourceError | None = None,
        cut: str = "",
    ) -> Lookup:
        return Lookup(mirror, bind_set, bindings, tuple(self.exchanges), error, cut, tuple(self.repeated))

    def add(self, exchange: Exchange) -> None:
        """Raises `Endless` where the page leads back to one that was read."""
        self.exchanges.append(exchange)
        for request in exchange.page.then if exchange.page is not None else ():
            if request in self.made:
                raise Endless(f"its pages lead back to one that was read already: {shown(request)}")
            self.made.add(request)
            self.todo.append(request)


def way_of(relation: Relation, method: AccessMethod) -> Method:
    assert method.wrapper is not None, "a method of a declared source has a wrapper"
    return Method(relation, method, method.wrapper, Race([]))


def rows_of(page: Page) -> list[Row]:
    columns = [column.to_pylist() for column in page.rows.columns]
    return list(zip(*columns, strict=True)) if columns else []


def shown(request: Request) -> str:
    """A request in one line, as its author would know it again."""
    if isinstance(request, Statement):
        return plain(f"{request.sql} {request.pairs!r}")
    query = "&".join(f"{name}={MARK if is_secret(name) else value}" for name, value in request.pairs)
    body = "" if request.body is None else f" {request.body[:200].decode('utf-8', 'replace')}"
    place = request.path.partition("?")[0]
    return plain(f"{request.method} {place}{'?' if query else ''}{query}{body}")


def by_field(relation: Relation, row: Row) -> Mapping[str, object]:
    return dict(zip(relation.schema.names, row, strict=True))


def _today() -> datetime:
    return datetime.now(UTC)
