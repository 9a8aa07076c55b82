"""How long to wait before asking again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

from mediator.access.fresh.http_date import http_date

# The date of the day, for the headers that need it.
Calendar = Callable[[], datetime]


@dataclass(frozen=True)
class Backoff:
    """Exponential, and jittered, so that those who failed together do not come back together."""

    random: Random
    first: float = 0.1
    longest: float = 10.0

    def delay(self, attempt: int, after: float | None = None) -> float:
        """Seconds between a failed attempt (counted from 1) and the next, never less than the site asked for.

        Between half of `first × 2^(attempt-1)` and all of it.
        """
        whole = min(self.first * 2 ** (attempt - 1), self.longest)
        jittered = self.random.uniform(whole / 2, whole)
        return jittered if after is None else max(after + jittered / 2, jittered)


def retry_after(headers: Mapping[str, str], today: Calendar) -> float | None:
    """The seconds that `Retry-After` asks for, be it a number or a date; none where it says nothing sensible.

    A date is measured from the reply's own `Date`, where there is one: the two clocks need not agree.
    """
    said = _header(headers, "retry-after")
    if said is None:
        return None
    if said.isascii() and said.isdigit() and len(said) < 10:
        return float(said)
    until = http_date(said)
    if until is None:
        return None
    sent = http_date(_header(headers, "date")) or today()
    return max(0.0, (until - sent).total_seconds())


def _header(headers: Mapping[str, str], name: str) -> str | None:
    return next((value.strip() for key, value in headers.items() if key.lower() == name), None)
