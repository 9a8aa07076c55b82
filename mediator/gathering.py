"""Lookups that no query waits for: what a SteM does not cover is asked for and kept, for the queries to come.

A scan, or any number of bindings of one access method. Rows go to the SteM as they come, and on to the store; no eddy
has a part in it. So many bindings are under way at once that requests can be filled and no site rests; the others wait
with whoever gives them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import TracebackType
from typing import Self

from mediator.access import Access, Visit
from mediator.assembly import Stems
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.model import AccessMethod, BindSet, Relation
from mediator.errors import Cause, Spent, SpentToday, StoreError
from mediator.flow.events import FIRST, Arrived, Ask, Binding, Event, Exhausted
from mediator.keeping import Keeping
from mediator.output.report import Failure, RelationReport, Report
from mediator.state.coverage import Entry, Known
from mediator.state.stem import SteM
from mediator.store.shelf import Shelf, Walked
from mediator.turns import Turns

_AHEAD = 4  # times as many bindings under way as the sites answer at once
_LEAST = 64  # bindings
_IN_VAIN = (
    200  # bindings that failed one after another, with none answered between them: the site does not answer
)
_KEEP = 0.5  # seconds between two looks at what is on the disk
_SPENT = frozenset({Spent.kind, SpentToday.kind})


@dataclass(frozen=True, slots=True)
class Gathered:
    """What it has come to. Counts are of bindings; a scan is one."""

    wanted: int = 0
    covered: int = 0  # that the SteM had already, fresh enough
    again: int = 0  # that were given more than once
    asked: int = 0
    answered: int = 0
    failed: int = 0
    rows: int = 0  # that came, equal ones among them
    kept: int = 0  # answered, and on the disk

    @property
    def missing(self) -> int:
        return self.wanted - self.covered - self.again - self.answered


class Gathering:
    """`async with` begins it; `want` gives it bindings, and waits while there are many; `ended` waits for the rest.

    Where `rows` is false nothing goes into the SteM: pages are asked for, and lie on the shelf.
    """

    def __init__(
        self,
        access: Access,
        turns: Turns,
        stems: Stems,
        relation: Relation,
        method: AccessMethod,
        bind_set: BindSet,
        *,
        keeping: Keeping | None = None,
        shelf: Shelf | None = None,
        max_age: float = float("inf"),
        ceilings: Ceilings = NO_CEILINGS,
        at: Mapping[str, Ceilings] | None = None,
        rows: bool = True,
        told: Callable[[Gathered], object] = lambda _: None,
    ) -> None:
        self.relation = relation
        self.method = method
        self.bind_set = bind_set
        self.gathered = Gathered()
        self.stopped = ""  # why it ended before its time, if it did
        self._access = access
        self._turns = turns
        self._stems = stems
        self._keeping = keeping
        self._shelf = shelf
        self._max_age = max_age
        self._ceilings = ceilings
        self._at = at or {}  # single sources
        self._rows = rows
        self._told = told  # every now and then, what it has come to
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._visit: Visit
        self._stem: SteM
        self._numbers = count()
        self._open: dict[int, set[Binding]] = {}
        self._under_way = 0
        self._stirred = asyncio.Event()
        self._in_vain = 0
        self._failures: dict[tuple[str, str], list[Binding]] = {}
        self._lost: set[Binding] = set()  # that failed: once is enough
        self._ended: list[
            Walked
        ] = []  # whose pages are on the shelf, and whose rows are not in the store yet
        self._timer: asyncio.TimerHandle | None = None
        self._most = max(_LEAST, _AHEAD * access.concurrency(method) * method.batch_size)

    async def __aenter__(self) -> Self:
        self._visit = self._access.visit(self._deliver, replace(self._ceilings, seconds=None), self._at)
        self._visit.hedge("none")  # nobody waits for it: no request is worth a second one
        if self._ceilings.seconds is not None:
            why = f"it may take {self._ceilings.seconds:g} s (max_seconds), and needs more"
            self._timer = self._loop.call_later(self._ceilings.seconds, self.stop, why)
        async with self._turns.taken():
            self._stem = self._stems.of(self.relation, self._loop.time(), self._max_age)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._keeper = self._group.create_task(self._keep_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._keeper.cancel()
        try:
            # The block's own error goes on as it is; the group only waits for the task.
            await self._group.__aexit__(None, None, None)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._visit.close()
        async with self._turns.taken():
            self._stem.scanning -= self._scans
        self._open.clear()
        if self._keeping is not None:
            await self.keep()

    async def want(self, bindings: Sequence[Binding]) -> None:
        """Those of them that are not covered are asked for, when there is room. Does nothing once it was stopped."""
        for start in range(0, len(bindings), self._most):
            if self.stopped:
                self.gathered = replace(self.gathered, wanted=self.gathered.wanted + len(bindings) - start)
                return
            some = await self._new(bindings[start : start + self._most])
            await self._room(self._most // 2)
            self._ask(some)

    async def missing(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Those that are not covered, each once; nothing is asked for."""
        return await self._new(bindings)

    async def ended(self) -> None:
        """Wait until everything that was wanted has been answered, or was given up."""
        await self._room(0)

    def stop(self, why: str) -> None:
        """Ask for nothing more, and call back what is under way. What has come stays."""
        self.stopped = self.stopped or why or "stopped"
        self._visit.close()
        self._stirred.set()

    async def keep(self) -> None:
        """Wait until what has come is in the store. A `StoreError` where it cannot be written."""
        assert self._keeping is not None
        answered, ended = self.gathered.answered, len(self._ended)
        await self._keeping.kept()
        self.gathered = replace(self.gathered, kept=answered)
        walked, self._ended = self._ended[:ended], self._ended[ended:]
        if self._shelf is not None:
            await asyncio.to_thread(_clear, self._shelf, walked)

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(_KEEP)
            if self._keeping is not None:
                try:
                    await self.keep()
                except StoreError as error:
                    self.stop(str(error))
                    return
            self._told(self.gathered)

    @property
    def report(self) -> Report:
        """What is missing, and why."""
        g = self.gathered
        failures = [
            Failure(self.method.name, self.bind_set, tuple(bindings), Cause(kind, message))
            for (kind, message), bindings in self._failures.items()
        ]
        unasked = g.missing - g.failed
        why = self.stopped
        if unasked > 0 and not why:
            why = "it was broken off"
        if unasked > 0:
            what = "the scan" if not self.bind_set else f"{unasked:,} lookup{'s' if unasked != 1 else ''}"
            why = f"{why}; {what} not ended"
        relation = RelationReport(
            self.relation.name,
            asked=g.asked,
            answered=g.answered,
            failed=g.failed,
            served=g.covered,
            rows=g.rows,
            failures=tuple(failures),
        )
        return Report((relation,), stopped=why)

    @property
    def _scans(self) -> int:
        return len(self._open) if not self.bind_set else 0

    async def _new(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Those that are neither covered nor under way, each once."""
        found: dict[Binding, None] = {}
        covered = again = 0
        under_way = set().union(*self._open.values()) if self._open else set()
        async with self._turns.taken():
            now = self._loop.time()
            for binding in bindings:
                if binding in found or binding in under_way or binding in self._lost:
                    again += 1
                elif (entry := self._stem.covered(self.bind_set, binding, now, self._max_age)) is None:
                    found[binding] = None
                elif entry[2].at >= self._began:
                    again += 1
                else:
                    covered += 1
        g = self.gathered
        self.gathered = replace(
            g, wanted=g.wanted + len(bindings), covered=g.covered + covered, again=g.again + again
        )
        return list(found)

    async def _room(self, most: int) -> None:
        while self._under_way > most and not self.stopped:
            self._stirred.clear()
            await self._stirred.wait()

    def _ask(self, bindings: list[Binding]) -> None:
        if not bindings or self.stopped:
            return
        ask = Ask(
            next(self._numbers), self.relation.name, self.method.name, self.bind_set, tuple(bindings), FIRST
        )
        self._open[ask.number] = set(bindings)
        self._under_way += len(bindings)
        if not self.bind_set:
            self._turns.between(partial(self._scanning, 1))
        self.gathered = replace(self.gathered, asked=self.gathered.asked + len(bindings))
        self._visit.ask(ask)

    def _scanning(self, more: int) -> None:
        self._stem.scanning += more

    def _deliver(self, event: Event) -> None:
        self._turns.between(partial(self._take, event))

    def _take(self, event: Event) -> None:
        if event.ask not in self._open:  # it was left meanwhile
            return
        if isinstance(event, Arrived):
            event.landing.kept &= self._proven
            if self._rows:
                self._stem.receive(event.landing)
            self.gathered = replace(self.gathered, rows=self.gathered.rows + event.landing.rows.num_rows)
            return
        if isinstance(event, Exhausted) and self._proven:
            self._answered(event)
        elif isinstance(event, Exhausted):
            cause = f"{self.relation.name}.{self.method.name} does not promise all rows"
            self._failed(event.bindings, Cause("not all", cause))
        else:
            self._failed(event.bindings, event.cause)
        self._settle(event.ask, event.bindings)

    def _answered(self, event: Exhausted) -> None:
        if self._rows:
            until = min(event.until, event.at + self.method.fresh_for)
            entry = Entry(Known.COMPLETE, event.at, until)
            self._stem.promise(self.bind_set, event.bindings, entry, event.landings)
            self._ended.append(Walked(self.relation.name, self.method.name, self.bind_set, event.bindings))
        self.gathered = replace(self.gathered, answered=self.gathered.answered + len(event.bindings))
        self._in_vain = 0

    def _failed(self, bindings: Sequence[Binding], cause: Cause) -> None:
        self._failures.setdefault((cause.kind, cause.message), []).extend(bindings)
        self._lost.update(bindings)
        self.gathered = replace(self.gathered, failed=self.gathered.failed + len(bindings))
        self._in_vain += len(bindings)
        if cause.kind in _SPENT:
            self.stop(cause.message)
        elif self._in_vain >= _IN_VAIN and self.bind_set:
            self.stop(f"{self._in_vain:,} lookups failed one after another; the last: {cause.message}")

    def _settle(self, number: int, bindings: Sequence[Binding]) -> None:
        left = self._open[number]
        left.difference_update(bindings)
        self._under_way -= len(bindings)
        if not left:
            del self._open[number]
            self._stem.scanning -= not self.bind_set
        self._stirred.set()

    @property
    def _proven(self) -> bool:
        return self.method.proves == "all"


def _clear(shelf: Shelf, walked: Sequence[Walked]) -> None:
    for one in walked:
        shelf.clear(one)
