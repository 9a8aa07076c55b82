"""The parts of access that neither wait nor send: breaker, limiter, latency, backoff, addresses, body."""

from __future__ import annotations

import asyncio
import gzip
import math
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from ipaddress import ip_address
from random import Random

import pytest

from mediator.access.limits.backoff import Backoff, retry_after
from mediator.access.limits.breaker import Breaker, State
from mediator.access.limits.gate import Gate
from mediator.access.limits.limiter import Limiter
from mediator.access.mirrors.latency import Latency
from mediator.access.web.addresses import is_public
from mediator.access.web.body import read_body, unpacked
from mediator.catalog.model import Source
from mediator.errors import Unreachable, Unreadable


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestBreaker:
    def test_opens_after_failures_in_a_row_only(self) -> None:
        breaker = Breaker(failures=3, cool_down=1.0)
        for outcome in (False, False, True, False, False):
            breaker.succeeded() if outcome else breaker.failed(0.0)
        assert breaker.state is State.CLOSED
        breaker.failed(5.0)
        assert (breaker.state, breaker.ready_at) == (State.OPEN, 6.0)

    def test_lets_one_in_on_probation_and_doubles_the_cool_down_when_it_fails(self) -> None:
        breaker = Breaker(failures=1, cool_down=1.0, longest=3.0)
        breaker.failed(0.0)
        assert breaker.enter()
        assert breaker.ready_at == math.inf
        breaker.failed(1.0, on_probation=True)
        assert breaker.ready_at == 3.0
        breaker.enter()
        breaker.failed(3.0, on_probation=True)
        assert breaker.ready_at == 6.0, "the cool-down grows to its longest and no further"

    def test_closes_when_the_one_on_probation_succeeds(self) -> None:
        breaker = Breaker(failures=1)
        breaker.failed(0.0)
        breaker.enter()
        breaker.succeeded()
        assert breaker.state is State.CLOSED
        assert not breaker.enter()

    def test_whoever_is_called_back_on_probation_leaves_it_to_the_next(self) -> None:
        breaker = Breaker(failures=1, cool_down=1.0)
        breaker.failed(0.0)
        breaker.enter()
        breaker.abandoned()
        assert (breaker.state, breaker.ready_at) == (State.OPEN, 1.0)

    def test_stragglers_of_before_do_not_prolong_it(self) -> None:
        breaker = Breaker(failures=1, cool_down=1.0)
        breaker.failed(0.0)
        breaker.failed(0.9)
        assert breaker.ready_at == 1.0


class TestLimiter:
    @pytest.mark.parametrize("rate", [0.5, 1.0, 7.0, 20.0, 400.0])
    def test_never_more_than_the_rate_over_any_second(self, rate: float) -> None:
        clock = Hand()
        limiter = Limiter(rate, clock)
        taken: list[float] = []
        while len(taken) < 60:
            clock.now = max(clock.now, limiter.ready_at())
            limiter.take()
            taken.append(clock.now)
        window = max(1.0, 1.0 / rate)
        for i, first in enumerate(taken):
            assert sum(first <= t < first + window for t in taken[i:]) <= max(1.0, rate)
        assert taken[-1] <= 60 / rate * 1.05, "and no slower than it must be"

    def test_a_gate_that_is_held_lets_nobody_in_before(self) -> None:
        clock = Hand()
        gate = Gate(Source("s", concurrency=1), clock)
        gate.hold(4.0)
        gate.hold(2.0)
        assert gate.ready_at() == 4.0
        gate.enter()
        assert gate.ready_at() == math.inf


class TestLatency:
    def test_percentiles_are_of_the_latest_samples(self) -> None:
        latency = Latency()
        for _ in range(200):
            latency.add(9.0, now=0.0)
        for i in range(1, 129):
            latency.add(i / 128, now=0.0)
        assert latency.quantile(0.5) == 0.5
        assert latency.quantile(0.95) == pytest.approx(0.953, abs=0.01)

    def test_a_lower_bound_is_news_only_when_it_is_long(self) -> None:
        latency = Latency()
        latency.add(1.0, now=0.0)
        latency.at_least(0.5, now=0.0)
        assert latency.count == 1
        latency.at_least(3.0, now=0.0)
        assert latency.mean == pytest.approx(1.4)

    def test_what_was_measured_long_ago_weighs_little(self) -> None:
        latency = Latency()
        latency.add(1.0, now=0.0)
        latency.add(0.1, now=60.0)
        assert latency.mean == pytest.approx(0.1, abs=0.01)

    def test_nothing_measured(self) -> None:
        assert Latency().quantile(0.95) == 0.0
        assert Latency.together([Latency()]).count == 0


class TestBackoff:
    def test_grows_within_its_bounds_and_is_spread(self) -> None:
        backoff = Backoff(Random(7), first=0.1, longest=2.0)
        for attempt in range(1, 9):
            whole = min(0.1 * 2 ** (attempt - 1), 2.0)
            delays = [backoff.delay(attempt) for _ in range(50)]
            assert all(whole / 2 <= d <= whole for d in delays)
            assert max(delays) - min(delays) > whole / 4

    def test_never_sooner_than_the_site_asked_for(self) -> None:
        backoff = Backoff(Random(7))
        assert all(3.0 < backoff.delay(1, after=3.0) <= 3.1 for _ in range(50))
        assert backoff.delay(1, after=0.0) >= 0.05

    @pytest.mark.parametrize(
        ("said", "seconds"),
        [
            ("7", 7.0),
            (" 0 ", 0.0),
            ("Tue, 03 Nov 2026 10:00:30 GMT", 30.0),
            ("Tue, 03 Nov 2026 09:00:00 GMT", 0.0),
            ("soon", None),
            ("-1", None),
            ("1e9", None),
            ("٣", None),
            ("9" * 40, None),
        ],
    )
    def test_retry_after(self, said: str, seconds: float | None) -> None:
        assert retry_after({"Retry-After": said}, lambda: datetime(2026, 11, 3, 10, tzinfo=UTC)) == seconds

    def test_a_date_is_measured_from_the_sites_own_clock(self) -> None:
        headers = {"retry-after": "Tue, 03 Nov 2026 10:00:05 GMT", "date": "Tue, 03 Nov 2026 10:00:00 GMT"}
        assert retry_after(headers, lambda: datetime(2026, 11, 3, 11, tzinfo=UTC)) == 5.0


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
    ],
)
def test_private_addresses(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))


class Wire:
    """Bytes as they come off a wire."""

    def __init__(self, data: bytes, at_once: int = 1 << 20) -> None:
        self._data, self._at_once = data, at_once

    async def iter_chunked(self, n: int, /) -> AsyncIterator[bytes]:
        n = min(n, self._at_once)
        for start in range(0, len(self._data), n):
            yield self._data[start : start + n]


def read(data: bytes, encoding: str = "", most: int = 1 << 20) -> bytes:
    return asyncio.run(read_body(Wire(data), encoding, most))


class TestBody:
    plain = b"rows and rows " * 5_000

    def test_every_packing_that_is_asked_for(self) -> None:
        bare = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        assert read(self.plain) == self.plain
        assert read(gzip.compress(self.plain), "gzip") == self.plain
        assert read(zlib.compress(self.plain), "deflate") == self.plain
        assert read(bare.compress(self.plain) + bare.flush(), "deflate") == self.plain
        assert read(gzip.compress(zlib.compress(self.plain)), "deflate, gzip") == self.plain
        assert read(gzip.compress(self.plain) + gzip.compress(self.plain), "gzip") == self.plain * 2
        assert read(b"", "gzip") == b""

    def test_too_much_is_refused_while_it_is_read(self) -> None:
        with pytest.raises(Unreadable, match="larger than 1,000 bytes"):
            read(self.plain, most=1_000)
        with pytest.raises(Unreadable, match="larger than 1,048,576 bytes"):
            read(gzip.compress(bytes(1 << 24)), "gzip")

    @pytest.mark.parametrize("packing", ["", "gzip"])
    @pytest.mark.parametrize("at_once", [100, 999, 1_000, 1_001, 1 << 20])
    def test_all_that_is_allowed_has_come_by_then(self, packing: str, at_once: int) -> None:
        """However much of it comes at once: a busy loop finds as many rows as an idle one."""
        data = gzip.compress(self.plain) if packing else self.plain
        came = bytearray()

        async def collect() -> None:
            async for chunk in unpacked(Wire(data, at_once), packing, 1_000):
                came.extend(chunk)

        with pytest.raises(Unreadable, match="larger than 1,000 bytes"):
            asyncio.run(collect())
        assert came == self.plain[:1_000]

    def test_what_is_cut_off_or_garbled_may_be_asked_again(self) -> None:
        with pytest.raises(Unreachable, match="cut off") as cut:
            read(gzip.compress(self.plain)[:-20], "gzip")
        with pytest.raises(Unreadable, match="cannot be unpacked") as garbled:
            read(self.plain, "gzip")
        assert cut.value.again
        assert garbled.value.again

    def test_an_unknown_packing_is_named(self) -> None:
        with pytest.raises(Unreadable, match="'br'"):
            read(b"", "br")
