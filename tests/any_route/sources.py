"""Sources that answer in virtual time: all rows that match, in random order and pages, now and then none.

They keep the promises of the access layer: what is under way is joined and never asked again, a latecomer is
first sent what has landed already, and every binding that is not cancelled ends once.
"""

from __future__ import annotations

import heapq
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa

from mediator.errors import Cause
from mediator.flow.events import Arrived, Ask, Binding, Cancel, Event, Exhausted, Failed, Landing
from tests.any_route.drawing import Case

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "^=": str.startswith,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "": operator.eq,
}

Deliver = Callable[[Event], None]
Lookup = tuple[str, str, tuple[str, ...], Binding]


def meets(row: dict[str, Any], bind_set: tuple[str, ...], binding: Binding) -> bool:
    """Whether a row is among those that were asked for."""
    for name, value in zip(bind_set, binding, strict=True):
        spelt = next(o for o in _OPERATORS if name.endswith(o))
        found = row[name.removesuffix(spelt)]
        if found is None or not _OPERATORS[spelt](found, value):
            return False
    return True


def covers(wide: tuple[tuple[str, ...], Binding], narrow: tuple[tuple[str, ...], Binding]) -> bool:
    """Whether one lookup, answered, leaves nothing to be asked by another: it binds no more, and nothing narrower."""
    asked = dict(zip(*narrow, strict=True))
    return all(
        name in asked and (asked[name] == value or (name[-1] in "<>=" and _within(name, asked[name], value)))
        for name, value in zip(*wide, strict=True)
    )


def _within(name: str, narrow: Any, wide: Any) -> bool:
    spelt = next(o for o in _OPERATORS if name.endswith(o))
    return _OPERATORS[spelt](narrow, wide)


@dataclass(slots=True)
class Flight:
    lookup: Lookup
    asked_at: float
    tie: float  # what of several flights comes first when two land at one moment
    landings: list[Landing] = field(default_factory=list)
    waiting: list[tuple[int, Deliver]] = field(default_factory=list)
    over: bool = False


class Sources:
    def __init__(self, case: Case, random: Random) -> None:
        self.now = 0.0
        self.flights: Counter[Lookup] = Counter()  # how often each was asked of its site
        self.asked_again: list[Lookup] = []  # although it had been answered, or this query had asked already
        self._answered: set[Lookup] = set()
        self._relations = case.catalog.relations
        self._rows = {name: table.to_pylist() for name, table in case.tables.items()}
        self._case = case
        self._random = random
        self._under_way: dict[Lookup, Flight] = {}
        self._agenda: list[tuple[float, float, int, Callable[[], None]]] = []
        self._number = count()

    @property
    def busy(self) -> bool:
        return bool(self._agenda)

    def ask(self, ask: Ask, deliver: Deliver) -> None:
        for binding in ask.bindings:
            assert None not in binding, "NULL is never looked up"
            lookup = (ask.relation, ask.method, ask.bind_set, binding)
            flight = self._under_way.get(lookup)
            if flight is None:
                flight = self._depart(lookup)
            if any(who == deliver for _, who in flight.waiting):
                self.asked_again.append(lookup)
            for landing in flight.landings:
                deliver(Arrived(ask.number, landing))
            flight.waiting.append((ask.number, deliver))

    def cancel(self, cancel: Cancel, deliver: Deliver) -> None:
        for flight in list(self._under_way.values()):
            if cancel.bindings and flight.lookup[3] not in cancel.bindings:
                continue
            flight.waiting = [w for w in flight.waiting if w != (cancel.ask, deliver)]
            if not flight.waiting:
                flight.over = True
                del self._under_way[flight.lookup]

    def step(self) -> None:
        """Let time go on to the next thing that happens."""
        self.now, _, _, happen = heapq.heappop(self._agenda)
        happen()

    def _depart(self, lookup: Lookup) -> Flight:
        self.flights[lookup] += 1
        if any(a[0] == lookup[0] and covers(a[2:], lookup[2:]) for a in self._answered):
            self.asked_again.append(lookup)
        flight = self._under_way[lookup] = Flight(lookup, self.now, self._random.random())
        rows = self._matching(lookup)
        self._random.shuffle(rows)
        if self._relations[lookup[0]].repeats and rows and self._random.random() < 0.3:
            rows.append(self._random.choice(rows))
        pages = self._paged(rows)
        fails = lookup[:2] in self._case.down or self._random.random() < self._case.failing
        method = self._relations[lookup[0]].method(lookup[1])
        cut = method.at_most is not None and len(rows) >= method.at_most
        at = self.now + self._latency()
        for page in pages[: self._random.randint(0, len(pages))] if fails else pages:
            self._later(at, flight, self._landed(flight, page))
            at += self._latency() * self._random.choice((0, 1))
        self._later(at, flight, self._ended(flight, fails or cut, method.proves == "all"))
        return flight

    def _matching(self, lookup: Lookup) -> list[dict[str, object]]:
        """What the site sends: of one that is not exact more than was asked for, of others not always all."""
        relation, name, bind_set, binding = lookup
        method = self._relations[relation].method(name)
        rows = [row for row in self._rows[relation] if meets(row, bind_set, binding)]
        if method.proves == "some":
            rows = [row for row in rows if self._random.random() < 0.6]
        if method.exact is False:
            rows += [r for r in self._rows[relation] if r not in rows and self._random.random() < 0.3]
        return rows if method.at_most is None else rows[: method.at_most]

    def _paged(self, rows: list[dict[str, object]]) -> list[list[dict[str, object]]]:
        size = self._random.choice((1, 2, 5, 100))
        return [rows[i : i + size] for i in range(0, len(rows), size)]

    def _latency(self) -> float:
        # A coarse grid, so that things happen at the same time and their order is a choice.
        return self._random.choice((0.0, 1.0, 1.0, 2.0, 5.0))

    def _later(self, at: float, flight: Flight, happen: Callable[[], None]) -> None:
        def unless_over() -> None:
            if not flight.over:
                happen()

        heapq.heappush(self._agenda, (at, flight.tie, next(self._number), unless_over))

    def _landed(self, flight: Flight, page: list[dict[str, object]]) -> Callable[[], None]:
        schema = self._relations[flight.lookup[0]].schema

        def happen() -> None:
            landing = Landing(pa.RecordBatch.from_pylist(page, schema=schema))
            flight.landings.append(landing)
            for number, deliver in list(flight.waiting):
                deliver(Arrived(number, landing))

        return happen

    def _ended(self, flight: Flight, fails: bool, proven: bool) -> Callable[[], None]:
        def happen() -> None:
            flight.over = True
            self._under_way.pop(flight.lookup, None)
            binding = flight.lookup[3]
            if not fails and proven:
                self._answered.add(flight.lookup)
            for number, deliver in list(flight.waiting):
                if fails:
                    deliver(Failed(number, (binding,), Cause("refused", "scripted")))
                else:
                    deliver(Exhausted(number, (binding,), flight.asked_at, landings=flight.landings))

        return happen
