"""For how long a reply may be used again, in the site's own words (RFC 9111). Pure.

To a site the mediator is one visitor, whoever asks it: what is `private` is meant for it. But it answers many, so
`s-maxage` is heeded too, and of all that is said the shortest counts. `must-revalidate` says nothing new: what is
stale is always asked again. Where nothing is said nothing is guessed: a heuristic is right about pages on the
average, and a query is about the very row that has just changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mediator.access.fresh.http_date import http_date
from mediator.access.limits.backoff import Calendar

_LONGEST = 2.0**31  # seconds, as in RFC 9111 1.2.2: anything longer means "for ever"
_DIRECTIVE = re.compile(r"\s*([^\s=,\"]+)\s*(?:=\s*(\"(?:[^\"\\]|\\.)*\"\s*|[^\",]*))?(?:,|$)|[^,]*(?:,|$)")
_LIFETIMES = ("max-age", "s-maxage")


@dataclass(frozen=True, slots=True)
class Vouched:
    """What a site says of a reply."""

    seconds: float | None  # that it stays fresh from now on; none where nothing is said
    stored: bool = True  # it may be written down


def vouched(headers: Mapping[str, str], took: float, today: Calendar) -> Vouched:
    """By a reply's headers, named in small letters. `took` is how many seconds it was under way."""
    said = directives(headers.get("cache-control", ""))
    stored = "no-store" not in said
    if not stored or "no-cache" in said:
        return Vouched(0.0, stored)
    lifetime = _lifetime(headers, said, today)
    if lifetime is None:
        return Vouched(None)
    return Vouched(max(0.0, lifetime - _age(headers, took, today)))


def directives(text: str) -> dict[str, list[str]]:
    """Each directive of `Cache-Control` with every argument that it was given. What cannot be read is passed over."""
    found: dict[str, list[str]] = {}
    for match in _DIRECTIVE.finditer(text):
        if match[1]:
            found.setdefault(match[1].lower(), []).append(_unquoted((match[2] or "").strip()))
    return found


def _lifetime(headers: Mapping[str, str], said: Mapping[str, list[str]], today: Calendar) -> float | None:
    """Seconds from when the site wrote it. What makes no sense, or was said twice, counts as the shortest."""
    spans = [_seconds(text) for name in _LIFETIMES for text in said.get(name, ())]
    if spans:
        return min(0.0 if span is None else span for span in spans)
    if "expires" not in headers:
        return None
    until = http_date(headers["expires"])
    return (until - _written(headers, today)).total_seconds() if until else 0.0


def _age(headers: Mapping[str, str], took: float, today: Calendar) -> float:
    """Seconds since the site wrote it. A cache on the way may have said so, or may have kept silent about it."""
    told = _seconds(headers.get("age", "").partition(",")[0].strip()) or 0.0
    apparent = (today() - _written(headers, today)).total_seconds()
    return max(told + took, apparent, 0.0)


def _written(headers: Mapping[str, str], today: Calendar) -> datetime:
    return http_date(headers.get("date")) or today()


def _seconds(text: str) -> float | None:
    if not (text.isascii() and text.isdigit()):
        return None
    return min(float(text[:20]), _LONGEST)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
