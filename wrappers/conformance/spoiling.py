"""Replies as a site sends them on a bad day, made of one that it sent on a good one. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from mediator.catalog.wrapper import Reply

AFTER = 7.0  # seconds that a spoilt reply asks to wait
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

_PAGE = (
    b"<!doctype html><html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>"
)
_HTML = "text/html; charset=utf-8"
_LATER = (NOW + timedelta(seconds=AFTER)).strftime("%a, %d %b %Y %H:%M:%S GMT")


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A reply that must end as a failure, and what was done to it."""

    what: str
    reply: Reply
    after: float | None = None  # seconds to wait, as it says itself


def refusals() -> Iterator[Spoilt]:
    """Replies whose status says that there is no answer."""
    for status in (401, 403, 500, 502, 503, 504):
        yield Spoilt(f"status {status}", _page(status))
    yield Spoilt("status 429", _page(429))


def waits() -> Iterator[Spoilt]:
    """Replies that say when to come back: in seconds, and as a date."""
    for status in (429, 503):
        yield Spoilt(f"status {status}, Retry-After: 7", _page(status, **{"retry-after": "7"}), AFTER)
        yield Spoilt(f"status {status}, Retry-After: a date", _page(status, **{"retry-after": _LATER}), AFTER)


def garbage(good: Reply) -> Iterator[Spoilt]:
    """Replies with status 200 that are no answer. `good` is one that brought rows.

    A list that was cut off after one of its lines is a shorter list: only formats that have an end are cut.
    """
    yield Spoilt("an error page with status 200", _page(200))
    yield Spoilt("bytes that are no text", Reply(200, good.headers, b"\xff\xfe\x00\xd8" + good.body[:50]))
    if good.body[:4] == b"PAR1" or _is_json(good.body):
        yield Spoilt("half of the reply", Reply(200, good.headers, good.body[: len(good.body) // 2]))
        yield Spoilt("an empty reply with status 200", Reply(200, good.headers, b""))
    if _is_json(good.body):
        said = b'{"error": {"code": 500, "message": "backend not available"}}'
        yield Spoilt("JSON that only names an error, with status 200", Reply(200, good.headers, said))


def _page(status: int, **headers: str) -> Reply:
    return Reply(status, {"content-type": _HTML, **headers}, _PAGE)


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(orjson.loads(body), dict | list)
    except orjson.JSONDecodeError:
        return False
