"""What goes wrong is told as what it is: never as "no rows", and never as a crash."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import orjson

from mediator.access.reading import understood_now
from mediator.catalog.statement import Result
from mediator.catalog.wrapper import Interprets, Page, Reply
from mediator.errors import (
    Endless,
    RateLimited,
    Refused,
    SourceError,
    TimedOut,
    Unreachable,
)
from wrappers.cassettes import NotRecorded
from wrappers.conformance.asking import Exchange, Lookup
from wrappers.conformance.evidence import Evidence, request_of
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped
from wrappers.conformance.spoiling import NOW, Spoilt, garbage, refusals, waits

_READ = 2_000  # bytes of a reply in which it says what is wrong
_TOO_MANY = re.compile(
    r"too many requests|rate.?limit|quota|throttl|slow down|requests per (second|minute|hour|day)", re.I
)
_ERRORS = frozenset({"error", "errors", "errormessage", "errorcode", "fault", "exception", "failure"})
_FALSE = frozenset({"success", "ok", "succeeded"})
_BAD = re.compile("error|fail(ed|ure)?|ko", re.I)


def _site_answers(e: Evidence) -> Look:
    for lookup, error in e.failures():
        asked = lookup.exchanges and isinstance(error, Refused | TimedOut | Unreachable)
        if asked and not _is_throttled(lookup):
            return failed(error.message, request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def _is_throttled(lookup: Lookup) -> bool:
    return any(_says_too_many(x) for x in lookup.exchanges)


def _says_too_many(exchange: Exchange) -> bool:
    """Whether a reply that was taken for another failure means that there were too many requests."""
    reply, error = exchange.reply, exchange.error
    if reply is None or error is None or isinstance(error, RateLimited | Endless):
        return False
    if isinstance(error, Refused) and error.again:
        return False  # it is asked again as it is, and waits for as long as it was told to
    text = reply.body[:_READ].decode("utf-8", "replace")
    return _header(reply, "retry-after") != "" or _TOO_MANY.search(text) is not None


def _recorded(e: Evidence) -> Look:
    if not e.played:
        return not_for("the site itself is asked")
    missing = [(x, x.error) for _, x in e.exchanges() if isinstance(x.error, NotRecorded)]
    if missing:
        return failed(missing[0][1].message, missing[0][0].request)
    return PASSED if any(True for _ in e.exchanges()) else e.nothing_read()


def _throttling_declared(e: Evidence) -> Look:
    for _, exchange in e.exchanges():
        if _says_too_many(exchange):
            reply = exchange.reply
            assert reply is not None
            text = " ".join(reply.body[:120].decode("utf-8", "replace").split())
            return failed(
                f"{reply.status} is taken for a failure for good, but says: {text}",
                exchange.request,
                f"declare errors: [{{status: {reply.status}, means: rate_limited}}], with says if it means more",
            )
    return PASSED if any(True for _ in e.exchanges()) else e.nothing_read()


def _pace_borne(e: Evidence) -> Look:
    for _, exchange in e.exchanges():
        if isinstance(exchange.error, RateLimited):
            return failed(f"at the declared pace: {exchange.error.message}", exchange.request)
    return PASSED if e.good else e.nothing_read()


def _error_in_disguise(e: Evidence) -> Look:
    read = 0
    for lookup in e.all:
        for page in lookup.pages:
            read += 1
            assert page.reply is not None
            if page.rows or (isinstance(e.wrapper, Interprets) and e.wrapper.meaning(page.reply)):
                continue
            if what := _complaint(page.reply):
                return failed(f"read as no rows, but the reply says {what}", page.request)
    return PASSED if read else e.nothing_read()


def _complaint(reply: Reply) -> str:
    """How a JSON document says that something is wrong, if it does."""
    try:
        document = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(document, dict):
        return ""
    for name, value in document.items():
        plain = "".join(c for c in name.lower() if c.isalnum())
        if plain in _ERRORS and value:
            return f"{name}: {str(value)[:100]}"
        if plain in _FALSE and value is False:
            return f"{name}: false"
        if plain == "status" and isinstance(value, str) and _BAD.fullmatch(value):
            return f"{name}: {value}"
    return ""


def _failures_told(e: Evidence) -> Look:
    return _spoilt(e, refusals())


def _garbage_told(e: Evidence) -> Look:
    shows = _with_rows(e)
    if shows is None:
        return e.nothing_read() if not e.good else skipped("no reply with rows came that could be spoilt")
    assert shows[1].reply is not None
    return _spoilt(e, garbage(shows[1].reply))


def _retry_after(e: Evidence) -> Look:
    shows = _any(e)
    if shows is None:
        return e.nothing_read()
    if _is_database(shows[1]):
        return not_for("a database")
    for spoilt in waits():
        result = _understood(e, shows, spoilt)
        if isinstance(result, SourceError) and result.again and result.after != spoilt.after:
            return failed(f"{spoilt.what}: taken as {result.after} seconds", shows[1].request)
    return PASSED


def _spoilt(e: Evidence, spoilt: Iterable[Spoilt]) -> Look:
    shows = _with_rows(e) or _any(e)
    if shows is None:
        return e.nothing_read()
    if _is_database(shows[1]):
        return not_for("a database says what is wrong by itself")
    for one in spoilt:
        result = _understood(e, shows, one)
        if isinstance(result, Page):
            rows = result.rows.num_rows
            return failed(f"{one.what} is read as {f'{rows} rows' if rows else 'no rows'}", shows[1].request)
    return PASSED


def _no_crash(e: Evidence) -> Look:
    """Code that trips over a reply is taken for an unreadable reply; here it is told from one."""
    shows = _with_rows(e) or _any(e)
    if shows is None:
        return e.nothing_read()
    errors = [error for _, x in e.exchanges() if (error := x.error) is not None]
    errors += [error for lookup in e.all if (error := lookup.error) is not None]
    if shows[1].reply is not None and not _is_database(shows[1]):
        results = [_understood(e, shows, one) for one in (*refusals(), *garbage(shows[1].reply))]
        errors += [r for r in results if isinstance(r, SourceError)]
    for error in errors:
        cause = error.__cause__
        if (
            isinstance(cause, Exception)
            and not isinstance(cause, SourceError)
            and "the wrapper " in error.message
        ):
            return failed(error.message, shows[1].request)
    return PASSED


def _understood(e: Evidence, shows: tuple[Lookup, Exchange], spoilt: Spoilt) -> Page | SourceError:
    lookup, exchange = shows
    try:
        return understood_now(
            e.way, exchange.request, lookup.bind_set, lookup.bindings, spoilt.reply, lambda: NOW
        )
    except SourceError as error:
        return error


def _with_rows(e: Evidence) -> tuple[Lookup, Exchange] | None:
    return next(((lookup, page) for lookup in e.good for page in lookup.pages if page.rows), None)


def _any(e: Evidence) -> tuple[Lookup, Exchange] | None:
    return next(((lookup, page) for lookup in e.good for page in lookup.pages), None)


def _is_database(exchange: Exchange) -> bool:
    return isinstance(exchange.reply, Result)


def _header(reply: Reply, name: str) -> str:
    return next((value for key, value in reply.headers.items() if key.lower() == name), "")


def checks() -> Iterator[Check]:
    yield Check(
        "recorded",
        "where a cassette is played, every request of the suite is on it",
        "the requests have changed since: record them again, with mediator wrapper record",
        _recorded,
    )
    yield Check(
        "site-answers",
        "the site answers what it is asked for",
        "open the request's address by hand; look at base, path, auth, and the method",
        _site_answers,
    )
    yield Check(
        "throttling-declared",
        "a reply that means too many requests is taken for that",
        "declare it in errors, with means: rate_limited",
        _throttling_declared,
    )
    yield Check(
        "pace-borne",
        "the site bears the declared pace",
        "declare a lower rate for the source",
        _pace_borne,
    )
    yield Check(
        "error-in-disguise",
        "no reply that says that something is wrong is read as no rows",
        "declare errors: [{at: the place, means: fail}], or means: empty if that is how it says that it has none",
        _error_in_disguise,
    )
    yield Check(
        "failures-told",
        "a status that says no is a failure, never no rows",
        "take the status out of empty, and out of rules with means: empty; or narrow them with says",
        _failures_told,
    )
    yield Check(
        "garbage-told",
        "a reply that is no answer is a failure, never no rows",
        "let the wrapper look closer: rows at a place that only an answer has, nothing as narrow as it can be",
        _garbage_told,
    )
    yield Check(
        "retry-after",
        "the site's own word when to come back is heard, in seconds and as a date",
        "leave out after in the rule, or let the code pass the header on",
        _retry_after,
        after=("failures-told",),
    )
    yield Check(
        "no-crash",
        "the wrapper says what it cannot read, and does not trip over it",
        "raise SchemaChanged or Unreadable with what was expected and what was found",
        _no_crash,
    )
