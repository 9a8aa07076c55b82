"""Requests as code writes them: `get` and `post`. What is bound is written so that it can only be a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from mediator.catalog.wrapper import Request
from mediator.errors import Refused
from wrappers.template import as_text

Values = Mapping[str, object]

_NAME = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)  # of a header
_BEGINNINGS = ("/", "http://", "https://")


@dataclass(frozen=True, slots=True)
class Step(Request):
    """A request that knows what reads its reply, and what was learnt on the way to it. Equal to those like it."""

    rows: Callable[[Any], object] | None = field(default=None, compare=False)
    kept: object = field(default=None, compare=False)


def get(
    path: str,
    *more: object,
    query: Values | None = None,
    headers: Values | None = None,
    rows: Callable[[Any], object] | None = None,
    kept: object = None,
) -> Step:
    """A GET of `path`, relative to the mirror's base; each of `more` is one more step of it, percent-encoded.

    Of `query`, what is None is left out, and a list is a parameter that is repeated. `rows` reads the reply in
    place of the method's own reader, and finds `kept` there.
    """
    return Step(_path(path, more), tuple(_pairs(query)), "GET", _headers(headers), None, rows=rows, kept=kept)


def post(
    path: str,
    *more: object,
    form: Values | None = None,
    json: object = None,
    query: Values | None = None,
    headers: Values | None = None,
    rows: Callable[[Any], object] | None = None,
    kept: object = None,
) -> Step:
    """A POST of a form, of JSON, or of nothing; all else is as in `get`."""
    if form is not None and json is not None:
        raise ValueError("a request has one body: give form or json")
    body, type_ = b"", ""
    if form is not None:
        body, type_ = urlencode(tuple(_pairs(form))).encode(), "application/x-www-form-urlencoded"
    elif json is not None:
        body, type_ = orjson.dumps(json), "application/json"
    content = (("Content-Type", type_),) if type_ else ()
    return Step(
        _path(path, more),
        tuple(_pairs(query)),
        "POST",
        (*_headers(headers), *content),
        body,
        rows=rows,
        kept=kept,
    )


def _path(path: str, more: tuple[object, ...]) -> str:
    if not path.startswith(_BEGINNINGS):
        raise ValueError(f"the path {path!r} is relative to nothing: write /{path}")
    return "/".join((path.rstrip("/") if more else path, *map(_step, more)))


def _step(value: object) -> str:
    """One step of a path. An empty one, or dots, would lead to another page than the one meant."""
    text = as_text(value)
    if text in ("", ".", ".."):
        raise Refused(f"{text!r} cannot be sent in a path")
    return quote(text, safe="")


def _pairs(values: Values | None) -> Iterator[tuple[str, str]]:
    for name, value in (values or {}).items():
        if value is not None:
            for one in value if isinstance(value, list | tuple) else (value,):
                yield name, as_text(one)


def _headers(values: Values | None) -> tuple[tuple[str, str], ...]:
    headers = tuple(_pairs(values))
    for name, value in headers:
        if not _NAME.fullmatch(name) or any((c < " " and c != "\t") or c == "\x7f" for c in value):
            raise Refused(f"{value[:60]!r} cannot be sent in the header {name[:60]!r}")
    return headers
