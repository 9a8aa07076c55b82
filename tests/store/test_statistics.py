"""What was measured outlives the process, grows old, and is never worth failing for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.catalog.measured import HALF_LIFE, Measured, Measurements, Place
from mediator.catalog.sketches import Distinct, Histogram, Moments
from mediator.store import notes, statistics
from mediator.store.statistics import FILE
from tests.store.kit import NOON

HERE = Place("r", "by_k", "site")
DAY = 86_400.0

seconds = st.floats(1e-4, 1e3)


def histogram(values: list[float]) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


def moments(groups: list[tuple[int, float]]) -> Moments:
    found = Moments()
    for lookups, total in groups:
        found.add(lookups, total)
    return found


def distinct(values: Iterable[object]) -> Distinct:
    found = Distinct()
    found.add(values)
    return found


def some(requests: int = 10) -> Measured:
    found = Measured()
    for n in range(requests):
        found.requests += 1
        found.latency.add(0.1 * (n + 1))
        found.answered([(n,), (n + 1,)], rows=5, pages=2, size=300)
    found.failed("timed out")
    return found


class TestSketches:
    @given(st.lists(seconds, min_size=1, max_size=200), st.floats(0.01, 1.0))
    def test_a_quantile_is_off_by_a_bucket_at_most(self, values: list[float], q: float) -> None:
        exact = sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]
        assert histogram(values).quantile(q) == pytest.approx(exact, rel=0.1)

    @given(st.lists(seconds, max_size=50), st.lists(seconds, max_size=50))
    def test_two_histograms_together_are_the_one_of_all(self, one: list[float], other: list[float]) -> None:
        together, all_ = histogram(one).plus(histogram(other)), histogram(one + other)
        assert together.buckets == pytest.approx(all_.buckets)
        assert together.mean == pytest.approx(all_.mean)

    def test_an_empty_one_says_nothing(self) -> None:
        assert (Histogram().mean, Histogram().quantile(0.5)) == (0.0, 0.0)
        assert (Moments().mean, Moments().spread, Distinct().count) == (0.0, 0.0, 0.0)

    @given(st.lists(st.integers(0, 50), min_size=2, max_size=60))
    def test_moments_of_single_lookups_are_mean_and_deviation(self, rows: list[int]) -> None:
        found = moments([(1, float(n)) for n in rows])
        mean = sum(rows) / len(rows)
        assert found.mean == pytest.approx(mean)
        assert found.spread == pytest.approx(
            math.sqrt(sum((n - mean) ** 2 for n in rows) / len(rows)), abs=1e-4
        )

    def test_the_spread_of_one_lookup_shows_through_those_that_share_a_request(self) -> None:
        """Groups of four, whose means vary half as much as single lookups do."""
        alone = moments([(1, float(n % 7)) for n in range(700)])
        values = [float(n * n % 7) for n in range(2_800)]
        packed = moments([(4, sum(values[i : i + 4])) for i in range(0, 2_800, 4)])
        assert alone.spread == pytest.approx(2.0, rel=0.01)
        assert packed.weight == 2_800
        assert packed.mean == pytest.approx(sum(values) / len(values))

    @given(st.integers(0, 5_000))
    @settings(max_examples=20)
    def test_different_values_are_counted_about_right(self, many: int) -> None:
        found = distinct(range(many))
        found.add(range(many // 2))
        assert found.count == many if many < 64 else 0.5 * many < found.count < 2.0 * many

    def test_two_counts_of_different_values_together_are_the_one_of_all(self) -> None:
        assert distinct(range(200)).plus(distinct(range(100, 400))) == distinct(range(400))


class TestAge:
    def test_after_a_half_life_it_counts_half(self) -> None:
        found = Measurements({HERE: some()})
        found.age(HALF_LIFE)
        old = found.at(HERE)
        assert old.requests == 5
        assert old.lookups == 10
        assert old.latency.weight == pytest.approx(5)
        assert old.rows.mean == some().rows.mean
        assert old.error_rate == some().error_rate

    def test_what_is_old_is_outweighed_by_what_is_new(self) -> None:
        found = Measurements({HERE: some()})
        found.age(10 * HALF_LIFE)
        for _ in range(20):
            found.adding(HERE).latency.add(9.0)
        assert found.at(HERE).latency.quantile(0.5) == pytest.approx(9.0, rel=0.1)

    def test_what_is_too_old_is_forgotten_and_a_clock_set_back_makes_nothing_young(self) -> None:
        found = Measurements({HERE: some()})
        found.age(-DAY)
        assert found.at(HERE).requests == 10
        found.age(100 * HALF_LIFE)
        assert len(found) == 0


class TestTheFile:
    def test_gives_back_what_was_kept(self, tmp_path: Path) -> None:
        kept = Measurements({HERE: some(), Place("r", "by_k", "other"): some(3)})
        statistics.save(tmp_path, statistics.written(kept, NOON))
        assert dict(statistics.load(tmp_path, NOON)) == dict(kept)
        assert statistics.load(tmp_path, NOON + HALF_LIFE).at(HERE).requests == 5
        assert statistics.load(tmp_path, NOON - DAY).at(HERE).requests == 10

    @settings(max_examples=40)
    @given(
        st.lists(seconds, max_size=30),
        st.lists(st.tuples(st.integers(1, 20), st.integers(0, 100)), max_size=10),
        st.dictionaries(st.text(max_size=9), st.integers(1, 9), max_size=3),
    )
    def test_whatever_was_measured(
        self, latencies: list[float], lookups: list[tuple[int, int]], errors: dict[str, int]
    ) -> None:
        found = Measured(latency=histogram(latencies), requests=float(len(latencies) + 1))
        for many, rows in lookups:
            found.answered([(n, "é") for n in range(many)], rows, 1, 10 * rows)
        for kind, times in errors.items():
            for _ in range(times):
                found.failed(kind)
        text = json.dumps(statistics.written(Measurements({HERE: found}), NOON), allow_nan=False)
        entry = json.loads(text)["measured"][0]
        assert statistics.entry(entry) == (HERE, found)

    def test_there_need_not_be_one(self, tmp_path: Path) -> None:
        assert len(statistics.load(tmp_path, NOON)) == 0

    @pytest.mark.parametrize(
        "damage",
        [
            b"",
            b"\x00" * 100,
            b"[1]",
            b"{}",
            b'{"version": 99, "at": 0, "measured": []}',
            b'{"version": 1, "at": NaN, "measured": []}',
            b'{"version": 1, "at": 0, "measured": [{}]}',
            b'{"version": 1, "at": 0, "measured": 7}',
            b"[" * 100_000,
        ],
    )
    def test_a_damaged_one_is_discarded_with_a_warning(
        self, tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / FILE).write_bytes(damage)
        assert len(statistics.load(tmp_path, NOON)) == 0
        assert "What was measured before is discarded" in caplog.text
        statistics.save(tmp_path, statistics.written(Measurements({HERE: some()}), NOON))
        assert len(statistics.load(tmp_path, NOON)) == 1

    @settings(max_examples=150)
    @given(st.data())
    def test_a_damaged_number_never_gets_in(self, data: st.DataObject) -> None:
        written = statistics.written(Measurements({HERE: some()}), NOON)["measured"][0]
        field = data.draw(st.sampled_from(sorted(written)))
        written[field] = data.draw(
            st.one_of(
                st.none(),
                st.integers(max_value=-1),
                st.just(math.inf),
                st.just([-1.0] * 4),
                st.just([1.0] * 5),
                st.just([0.0, 1.0, 1.0, 1.0]),
                st.just([1e30] * 4),
                st.just({"buckets": {"x": 1}, "total": 1}),
                st.just({"buckets": {"99999": 1.0}, "total": 1}),
                st.just([1 << 60]),
            )
        )
        with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
            statistics.entry(written)

    def test_one_that_was_not_finished_is_not_seen(self, tmp_path: Path) -> None:
        statistics.save(tmp_path, statistics.written(Measurements({HERE: some()}), NOON))
        (tmp_path / f"{FILE}.unfinished").write_text("{")
        assert len(statistics.load(tmp_path, NOON)) == 1

    def test_a_look_at_a_damaged_one_says_so(self, tmp_path: Path) -> None:
        (tmp_path / FILE).write_text("no")
        with pytest.raises(notes.Unreadable, match=r"statistics\.json is damaged"):
            statistics.read(tmp_path, NOON)
