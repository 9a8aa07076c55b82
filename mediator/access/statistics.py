"""What access can tell about itself: per source, per method, per mirror. Figures of one moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mediator.access.limits.breaker import State
from mediator.access.limits.gate import Gate
from mediator.access.line import Line
from mediator.access.method import Method
from mediator.access.mirrors.latency import Distribution, Latency
from mediator.access.mirrors.runner import Runner


@dataclass(frozen=True, slots=True)
class MirrorStatistics:
    source: str
    base: str
    state: State  # of its breaker
    asked: int  # bindings that it was asked for, in the race or alone
    answered: int
    failed: int
    in_flight: int  # requests under way
    requests: int
    retried: int  # requests that were not the first for their page
    hedges: int  # times that it was sent after a mirror that was late
    errors: int  # requests that failed
    error_rate: float  # of late
    rows: int
    latency: Distribution  # of one request


@dataclass(frozen=True, slots=True)
class MethodStatistics:
    relation: str
    method: str
    asked: int  # bindings that have left the queue
    joined: int  # bindings that somebody else had asked for already
    answered: int
    failed: int
    cancelled: int
    in_flight: int  # bindings under way
    queued: int  # bindings that wait for their turn
    requests: int
    retried: int
    rows: int
    rows_per_lookup: float
    error_rate: float  # requests that failed ÷ requests
    latency: Distribution
    mirrors: tuple[MirrorStatistics, ...]


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """A method with several mirrors has its queue counted at the one that it would ask next."""

    source: str
    asked: int
    answered: int
    failed: int
    in_flight: int  # requests under way
    peak: int  # requests that were ever under way at once
    queued: int  # bindings and further pages that wait for their turn
    waiting: int  # those of them that the limiter, or the source's own word, holds back
    requests: int
    retried: int
    rows: int
    latency: Distribution
    width: int = 0  # requests that may be under way at once, as things stand
    tokens: int = 0  # requests beside those, for a token to log in with


@dataclass(frozen=True, slots=True)
class Statistics:
    sources: tuple[SourceStatistics, ...]
    methods: tuple[MethodStatistics, ...]

    def source(self, name: str) -> SourceStatistics:
        return next(s for s in self.sources if s.source == name)

    def method(self, relation: str, name: str) -> MethodStatistics:
        return next(m for m in self.methods if (m.relation, m.method) == (relation, name))


def gathered(gates: Iterable[Gate], methods: Sequence[Method], lines: Sequence[Line]) -> Statistics:
    """Everything, as it is now."""
    return Statistics(
        tuple(_source(gate, methods, lines) for gate in gates),
        tuple(_method(method, [line for line in lines if line.method is method]) for method in methods),
    )


def of_sources(
    names: Collection[str], gates: Iterable[Gate], methods: Sequence[Method], lines: Sequence[Line]
) -> tuple[SourceStatistics, ...]:
    """Of these sources alone."""
    return tuple(_source(gate, methods, lines) for gate in gates if gate.source.name in names)


def _source(gate: Gate, methods: Sequence[Method], lines: Sequence[Line]) -> SourceStatistics:
    runners = [r for method in methods for r in method.race.runners if r.gate is gate]
    queued = sum(runner.waiting() for runner in runners)
    queued += sum(line.waiting for line in lines if _next(line.method).gate is gate)
    limited = gate.limited_until() > gate.clock()
    counts = [runner.counts for runner in runners]
    return SourceStatistics(
        source=gate.source.name,
        asked=sum(c.asked for c in counts),
        answered=sum(c.answered for c in counts),
        failed=sum(c.failed for c in counts),
        in_flight=gate.inside,
        peak=gate.most,
        queued=queued,
        waiting=queued if limited else 0,
        requests=sum(c.requests for c in counts),
        retried=sum(c.retried for c in counts),
        rows=sum(c.rows for c in counts),
        latency=Latency.together(runner.latency for runner in runners),
        width=gate.width.places,
        tokens=gate.tokens,
    )


def _next(method: Method) -> Runner:
    runner = method.race.another(method.race.runners)
    assert runner is not None, "a method has at least one mirror"
    return runner


def _method(method: Method, lines: Sequence[Line]) -> MethodStatistics:
    counts, runners = method.counts, method.race.runners
    requests = sum(r.counts.requests for r in runners)
    rows = sum(r.counts.rows for r in runners)
    return MethodStatistics(
        relation=method.relation.name,
        method=method.declared.name,
        asked=counts.asked,
        joined=counts.joined,
        answered=counts.answered,
        failed=counts.failed,
        cancelled=counts.cancelled,
        in_flight=sum(len(line.flights) - line.waiting for line in lines),
        queued=sum(line.waiting for line in lines),
        requests=requests,
        retried=sum(r.counts.retried for r in runners),
        rows=rows,
        rows_per_lookup=rows / counts.answered if counts.answered else 0.0,
        error_rate=sum(r.counts.errors for r in runners) / requests if requests else 0.0,
        latency=Latency.together(runner.latency for runner in runners),
        mirrors=tuple(_mirror(runner) for runner in runners),
    )


def _mirror(runner: Runner) -> MirrorStatistics:
    counts = runner.counts
    return MirrorStatistics(
        source=runner.mirror.source,
        base=runner.mirror.base,
        state=runner.breaker.state,
        asked=counts.asked,
        answered=counts.answered,
        failed=counts.failed,
        in_flight=runner.inside,
        requests=counts.requests,
        retried=counts.retried,
        hedges=counts.hedges,
        errors=counts.errors,
        error_rate=runner.error_rate,
        rows=counts.rows,
        latency=runner.latency.distribution(),
    )
