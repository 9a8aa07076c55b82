"""How fast the sites answer this query: by what was asked, what came and what ended, and when."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.clock import Clock
from mediator.flow.events import Ask

NEVER = float("inf")
_FEW = 16  # lookups under way that are not in the way of another
_LATE = 0.8  # what a lookup weighs beside the next one


@dataclass(slots=True)
class _Scan:
    began: float
    rows: int = 0


@dataclass(slots=True)
class _Lookups:
    """Of one relation. `busy` are the seconds in which any was under way, up to `since`."""

    pending: int = 0
    done: int = 0
    busy: float = 0.0
    since: float = 0.0
    found: int = 0  # rows
    alone: float = 0.0  # seconds from asking to the end, where little was in the way
    recent: float = 0.0  # seconds from the end of one to the end of the next, of late

    def waited(self, seconds: float) -> None:
        self.alone += (seconds - self.alone) * (1.0 - _LATE if self.alone else 1.0)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a lookup is like: seconds that it takes, 0 where none has ended, and rows that it finds."""

    lookup: float
    finds: float


_UNKNOWN = Looked(0.0, 1.0)


class Pace:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scans: dict[str, _Scan] = {}
        self._lookups: dict[str, _Lookups] = {}
        self._asked_at: dict[int, float] = {}
        self._supposed: dict[str, Looked] = {}
        self.ends = 0  # lookups that have ended
        self.pending = 0  # that are under way

    def suppose(self, relation: str, looked: Looked) -> None:
        """What a lookup is taken to be like until one has ended."""
        self._supposed[relation] = looked

    def asked(self, ask: Ask) -> None:
        if not ask.bind_set:
            self._scans.setdefault(ask.relation, _Scan(self._clock()))
            return
        lookups = self._lookups.setdefault(ask.relation, _Lookups())
        if not lookups.pending:
            lookups.since = self._clock()
        if lookups.pending <= _FEW:
            self._asked_at[ask.number] = self._clock()
        lookups.pending += len(ask.bindings)
        self.pending += len(ask.bindings)

    def came(self, ask: Ask, rows: int) -> None:
        scan = self._scans.get(ask.relation)
        if scan is not None and not ask.bind_set:
            scan.rows += rows
        if ask.bind_set and (lookups := self._lookups.get(ask.relation)) is not None:
            lookups.found += rows

    def ended(self, ask: Ask, bindings: int, answered: bool) -> None:
        """So many bindings of it. Those that were not answered, but given up or found elsewhere, say nothing of the
        site."""
        lookups = self._lookups.get(ask.relation)
        if ask.bind_set and lookups is not None and bindings:
            lookups.pending -= bindings
            self.pending -= bindings
            self.ends += bindings
            if not answered:
                return
            now = self._clock()
            if (asked_at := self._asked_at.pop(ask.number, None)) is not None:
                lookups.waited(now - asked_at)
            lookups.done += bindings
            took = now - lookups.since
            lookups.busy += took
            lookups.since = now
            newer = 1.0 - _LATE**bindings
            lookups.recent += (took / bindings - lookups.recent) * (newer if lookups.done > bindings else 1.0)

    def over(self, ask: Ask) -> None:
        """Nothing more comes of it."""
        self._asked_at.pop(ask.number, None)

    def room(self, relation: str, least: int) -> int:
        """How many more lookups can be sent and will not have to stand in line: as many may be under way as end
        while one takes its time, and some."""
        lookups = self._lookups.get(relation)
        if lookups is None:
            return least
        often = max(lookups.recent, self._clock() - lookups.since if lookups.pending else 0.0)
        busy = lookups.alone / often if often else 0.0
        return least + int(min(busy, 1e9)) - lookups.pending

    def of(self, relation: str) -> Looked:
        """What a lookup of the relation is like. One that takes longer than others have tells at once."""
        lookups = self._lookups.get(relation)
        if lookups is None or not lookups.done:
            return self._supposed.get(relation, _UNKNOWN)
        waited = self._clock() - lookups.since if lookups.pending else 0.0
        return Looked(max(lookups.recent, waited), lookups.found / lookups.done)

    def scan_left(self, relation: str, total: float) -> float:
        """Seconds until a scan of so many rows will have ended, if it goes on as it did; never, where nobody knows."""
        scan = self._scans.get(relation)
        if scan is None or not scan.rows or not total:
            return NEVER
        elapsed = self._clock() - scan.began
        return elapsed * max(0.0, total - scan.rows) / scan.rows

    def lookups_take(self, relation: str, more: int) -> float:
        """Seconds until so many further lookups are answered, after those that wait; 0 where nothing is known yet."""
        lookups = self._lookups.get(relation)
        if lookups is None or not lookups.done or not lookups.busy:
            return 0.0
        return (lookups.pending + more) * lookups.busy / lookups.done
