"""Pages by links: in the page, or in the `Link` header (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from mediator.catalog.wrapper import Request
from mediator.errors import Endless, SchemaChanged
from wrappers.columns import ABSENT
from wrappers.paging.turning import Leaf

_LONGEST = 1 << 16  # of a Link header
_LINK = re.compile(
    r'[\s,]*+<([^>]*+)>((?:\s*+;\s*+[^\s;,="]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+))?+)*+)'
)
_PARAMETER = re.compile(r';\s*+([^\s;,="]++)(?:\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]*+)))?+')
_PLAIN = re.compile(
    r"(?:[\w.~-]++=[\w.~-]*+(?:&(?!\Z)|\Z))*+", re.ASCII
)  # a query that is written in one way only
_WRITTEN = "!$%&'()*+,/:;=?@[]~"  # what stands in a query as it is, beside letters and digits
_BLANK = " \t\n\f\r"


class LinkedPages(BaseModel):
    """Each page says where the next one is: `next` is the place of the link; the last page has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    next: str = Field(min_length=1)

    def begin(self, request: Request) -> Request:
        return request

    def after(self, leaf: Leaf) -> tuple[Request, ...]:
        link = leaf.parsed.find(self.next)
        if link is ABSENT or link is None or link == "" or _stays(link):
            return ()
        return (_next(leaf, link, f"at {self.next!r}", leaf.parsed.base),)


class HeaderPages(BaseModel):
    """The `Link` header names the next page, as the link with this relation type (`rel: next`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rel: str = Field(min_length=1)

    def begin(self, request: Request) -> Request:
        return request

    def after(self, leaf: Leaf) -> tuple[Request, ...]:
        targets = {link for link, rels in links(leaf) if self.rel.lower() in rels and not _stays(link)}
        if not targets:
            return ()
        if len(targets) > 1:
            raise SchemaChanged(f"{leaf.relation}: the Link header has {len(targets)} links {self.rel!r}")
        return (_next(leaf, targets.pop(), "in the Link header"),)


def links(leaf: Leaf) -> Iterator[tuple[str, set[str]]]:
    """Every link of the Link header, with its relation types. Raises `SchemaChanged` for one that is none."""
    value, at = _link_header(leaf.headers), 0
    while at < len(value) and len(value) <= _LONGEST and (link := _LINK.match(value, at)):
        rels = [quoted or bare for name, quoted, bare in _PARAMETER.findall(link[2]) if name.lower() == "rel"]
        yield link[1], set(rels[0].lower().split()) if rels else set()  # of several, the first counts
        at = link.end()
    if len(value) > _LONGEST or value[at:].strip(" ,\t"):
        raise SchemaChanged(f"{leaf.relation}: not a Link header: {value[at : at + 60]!r}")


def _link_header(headers: Mapping[str, str]) -> str:
    return ", ".join(value for name, value in headers.items() if name.lower() == "link")


def _stays(link: object) -> bool:
    """Whether it leads to a place on the same page, as those do that are to be clicked in vain."""
    return isinstance(link, str) and link.lstrip(_BLANK).startswith("#")


def _next(leaf: Leaf, link: object, where: str, base: str = "") -> Request:
    wrong = SchemaChanged(f"{leaf.relation}: expected a link {where}, found {repr(link)[:100]}")
    if not isinstance(link, str):
        raise wrong
    try:
        following = followed(leaf.request, link, leaf.address, base)
    except ValueError:
        raise wrong from None
    if not following.path.startswith(("/", "http://", "https://")):
        raise wrong
    here = leaf.request.path if not leaf.address else leaf.address
    if _place(following) in (_place(leaf.request), _place(Request(here))):
        raise Endless(f"{leaf.relation}: the page at {_place(leaf.request)[0]} names itself as the next one")
    return leaf.onward(following, "its own links")


def _place(request: Request) -> tuple[str, object]:
    return request.path.partition("?")[0], request.pairs


def followed(request: Request, link: str, address: str = "", base: str = "") -> Request:
    """The request that a link on this request's page means, resolved as a browser would.

    `address` is where the request was led to, `base` what the page itself says that its links begin at. A query that
    could be written in several ways stays as it is.
    """
    link = link.strip(_BLANK)
    here = urljoin(address or request.path, base)
    parts = urlsplit(urljoin(here, link))
    path, query = parts._replace(query="", fragment="").geturl(), parts.query
    plain = _PLAIN.fullmatch(query) is not None
    return Request(
        path=path if plain else f"{path}?{quote(query, safe=_WRITTEN)}",
        query=tuple(parse_qsl(query, keep_blank_values=True)) if plain else (),
        headers=tuple(h for h in request.headers if h[0].lower() != "content-type"),
        rooted=not parts.scheme
        and (request.rooted or bool(address) or link.startswith("/") or base.startswith("/")),
    )
