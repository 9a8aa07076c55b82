"""Requests as data, so that somebody else can send them.

What a wrapper's author has put into a request beside that (a function, what it learnt on the way) stays where it is.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from hashlib import blake2b
from typing import Any

from mediator.catalog.wrapper import Request
from wrappers.paging.turning import Paged
from wrappers.requesting import Step

_KINDS: Mapping[str, type[Request]] = {"request": Request, "paged": Paged, "step": Step}
Said = dict[str, Any]


def can_be_told(request: Request) -> bool:
    """Whether whoever reads it as data sends the same, and knows as much of the reply."""
    if isinstance(request, Step) and (request.rows is not None or request.kept is not None):
        return False
    return type(request) in _KINDS.values()


def written(request: Request) -> Said:
    said: Said = {
        "kind": next(name for name, kind in _KINDS.items() if kind is type(request)),
        "path": request.path,
        "query": request.query,
        "method": request.method,
        "headers": request.headers,
        "body": None if request.body is None else b64encode(request.body).decode(),
        "rooted": request.rooted,
    }
    if isinstance(request, Paged):
        page = {"start": request.start, "end": request.end, "rows": request.rows.hex(), "same": request.same}
        return said | {"page": page}
    return said


def read(said: Mapping[str, Any]) -> Request:
    page = said.get("page", {})
    more = page | {"rows": bytes.fromhex(page["rows"])} if page else {}
    return _KINDS[said["kind"]](
        said["path"],
        tuple((name, value) for name, value in said["query"]),
        said["method"],
        tuple((name, value) for name, value in said["headers"]),
        None if said["body"] is None else b64decode(said["body"]),
        said["rooted"],
        **more,
    )


def text_of(request: Request) -> str:
    """All that is sent, for whoever looks for something in it."""
    parts = [request.path, *(part for pair in (*request.query, *request.headers) for part in pair)]
    return "\n".join([*parts, (request.body or b"").decode("utf-8", "surrogateescape")])


def mark(request: Request) -> str:
    """What tells a request from others, of whatever kind it is."""
    said = [getattr(request, field.name) for field in fields(request) if field.compare]
    return blake2b(repr(said).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
