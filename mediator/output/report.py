"""The completeness report: what was asked, what came back, what is missing, and so whether the answer is
complete.

Data only. The eddy and the access modules know the numbers; the faces show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mediator.errors import Cause
from mediator.flow.events import Binding
from mediator.output.records import PartialReport

# Bindings of one failure that are spelt out for people; the dict has them all.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """Lookups that were given up, for one reason."""

    method: str
    bind_set: tuple[str, ...]
    bindings: tuple[Binding, ...]
    cause: Cause

    def line(self) -> str:
        return f"{self._what()}: {self.cause.kind}: {self.cause.message}"

    def as_dict(self) -> dict[str, object]:
        return {
            "method": self.method,
            "bind_fields": list(self.bind_set),
            "bindings": [list(b) for b in self.bindings],
            "cause": {"kind": self.cause.kind, "message": self.cause.message},
        }

    def _what(self) -> str:
        if not self.bind_set:
            return f"scan {self.method}"
        shown = [", ".join(map(repr, b)) for b in self.bindings[:_SHOWN]]
        more = len(self.bindings) - len(shown)
        rest = f" and {more} more" if more > 0 else ""
        return f"{self.method}({', '.join(self.bind_set)}) for {'; '.join(shown)}{rest}"


@dataclass(frozen=True, slots=True)
class RelationReport:
    """What one relation was asked for a query. Counts are of lookups; a scan is one."""

    relation: str
    asked: int = 0  # sent to its sources
    answered: int = 0  # to their end
    failed: int = 0  # for good; made up for by another provider where `failures` is empty
    cancelled: int = 0  # called back, because they were not needed any more
    parked: int = 0  # never asked, because another provider brings the same rows
    served: int = 0  # answered by what was stored already
    rows: int = 0  # that the query saw
    failures: tuple[Failure, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.failures

    def line(self) -> str:
        counts = [
            f"{self.asked} asked",
            f"{self.answered} answered",
            *([f"{self.failed} failed"] if self.failed else []),
            *([f"{self.cancelled} cancelled"] if self.cancelled else []),
            *([f"{self.parked} parked"] if self.parked else []),
            *([f"{self.served} served from the store"] if self.served else []),
            f"{self.rows} rows",
        ]
        return f"{self.relation}: {', '.join(counts)}"

    def as_dict(self) -> dict[str, object]:
        return {
            "relation": self.relation,
            "asked": self.asked,
            "answered": self.answered,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "parked": self.parked,
            "served": self.served,
            "rows": self.rows,
            "complete": self.complete,
            "failures": [f.as_dict() for f in self.failures],
        }


@dataclass(frozen=True, slots=True)
class Paused:
    """A source that the user has paused, and how many lookups and scans wait for that to be over."""

    source: str
    waiting: int

    def line(self) -> str:
        wait = "wait" if self.waiting != 1 else "waits"
        return (
            f"paused: {self.source}, for which {self.waiting} {wait}"
            if self.waiting
            else f"paused: {self.source}"
        )

    def as_dict(self) -> dict[str, object]:
        return {"source": self.source, "waiting": self.waiting}


@dataclass(frozen=True, slots=True)
class Report:
    """How complete an answer is.

    `stopped` says why the run ended before its time, if it did: cancelled, out of budget, a client that
    left. A LIMIT that was reached is not such a reason: the answer is all that was wanted, whatever was
    left unasked (`enough`).
    """

    relations: tuple[RelationReport, ...] = field(default=())
    stopped: str = ""
    enough: bool = False
    remarks: tuple[str, ...] = ()  # on declarations that do not hold, and did no harm
    partials: PartialReport | None = None  # what partial answers came to, where they were asked for
    paused: tuple[Paused, ...] = ()  # by the user; when the query ended, if it has

    @property
    def complete(self) -> bool:
        return not self.stopped and (self.enough or all(r.complete for r in self.relations))

    def lines(self) -> list[str]:
        """For people: the verdict first, then each relation, with what failed under it."""
        lines = [self._verdict()]
        for relation in self.relations:
            lines.append(f"  {relation.line()}")
            lines += [f"    missing: {failure.line()}" for failure in relation.failures]
        lines += [f"  {paused.line()}" for paused in self.paused]
        if self.partials is not None:
            lines.append(f"  {self.partials.line()}")
        return [*lines, *(f"  remark: {remark}" for remark in self.remarks)]

    def as_dict(self) -> dict[str, object]:
        """For JSON. Bindings are plain Python values, dates among them."""
        return {
            "complete": self.complete,
            "stopped": self.stopped or None,
            "enough": self.enough,
            "remarks": list(self.remarks),
            **({"paused": [p.as_dict() for p in self.paused]} if self.paused else {}),
            "relations": [r.as_dict() for r in self.relations],
            **({} if self.partials is None else {"partials": self.partials.as_dict()}),
        }

    def _verdict(self) -> str:
        if self.complete:
            return "complete: LIMIT reached" if self.enough else "complete"
        incomplete = [r.relation for r in self.relations if not r.complete]
        reasons = [self.stopped] if self.stopped else []
        reasons += [f"not all of {', '.join(incomplete)} was answered"] if incomplete else []
        return f"partial: {'; '.join(reasons)}"


def merged(reports: Iterable[Report]) -> Report:
    """One report for the blocks of one query."""
    all_ = list(reports)
    by_name: dict[str, RelationReport] = {}
    for relation in (r for report in all_ for r in report.relations):
        have = by_name.get(relation.relation)
        by_name[relation.relation] = relation if have is None else _sum(have, relation)
    stopped = next((r.stopped for r in all_ if r.stopped), "")
    enough = all(r.complete for r in all_) and any(r.enough for r in all_)
    return Report(tuple(by_name.values()), stopped, enough)


def _sum(a: RelationReport, b: RelationReport) -> RelationReport:
    return RelationReport(
        a.relation,
        a.asked + b.asked,
        a.answered + b.answered,
        a.failed + b.failed,
        a.cancelled + b.cancelled,
        a.parked + b.parked,
        a.served + b.served,
        a.rows + b.rows,
        (*a.failures, *b.failures),
    )
