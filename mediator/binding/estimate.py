"""What a query will cost, before anything is asked: requests, rows and seconds, as ranges, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mediator.binding.counting import Count, Counting, Known
from mediator.binding.model import Verdict
from mediator.binding.ranges import NONE, Range
from mediator.binding.rates import Ground
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.model import Source
from mediator.query.model import Block, BlockStage, Query, SqlStage

_LATENCY = Range(0.02, 2.0)  # seconds of one request, where none was measured
_FEW = 2.5  # requests below which latency is not taken to be measured


@dataclass(frozen=True, slots=True)
class AliasEstimate:
    """Of one alias: what is sent to the sources that answer it, and what comes."""

    stage: str
    alias: str
    relation: str
    method: str
    sources: tuple[str, ...]
    lookups: Range
    calls: Range
    rows: Range
    bytes: Range
    seconds: Range
    ground: str  # measured in 214 lookups, declared, guess, ...

    def line(self) -> str:
        """For people."""
        if not self.calls.high:
            return f"{_shown(self.rows, 'row')}, nothing to ask ({self.ground})"
        return f"{_shown(self.calls, 'call')}, {_shown(self.rows, 'row')}, {_seconds(self.seconds)} ({self.ground})"

    def to_dict(self) -> dict[str, object]:
        ranges = ("lookups", "calls", "rows", "bytes", "seconds")
        return {
            "stage": self.stage,
            "alias": self.alias,
            "relation": self.relation,
            "method": self.method,
            "sources": list(self.sources),
            "ground": self.ground,
            **{name: getattr(self, name).to_dict() for name in ranges},
        }


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a query. Seconds are of one that runs alone."""

    aliases: tuple[AliasEstimate, ...]
    calls: Range
    rows: Range
    seconds: Range
    by_source: Mapping[str, Range]  # requests
    warnings: tuple[str, ...] = ()

    def of(self, alias: str) -> AliasEstimate:
        return next(a for a in self.aliases if a.alias == alias)

    def line(self) -> str:
        """For people."""
        if not self.calls.high:
            return "in all: nothing to ask"
        return f"in all: {_shown(self.calls, 'call')}, {_shown(self.rows, 'row')}, {_seconds(self.seconds)}"

    def to_dict(self) -> dict[str, object]:
        return {
            "calls": self.calls.to_dict(),
            "rows": self.rows.to_dict(),
            "seconds": self.seconds.to_dict(),
            "by_source": {name: calls.to_dict() for name, calls in self.by_source.items()},
            "aliases": [alias.to_dict() for alias in self.aliases],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Allowed:
    """What the query may spend, and what its sources have left."""

    whole: Ceilings = NO_CEILINGS
    at: Mapping[str, Ceilings] = field(default_factory=dict)
    today: Mapping[str, int] = field(default_factory=dict)  # requests left, by source


def estimate(
    query: Query,
    verdicts: Mapping[str, Verdict],
    sources: Mapping[str, Source],
    known: Known,
    allowed: Allowed | None = None,
) -> Estimate:
    """Of all blocks of a query. Pure: what is known is handed in."""
    given: dict[str, Range] = {}
    aliases: list[AliasEstimate] = []
    for stage in query.stages:
        if isinstance(stage, SqlStage):
            given[stage.name] = _passed_on(stage, given)
            continue
        counts = []
        if not stage.block.never:
            counts = Counting(stage.block, verdicts[stage.name], replace(known, given=given)).count()
        given[stage.name] = _joined(counts)
        aliases += [_estimated(stage, count, sources) for count in counts if count.provider.method.mirrors]
    if _may_stop_early(query):
        aliases = [_from_nothing(alias) for alias in aliases]
    return _together(aliases, allowed or Allowed())


def _estimated(stage: BlockStage, count: Count, sources: Mapping[str, Source]) -> AliasEstimate:
    block: Block = stage.block
    alias, method = block.aliases[count.provider.alias], count.provider.method
    places = tuple(mirror.source for mirror in method.mirrors)
    each = count.measured.bytes.mean if count.measured.lookups else 0.0
    return AliasEstimate(
        stage=stage.name,
        alias=alias.name,
        relation=alias.relation.name,
        method=method.name,
        sources=places,
        lookups=count.lookups,
        calls=count.requests,
        rows=count.rows,
        bytes=count.lookups * Range.of(each),
        seconds=_took(count, [sources[place] for place in places]),
        ground=_grounded(count),
    )


def _took(count: Count, places: Sequence[Source]) -> Range:
    """From all side by side, as fast as any that was measured, to half of them waiting, each of them slow."""
    if not count.requests.high:
        return NONE
    latency = _LATENCY
    if count.measured.latency.weight >= _FEW:
        usual = count.measured.latency
        latency = Range(usual.quantile(0.05), max(usual.quantile(0.95), usual.mean) * 1.5)
    width = sum(place.concurrency for place in places)
    low = latency.low * max(1.0, count.requests.low / width) if count.requests.low else 0.0
    high = latency.high * count.requests.high
    if all(place.rate is not None for place in places):
        rate = sum(place.rate or 0.0 for place in places)
        low = max(low, (count.requests.low - rate) / rate)
        high += count.requests.high / rate
    return Range(low, high)


def _together(aliases: Sequence[AliasEstimate], allowed: Allowed) -> Estimate:
    calls = _sum(a.calls for a in aliases)
    by_source: dict[str, Range] = {}
    for alias in aliases:
        for place in alias.sources:
            # Which of several mirrors is asked is decided as they answer.
            share = alias.calls if len(alias.sources) == 1 else Range(0.0, alias.calls.high)
            by_source[place] = by_source.get(place, NONE) + share
    seconds = Range(max((a.seconds.low for a in aliases), default=0.0), sum(a.seconds.high for a in aliases))
    found = Estimate(tuple(aliases), calls, _sum(a.rows for a in aliases), seconds, by_source)
    return replace(found, warnings=tuple(_warnings(found, allowed)))


def _warnings(found: Estimate, allowed: Allowed) -> Iterator[str]:
    """Ceilings that the query is likely to reach."""
    whole = allowed.whole
    yield from _exceeds(found.calls, whole.calls, "max_calls")
    yield from _exceeds(_sum(a.bytes for a in found.aliases), whole.bytes, "max_bytes")
    yield from _exceeds(found.seconds, whole.seconds, "max_seconds")
    for place, calls in found.by_source.items():
        at = allowed.at.get(place, NO_CEILINGS)
        own = [a for a in found.aliases if place in a.sources]
        certain = [a for a in own if len(a.sources) == 1]
        size = Range(sum(a.bytes.low for a in certain), sum(a.bytes.high for a in own))
        time = Range(max((a.seconds.low for a in certain), default=0.0), sum(a.seconds.high for a in own))
        yield from _exceeds(calls, at.calls, f"max_calls of {place}")
        yield from _exceeds(size, at.bytes, f"max_bytes of {place}")
        yield from _exceeds(time, at.seconds, f"max_seconds of {place}")
        yield from _exceeds(calls, allowed.today.get(place), f"what {place} takes today, which is")


def _exceeds(expected: Range, most: float | None, what: str) -> Iterator[str]:
    if most is None or expected.high <= most:
        return
    will = "will probably" if expected.low > most else "may"
    yield f"this {will} exceed {what} {_number(most)} (estimate {_number(expected.low)} to {_number(expected.high)})"


def _grounded(count: Count) -> str:
    return _rests_on(count) + (", selections unknown" if count.selected else "")


def _rests_on(count: Count) -> str:
    lookups = max(count.measured.lookups, count.measured.pages.groups)
    if not count.requests.high:
        return "stored"
    match count.ground:
        case Ground.KNOWN:
            return "known"
        case Ground.MEASURED:
            return f"measured in {max(1, round(lookups)):,} lookup{'s' if lookups >= 1.5 else ''}"
        case Ground.HARVESTED:
            return "harvested"
        case Ground.DECLARED:
            return "declared"
    return "guess"


def _joined(counts: Sequence[Count]) -> Range:
    """Rows of a block: as many as its largest relation, or one for each pair, or none."""
    return Range(0.0, max((count.rows.high for count in counts), default=0.0))


def _passed_on(stage: SqlStage, given: Mapping[str, Range]) -> Range:
    rows = sum(given.get(name, NONE).high for name in stage.reads)
    return Range(0.0, rows if stage.limit is None else min(rows, stage.limit))


def _may_stop_early(query: Query) -> bool:
    """Whether a LIMIT may be reached long before all is asked."""
    return any(isinstance(s, SqlStage) and s.rowwise and s.limit is not None for s in query.stages)


def _from_nothing(alias: AliasEstimate) -> AliasEstimate:
    def lower(of: Range) -> Range:
        return Range(0.0, of.high)

    return replace(
        alias,
        lookups=lower(alias.lookups),
        calls=lower(alias.calls),
        rows=lower(alias.rows),
        bytes=lower(alias.bytes),
        seconds=lower(alias.seconds),
    )


def _sum(ranges: Iterator[Range]) -> Range:
    return sum(ranges, NONE)


def _shown(many: Range, what: str) -> str:
    if round(many.low) == round(many.high):
        return f"{_number(many.high)} {what}{'' if round(many.high) == 1 else 's'}"
    return f"{_number(many.low)} to {_number(many.high)} {what}s"


def _seconds(took: Range) -> str:
    return (
        f"{took.low:.2g} to {took.high:.2g} s"
        if took.high < 100
        else f"{took.low:,.0f} to {took.high:,.0f} s"
    )


def _number(n: float) -> str:
    return f"{n:,.0f}" if n >= 10 or n == round(n) else f"{n:,.2g}"
