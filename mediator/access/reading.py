"""From a reply to a page, or to the reason why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from mediator.access.apart import apart
from mediator.access.limits.backoff import Calendar, retry_after
from mediator.access.method import Method
from mediator.access.promises import check_exact
from mediator.access.uncollected import uncollected
from mediator.catalog.model import BindSet
from mediator.catalog.statement import Result
from mediator.catalog.wrapper import Binding, Meaning, Page, Reply, Request, Wrapper
from mediator.errors import Overloaded, RateLimited, Refused, SchemaChanged, SourceError, Unreadable

_LATER = frozenset({408, 425, 500, 502, 504})  # statuses that may be gone when asked once more
_TOO_MANY = 429
_NOT_YET = 202
_PART = 206
_NOT_MODIFIED = 304
_OVERLOADED = 503
_UNSUITABLE = frozenset(
    {400, 404, 413, 414, 422}
)  # the fault may lie with one of the bindings, or with how many there are
_SMALL = 64 << 10  # bytes that are read faster than the event loop would notice
_FEW = 500  # rows of which that can be said


class Unsuitable(Refused):
    """The request itself is at fault. With other bindings it might not be."""


async def written(method: Method, bind_set: BindSet, bindings: tuple[Binding, ...]) -> Request:
    """The wrapper's first request for these bindings."""
    if not _may_be_slow(method.wrapper):
        return _written(method, bind_set, bindings)
    return await apart(lambda: _written(method, bind_set, bindings))


def _written(method: Method, bind_set: BindSet, bindings: tuple[Binding, ...]) -> Request:
    try:
        return method.wrapper.request(bind_set, bindings)
    except SourceError as error:
        raise Unsuitable(f"{method.name}: {error.message}") from error
    except Exception as error:
        raise Unsuitable(f"{_named(method)} cannot write the request: {error!r}") from error


async def understood(
    method: Method,
    request: Request,
    bind_set: BindSet,
    bindings: tuple[Binding, ...],
    reply: Reply,
    today: Calendar,
) -> Page:
    """The page that the reply is. Large ones are read in a thread, so that the loop keeps turning."""
    args = (method, request, bind_set, bindings, reply, today)
    if _may_be_slow(method.wrapper):
        page = await apart(lambda: _read(*args))
    else:
        page = await asyncio.to_thread(_read_large, *args) if _large(reply) else _read(*args)
    return page


def _read_large(*args: Any) -> Page:
    with uncollected():
        return _read(*args)


def understood_now(
    method: Method,
    request: Request,
    bind_set: BindSet,
    bindings: tuple[Binding, ...],
    reply: Reply,
    today: Calendar,
) -> Page:
    """The same in this thread, for whoever has no loop to keep turning, nor any use for rows that came
    beside an error."""
    page = _read(method, request, bind_set, bindings, reply, today)
    if page.astray is not None:
        raise page.astray
    return page


def _may_be_slow(wrapper: Wrapper) -> bool:
    # Not isinstance: to look through a protocol's members for every page takes as long as to read a short one.
    slow: bool = getattr(wrapper, "may_be_slow", False)
    return slow


def _large(reply: Reply) -> bool:
    return len(reply.body) > _SMALL or (isinstance(reply, Result) and len(reply.rows) > _FEW)


def refusal(reply: Reply, today: Calendar) -> SourceError:
    """What a status means that brings no rows, or not all of them."""
    said = f"{reply.status} {_phrase(reply.status)}".rstrip()
    after = retry_after(reply.headers, today)
    if reply.status == _TOO_MANY:
        return RateLimited(said, again=True, after=after)
    if reply.status == _NOT_YET:
        return Refused(f"{said}: what was asked for is not ready yet", again=True, after=after)
    if reply.status == _PART:
        return Unreadable(f"{said}, to a request for all: the site has to be mended", again=True)
    if reply.status == _NOT_MODIFIED:
        return Unreadable(f"{said}, to a request without a condition: the site has to be mended", again=True)
    if reply.status == _OVERLOADED:
        return Overloaded(said, again=True, after=after)
    if reply.status in _LATER:
        return Refused(said, again=True, after=after)
    return Unsuitable(said) if reply.status in _UNSUITABLE else Refused(said)


def _read(
    method: Method,
    request: Request,
    bind_set: BindSet,
    bindings: tuple[Binding, ...],
    reply: Reply,
    today: Calendar,
) -> Page:
    """Garbage is worth a second look: it may be a reply that was cut off without anybody noticing."""
    try:
        _check_meaning(method.wrapper, request, reply, today)
        page = method.wrapper.read(request, bind_set, bindings, reply)
        _check(method, page)
        check_exact(method, bind_set, bindings, page.rows)
        return page
    except Unreadable as error:
        raise Unreadable(error.message, again=True, after=error.after) from error
    except SourceError:
        raise
    except Exception as error:
        raise Unreadable(f"{_named(method)} cannot read the reply: {error!r}", again=True) from error


def _check_meaning(wrapper: Wrapper, request: Request, reply: Reply, today: Calendar) -> None:
    """Raises the `SourceError` that a reply is, by what the site is known to say, else by its status."""
    interpret: Callable[[Reply], Meaning | None] | None = getattr(wrapper, "meaning", None)
    meaning = interpret(reply) if interpret is not None else None
    if meaning is None:
        if not (_brings_all(request, reply) or reply.status in wrapper.empty_statuses):
            raise refusal(reply, today)
    elif meaning.means != "empty":
        told = retry_after(reply.headers, today)
        after = meaning.after if told is None else told
        if meaning.means == "rate_limited":
            raise RateLimited(meaning.said, again=True, after=after)
        raise Refused(meaning.said, again=meaning.means == "retry", after=after)


def _brings_all(request: Request, reply: Reply) -> bool:
    """By its status. A part is all where it was asked for."""
    if reply.status == _PART:
        return any(name.lower() == "range" for name, _ in request.headers)
    return 200 <= reply.status < 300 and reply.status != _NOT_YET


def _check(method: Method, page: Page) -> None:
    """Rows of another shape would be stored as something that they are not."""
    found, declared = page.rows.schema, method.relation.schema
    if found is not declared and (found.names != declared.names or found.types != declared.types):
        raise SchemaChanged(f"{_named(method)} brought {_shape(found)} where {_shape(declared)} is declared")


def _shape(schema: object) -> str:
    return "(" + ", ".join(str(schema).splitlines()) + ")"


def _named(method: Method) -> str:
    return f"the wrapper {type(method.wrapper).__name__} of {method.name}"


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
