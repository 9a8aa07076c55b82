"""The wrapper as such: it says the same when it is asked the same, does no I/O, and gives no secret away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from yarl import URL

from mediator.access.reading import understood_now
from mediator.access.web.quoting import quoted
from mediator.access.web.redaction import MARK
from mediator.catalog.wrapper import Page, Reply
from mediator.errors import SourceError
from wrappers.cassettes.scrubbing import is_secret
from wrappers.conformance.asking import Exchange, Lookup, rows_of
from wrappers.conformance.evidence import Evidence, request_of
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for
from wrappers.conformance.watched import io_of

_HARMLESS = re.compile(r"(?i)^\s*(bearer|basic|token|key)?\s*$")


def _request_written(e: Evidence) -> Look:
    for lookup, error in e.failures():
        if not lookup.exchanges:
            return failed(error.message)
    return PASSED if any(lookup.exchanges for lookup in e.known) else e.nothing_read()


def _request_repeats(e: Evidence) -> Look:
    asked = [lookup for lookup in e.known if lookup.exchanges]
    for lookup in asked:
        first = lookup.exchanges[0].request
        again = e.wrapper.request(lookup.bind_set, lookup.bindings)
        if again != first:
            return failed("written again for the same binding, the request is another one", again)
    return PASSED if asked else e.nothing_read()


def _reading_repeats(e: Evidence) -> Look:
    """Replies are read once more, the last one first."""
    read = [(lookup, page) for lookup in e.good for page in lookup.pages]
    for lookup, page in reversed(read):
        assert page.page is not None
        again = _read(e, lookup, page)
        if isinstance(again, SourceError):
            return failed(f"read once more, it cannot be read: {again.message}", page.request)
        if repr(rows_of(again)) != repr(page.rows) or again.then != page.page.then:
            return failed(
                f"read once more, {again.rows.num_rows} rows and {len(again.then)} further requests are in it, "
                f"where {len(page.rows)} and {len(page.page.then)} were before, or others",
                page.request,
            )
    return PASSED if read else e.nothing_read()


def _does_no_io(e: Evidence) -> Look:
    read = [(lookup, page) for lookup in e.good for page in lookup.pages][:3]
    for lookup, page in read:
        if seen := io_of(lambda found=(lookup, page): _read(e, *found)):  # type: ignore[misc]
            return failed(f"reading a reply, it {seen[0]}", page.request)
        if seen := io_of(lambda found=lookup: e.wrapper.request(found.bind_set, found.bindings)):  # type: ignore[misc]
            return failed(f"writing a request, it {seen[0]}", page.request)
    return PASSED if read else e.nothing_read()


def _read(e: Evidence, lookup: Lookup, page: Exchange) -> Page | SourceError:
    assert isinstance(page.reply, Reply)
    try:
        return understood_now(
            e.way, page.request, lookup.bind_set, lookup.bindings, page.reply, lambda: datetime.now(UTC)
        )
    except SourceError as error:
        return error


def _no_secret_written(e: Evidence) -> Look:
    """Names of headers and parameters that are secrets everywhere, with a value in the declaration itself."""
    for mirror in e.method.mirrors:
        base = URL(mirror.base) if mirror.base.startswith(("http://", "https://")) else None
        if base is not None and base.password is not None:
            return failed(f"the base of {mirror.source} has a password in it")
    for lookup in e.known:
        for exchange in lookup.exchanges[:1]:
            request = exchange.request
            for name, value in (*request.headers, *request.query):
                if is_secret(name) and not _HARMLESS.match(value) and not _is_bound(lookup, value):
                    return failed(f"{name!r} is sent with a value that stands in the declaration")
    return PASSED if any(lookup.exchanges for lookup in e.known) else e.nothing_read()


def _is_bound(lookup: Lookup, value: str) -> bool:
    return any(str(v) == value for binding in lookup.bindings for v in binding)


def _no_secret_told(e: Evidence) -> Look:
    if not e.secrets:
        return not_for("the source has no secret")
    for lookup in e.all:
        messages = [error.message for error in (lookup.error, *(x.error for x in lookup.exchanges)) if error]
        texts = [str(value) for row in lookup.rows for value in row]
        for what, found in (("a message", messages), ("a row", texts)):
            for text in found:
                for secret in e.secrets:
                    if secret in text:
                        return failed(
                            f"{what} shows a secret: {quoted(text.replace(secret, MARK))}", request_of(lookup)
                        )
    return PASSED


def checks() -> Iterator[Check]:
    yield Check(
        "request-written",
        "a request can be written for every known binding",
        "look at the example's values, and at the code or the template that writes the request",
        _request_written,
    )
    yield Check(
        "request-repeats",
        "the same binding makes the same request, always",
        "leave the time of day, counters and random numbers out of requests: lookups are shared by what they ask",
        _request_repeats,
    )
    yield Check(
        "reading-repeats",
        "the same reply is read as the same rows, whatever was read before",
        "keep nothing in the wrapper: what one reply knows of another travels in the request",
        _reading_repeats,
    )
    yield Check(
        "does-no-io",
        "reading and writing touch no network, file, program or clock",
        "leave sockets, files and waiting to the engine; give further pages as requests",
        _does_no_io,
    )
    yield Check(
        "no-secret-written",
        "no secret stands in the declaration",
        "declare it as auth, which takes it from the environment or a file",
        _no_secret_written,
    )
    yield Check(
        "no-secret-told",
        "no message and no row shows a secret",
        "do not read the field in which the site repeats who asks, and do not put it into messages",
        _no_secret_told,
    )
