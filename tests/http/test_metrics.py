"""Metrics: what was counted, in the format of Prometheus."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from api.http import metrics
from api.http.metrics import Counter, Histogram, Metrics
from mediator.access.limits.breaker import State
from mediator.access.mirrors.latency import Distribution
from mediator.access.statistics import MethodStatistics, MirrorStatistics, SourceStatistics, Statistics

NOTHING = Statistics((), ())
_LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (NaN|[+-]Inf|-?[0-9.e+-]+)")


class Time:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def read(text: str) -> dict[str, float]:
    """Samples by name and labels; each metric is announced before its samples, which stand together."""
    assert text.endswith("\n")
    found: dict[str, float] = {}
    announced: list[str] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in announced
            announced.append(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == announced[-1]
            assert kind in ("counter", "gauge", "histogram", "summary")
            assert (kind == "counter") == name.endswith("_total")
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            assert re.sub("_(bucket|sum|count)$", "", sample[1]) in (announced[-1], sample[1])
            assert sample[1].startswith(announced[-1])
            key = sample[1] + (f"{{{sample[2]}}}" if sample[2] else "")
            assert key not in found
            found[key] = float(sample[3])
    return found


def source(name: str, **said: int) -> SourceStatistics:
    figures = dict.fromkeys(
        (
            "asked",
            "answered",
            "failed",
            "in_flight",
            "peak",
            "queued",
            "waiting",
            "requests",
            "retried",
            "rows",
        ),
        0,
    )
    return SourceStatistics(source=name, latency=Distribution(), **{**figures, **said})


def mirror(base: str, state: State) -> MirrorStatistics:
    return MirrorStatistics("shop", base, state, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, Distribution())


def method(*mirrors: MirrorStatistics) -> MethodStatistics:
    return MethodStatistics(
        "books", "by_isbn", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, Distribution(), mirrors
    )


def test_what_the_server_counted() -> None:
    time = Time()
    counted = Metrics(time)
    for _ in range(3):
        counted.queries_started.add()
    counted.queries_ended.add(status="complete")
    counted.queries_ended.add(status="failed")
    counted.rows_sent.add(512)
    counted.rows_sent.add(0)
    counted.bytes_sent.add(1000, format="text/csv")
    counted.bytes_sent.add(24, format="text/csv")
    counted.readers_dropped.add()
    counted.requested("/v1/queries/{id}", 200)
    counted.requested("/v1/queries/{id}", 204)
    counted.requested(None, 404)
    time.now += 12.5
    with counted.readers.held(), counted.readers.held():
        found = read(counted.render(NOTHING))
    assert found["mediator_queries_started_total"] == 3
    assert found['mediator_queries_ended_total{status="complete"}'] == 1
    assert found['mediator_queries_ended_total{status="failed"}'] == 1
    assert found["mediator_queries_running"] == 1
    assert found["mediator_rows_sent_total"] == 512
    assert found['mediator_bytes_sent_total{format="text/csv"}'] == 1024
    assert found["mediator_readers"] == 2
    assert found["mediator_readers_dropped_total"] == 1
    assert found['mediator_http_requests_total{route="/v1/queries/{id}",status="2xx"}'] == 2
    assert found['mediator_http_requests_total{route="none",status="4xx"}'] == 1
    assert found["mediator_uptime_seconds"] == 12.5
    assert read(counted.render(NOTHING))["mediator_readers"] == 0


def test_readers_that_fail_are_gone_too() -> None:
    counted = Metrics(Time())
    with pytest.raises(ValueError, match="spoilt"), counted.readers.held():
        raise ValueError("spoilt")
    assert counted.readers.value == 0


def test_a_server_that_has_just_begun_counts_nothing() -> None:
    found = read(Metrics(Time()).render(NOTHING))
    assert found["mediator_queries_started_total"] == 0
    assert found["mediator_first_row_seconds_count"] == 0
    assert not [name for name in found if name.startswith("mediator_queries_ended_total")]
    assert not [name for name in found if "source" in name or "mirror" in name]


def test_the_buckets_of_a_histogram_hold_all_below() -> None:
    counted = Metrics(Time())
    for seconds in (0.0, 0.01, 0.011, 0.3, 1000.0):
        counted.first_row.observe(seconds)
    found = read(counted.render(NOTHING))
    buckets = {k: v for k, v in found.items() if k.startswith("mediator_first_row_seconds_bucket")}
    assert buckets['mediator_first_row_seconds_bucket{le="0.01"}'] == 2
    assert buckets['mediator_first_row_seconds_bucket{le="0.025"}'] == 3
    assert buckets['mediator_first_row_seconds_bucket{le="300"}'] == 4
    assert buckets['mediator_first_row_seconds_bucket{le="+Inf"}'] == 5
    assert list(buckets.values()) == sorted(buckets.values())
    assert found["mediator_first_row_seconds_count"] == 5
    assert math.isclose(found["mediator_first_row_seconds_sum"], 1000.321)


def test_bounds_are_put_in_order() -> None:
    histogram = Histogram("x", "X.", (5, 1))
    histogram.observe(2)
    assert [value for _, _, value in histogram.samples()][:3] == [0, 1, 1]


def test_what_access_counted_of_each_source() -> None:
    quick = replace(
        source("shop", requests=9, rows=120, failed=1, queued=3), latency=Distribution(9, 0.2, 0.15, 0.4)
    )
    found = read(Metrics(Time()).render(Statistics((quick, source("silent")), ())))
    assert found['mediator_source_requests_total{source="shop"}'] == 9
    assert found['mediator_source_rows_total{source="shop"}'] == 120
    assert found['mediator_source_failed_total{source="shop"}'] == 1
    assert found['mediator_source_queued{source="shop"}'] == 3
    assert found['mediator_source_in_flight{source="silent"}'] == 0
    assert found['mediator_source_latency_seconds{source="shop",quantile="0.5"}'] == 0.15
    assert found['mediator_source_latency_seconds{source="shop",quantile="0.95"}'] == 0.4
    assert found['mediator_source_latency_seconds_count{source="shop"}'] == 9
    assert math.isnan(found['mediator_source_latency_seconds{source="silent",quantile="0.5"}'])


def test_the_state_of_each_breaker() -> None:
    method_ = method(mirror("http://a", State.CLOSED), mirror("http://b", State.OPEN))
    found = read(Metrics(Time()).render(Statistics((), (method_,))))
    known = 'relation="books",method="by_isbn",source="shop"'
    states = {
        state: found[f'mediator_mirror_breaker{{{known},base="http://b",state="{state}"}}']
        for state in ("closed", "open", "probation")
    }
    assert states == {"closed": 0, "open": 1, "probation": 0}
    assert found[f'mediator_mirror_breaker{{{known},base="http://a",state="closed"}}'] == 1


def test_passwords_are_not_shown_and_equal_series_stand_once() -> None:
    twice = mirror("postgresql://me:secret@db/x", State.CLOSED)
    text = Metrics(Time()).render(Statistics((), (method(twice, twice),)))
    read(text)
    assert "secret" not in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('a"b', r"a\"b"),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("ü", "ü"),
        ("\ud800", "?"),
        ('\\"\n', r"\\\"\n"),
    ],
)
def test_names_are_escaped(name: str, shown: str) -> None:
    text = Metrics(Time()).render(Statistics((source(name, requests=2),), ()))
    text.encode()
    assert read(text)[f'mediator_source_requests_total{{source="{shown}"}}'] == 2


def test_labels_are_those_that_were_said_and_counters_grow() -> None:
    counter = Counter("x_total", "X.", "a")
    several: list[dict[str, str]] = [{}, {"b": "1"}, {"a": "1", "b": "1"}]
    for wrong in several:
        with pytest.raises(ValueError, match="has the labels"):
            counter.add(1, **wrong)
    with pytest.raises(ValueError, match="grows"):
        counter.add(-1, a="1")
    assert counter.total() == 0


def test_memory_is_told_where_the_system_does(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(Metrics(Time()).render(NOTHING))
    assert found["process_resident_memory_bytes"] > 1 << 20
    monkeypatch.setattr(metrics, "_MEMORY", metrics._MEMORY / "none")
    assert "process_resident_memory_bytes" not in read(Metrics(Time()).render(NOTHING))


def test_large_and_fractional_numbers() -> None:
    counted = Metrics(Time())
    counted.rows_sent.add(2**53)
    counted.first_row.observe(1e-9)
    found = read(counted.render(NOTHING))
    assert found["mediator_rows_sent_total"] == 2**53
    assert found["mediator_first_row_seconds_sum"] == 1e-9
