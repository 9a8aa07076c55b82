"""From a reply to a web page in memory, or to the sentence that says why not."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree, html

from mediator.catalog.wrapper import Reply
from mediator.errors import Unreadable
from wrappers.parsed import charset, decoded

_MOST_ATTRIBUTES = 500  # of one tag: libxml2 takes quadratic time over them
_AT_HEAD = 1024  # bytes within which a page has to name its charset
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)

_ATTRIBUTE = rb"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+"""
_TAGS = re.compile(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<(script|style|textarea|title)\b.*?(?:</\1|\Z)"
    rb"|<[a-z][^\s/>]*+(?:%b){0,%d}+(?P<more>%b)?+" % (_ATTRIBUTE, _MOST_ATTRIBUTES, _ATTRIBUTE),
    re.IGNORECASE | re.DOTALL,
)


def web_page(relation: str, reply: Reply) -> Any:
    """The page's root element. Raises `Unreadable` also for a page that the parser would give up half-way."""
    what = f"{relation}: not a web page"
    body = decoded(what, reply.body, charset(reply) or _said_inside(reply.body)).encode("utf-8", "replace")
    if any(tag["more"] is not None for tag in _TAGS.finditer(body)):
        raise Unreadable(f"{what}: a tag with more than {_MOST_ATTRIBUTES} attributes")
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(body, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, AssertionError) as error:
        raise Unreadable(f"{what}: {_given_up(parser) or error}") from None
    if said := _given_up(parser):
        raise Unreadable(f"{what}: {said}")
    return page


def _given_up(parser: Any) -> str:
    """Why the parser stopped before the end. What stands after that is lost, rows perhaps."""
    stops = [e.message for e in parser.error_log.filter_from_fatals() if e.type_name == "ERR_RESOURCE_LIMIT"]
    return str(stops[0]).split(", ")[0].strip() if stops else ""


def _said_inside(body: bytes) -> str:
    """The charset that a page names itself, where its reply does not."""
    named = _CHARSET.search(body, 0, _AT_HEAD)
    said = named[1].decode("ascii", "replace").lower() if named else "utf-8"
    return "utf-8" if said.startswith("utf-16") else said  # it could not be read as ASCII if it were
