"""By what a site tells one version of a page from another, and how it is asked whether there is a newer one. Pure.

A weak tag will do: it says that the rows mean the same. A date is only used where the page cannot have changed
again within its second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mediator.access.fresh.freshness import directives
from mediator.access.fresh.http_date import http_date
from mediator.catalog.wrapper import Request

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,1024}"')
_SETTLED = 1.0  # seconds from a page's last change to its sending: none can have followed in the same second
_LONGEST_DATE = 64
# A request that has one of these asks for itself.
_ITS_OWN = frozenset(
    {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range"}
)


@dataclass(frozen=True, slots=True)
class Validators:
    """At least one of them is there."""

    tag: str = ""
    date: str = ""

    def condition(self, request: Request) -> Request:
        """The same request, to be answered with 304 where nothing has changed."""
        extra = (("If-None-Match", self.tag), ("If-Modified-Since", self.date))
        return replace(
            request, headers=(*request.headers, *((name, value) for name, value in extra if value))
        )

    def contradicted(self, headers: Mapping[str, str]) -> bool:
        """Whether a 304 speaks of another version than the one that was asked about."""
        told = headers.get("etag", "").strip()
        return bool(self.tag and _TAG.fullmatch(told)) and _opaque(told) != _opaque(self.tag)


def conditional(request: Request) -> bool:
    """Whether a request can be made conditional. Only a GET can: what another method does is not repeated by a page."""
    return request.method == "GET" and not any(name.lower() in _ITS_OWN for name, _ in request.headers)


def validators_of(status: int, headers: Mapping[str, str]) -> Validators | None:
    """Of a reply that may be remembered; none where it has none that can be believed."""
    if status != 200 or not ("etag" in headers or "last-modified" in headers):
        return None
    if "no-store" in directives(headers.get("cache-control", "")) or "*" in headers.get("vary", ""):
        return None
    tag = headers.get("etag", "").strip()
    found = Validators(tag if _TAG.fullmatch(tag) else "", _settled_date(headers))
    return found if found.tag or found.date else None


def _settled_date(headers: Mapping[str, str]) -> str:
    text = headers.get("last-modified", "").strip()
    if not text.isascii() or not text.isprintable() or len(text) > _LONGEST_DATE:
        return ""
    changed, sent = http_date(text), http_date(headers.get("date"))
    settled = changed and sent and (sent - changed).total_seconds() >= _SETTLED
    return text if settled else ""


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/")
