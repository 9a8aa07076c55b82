"""What Prometheus is told: what the server counts, and what access counts of the sites. Text format 0.0.4.

Labels are names out of catalogs and of this code, never what a client has written: each value is a series that is kept
for as long as the process lives.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mediator.access.limits.breaker import State
from mediator.access.mirrors.latency import Distribution
from mediator.access.statistics import MirrorStatistics, SourceStatistics, Statistics
from mediator.access.web.quoting import bare
from mediator.clock import Clock, monotonic

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FIRST_ROW = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)  # seconds

_MEMORY = Path("/proc/self/statm")

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]  # what is put behind the name, labels, value


class Counter:
    """What only grows."""

    kind = "counter"

    def __init__(self, name: str, help_: str, *labels: str) -> None:
        self.name, self.help = name, help_
        self._labels = labels
        self._counts: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, by: float = 1, **labels: str) -> None:
        """A value for each label."""
        if by < 0 or labels.keys() != set(self._labels):
            raise ValueError(f"{self.name} grows, and has the labels {self._labels}: {by}, {labels}")
        known = tuple((name, labels[name]) for name in self._labels)
        self._counts[known] = self._counts.get(known, 0) + by

    def total(self) -> float:
        return sum(self._counts.values())

    def samples(self) -> Iterator[Sample]:
        for labels, count in self._counts.items():
            yield "", labels, count


class Gauge:
    """What comes and goes."""

    kind = "gauge"

    def __init__(self, name: str, help_: str) -> None:
        self.name, self.help = name, help_
        self.value = 0.0

    def add(self, by: float = 1) -> None:
        self.value += by

    @contextmanager
    def held(self) -> Iterator[None]:
        """One more within."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)

    def samples(self) -> Iterator[Sample]:
        yield "", (), self.value


class Histogram:
    """How many were not above each bound."""

    kind = "histogram"

    def __init__(self, name: str, help_: str, bounds: Sequence[float]) -> None:
        self.name, self.help = name, help_
        self._bounds = (*sorted(bounds), math.inf)
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[Sample]:
        count = 0
        for bound, more in zip(self._bounds, self._counts, strict=True):
            count += more
            yield "_bucket", (("le", _number(bound)),), count
        yield "_sum", (), self._sum
        yield "_count", (), count


class Metrics:
    """All that one server counts."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock, self._since = clock, clock()
        self.queries_started = Counter("mediator_queries_started_total", "Queries that were begun.")
        self.queries_ended = Counter(
            "mediator_queries_ended_total", "Queries that have ended, by how.", "status"
        )
        self.first_row = Histogram(
            "mediator_first_row_seconds", "From a query's beginning to its first row.", FIRST_ROW
        )
        self.rows_sent = Counter("mediator_rows_sent_total", "Rows that were sent to readers.")
        self.bytes_sent = Counter(
            "mediator_bytes_sent_total", "Bytes of results that were sent, by format.", "format"
        )
        self.readers = Gauge("mediator_readers", "Readers of results that are connected.")
        self.readers_dropped = Counter(
            "mediator_readers_dropped_total", "Readers that were dropped, as they took nothing."
        )
        self.requests = Counter(
            "mediator_http_requests_total", "Requests, by route and class of status.", "route", "status"
        )

    def requested(self, route: str | None, status: int) -> None:
        """A request was answered. `route` is the pattern, such as `/v1/queries/{id}`; None where there is none."""
        self.requests.add(route=route or "none", status=f"{status // 100}xx")

    def render(self, statistics: Statistics) -> str:
        """Everything, as it is now."""
        counted = (
            self.queries_started, self.queries_ended, self.first_row, self.rows_sent, self.bytes_sent,
            self.readers, self.readers_dropped, self.requests,
        )  # fmt: skip
        lines: list[str] = []
        for one in counted:
            lines += _family(one.name, one.kind, one.help, one.samples())
        running = self.queries_started.total() - self.queries_ended.total()
        lines += _family("mediator_queries_running", "gauge", "Queries that run.", [("", (), running)])
        lines += _of_the_process(self._clock() - self._since)
        lines += _of_sources(statistics.sources)
        lines += _of_mirrors(statistics)
        return "\n".join(lines) + "\n"


def _of_the_process(uptime: float) -> Iterator[str]:
    yield from _family("mediator_uptime_seconds", "gauge", "Since the server began.", [("", (), uptime)])
    if (memory := _resident()) is not None:
        help_ = "Memory of the process that is in use."
        yield from _family("process_resident_memory_bytes", "gauge", help_, [("", (), memory)])


def _of_sources(sources: Sequence[SourceStatistics]) -> Iterator[str]:
    for name, kind, help_, field in (
        ("requests_total", "counter", "Requests that were sent to a source.", "requests"),
        ("retried_total", "counter", "Requests that were not the first for their page.", "retried"),
        ("lookups_total", "counter", "Bindings that a source was asked for.", "asked"),
        ("answered_total", "counter", "Bindings that a source has answered.", "answered"),
        ("failed_total", "counter", "Bindings that a source has failed to answer.", "failed"),
        ("rows_total", "counter", "Rows that a source has sent.", "rows"),
        ("in_flight", "gauge", "Requests that are under way.", "in_flight"),
        ("width", "gauge", "Requests that may be under way at once.", "width"),
        ("queued", "gauge", "Bindings and further pages that wait for their turn.", "queued"),
        ("waiting", "gauge", "Those of them that a limit holds back.", "waiting"),
    ):
        samples: list[Sample] = [("", (("source", s.source),), getattr(s, field)) for s in sources]
        yield from _family(f"mediator_source_{name}", kind, help_, samples)
    yield from _family(
        "mediator_source_latency_seconds",
        "summary",
        "How long the latest requests took.",
        [sample for s in sources for sample in _summary((("source", s.source),), s.latency)],
    )


def _of_mirrors(statistics: Statistics) -> Iterator[str]:
    """A mirror of several methods has a breaker for each."""
    samples: list[Sample] = []
    for method in statistics.methods:
        for mirror in method.mirrors:
            known = (("relation", method.relation), ("method", method.method), *_mirror(mirror))
            samples += [("", (*known, ("state", s.value)), float(mirror.state is s)) for s in State]
    yield from _family(
        "mediator_mirror_breaker", "gauge", "Of a mirror's breaker: 1 for the state that it is in.", samples
    )


def _mirror(mirror: MirrorStatistics) -> Labels:
    return (("source", mirror.source), ("base", bare(mirror.base)))


def _summary(labels: Labels, latency: Distribution) -> Iterator[Sample]:
    """Without a sum: what is known is a moving mean, of which a rate would mean nothing."""
    for quantile, seconds in (("0.5", latency.p50), ("0.95", latency.p95)):
        yield "", (*labels, ("quantile", quantile)), seconds if latency.count else math.nan
    yield "_count", labels, latency.count


def _family(name: str, kind: str, help_: str, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of one metric. Of samples with equal labels, which Prometheus refuses, the last counts."""
    last: Mapping[tuple[str, Labels], float] = {(suffix, labels): value for suffix, labels, value in samples}
    if not last:
        return
    yield f"# HELP {name} {_escaped(help_)}"
    yield f"# TYPE {name} {kind}"
    for (suffix, labels), value in last.items():
        yield f"{name}{suffix}{_labels(labels)} {_number(value)}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    """A label's value. What is no text in UTF-8 is replaced."""
    return _escaped(text).replace('"', r"\"").encode("utf-8", "replace").decode()


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _resident() -> int | None:
    """Bytes; None where the system does not say."""
    try:
        return int(_MEMORY.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
