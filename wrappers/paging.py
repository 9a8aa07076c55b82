"""Where a site's further pages are."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urljoin, urlsplit

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Declared

from mediator.catalog.wrapper import Request
from mediator.errors import Endless, SchemaChanged
from wrappers.columns import ABSENT
from wrappers.parsed import Parsed


class NumberedPages(BaseModel):
    """Pages by number, in the query parameter `param`.

    `total` is where a reply says how many there are: then all the others can be asked side by side. Without
    it they are asked one after another, until one comes without rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    param: str
    first: int = 1
    total: str = ""

    def begin(self, request: Request) -> Request:
        return self._numbered(request, self.first)

    def after(self, relation: str, request: Request, parsed: Parsed, most: int) -> tuple[Request, ...]:
        """What this reply shows to be still needed. Of more than `most` pages no more than shows that there are."""
        here = int(next(value for name, value in request.query if name == self.param))
        if not self.total:
            return (self._numbered(request, here + 1),) if parsed.count else ()
        if here != self.first:
            return ()
        # The rows of this page were found, however many pages the site claims to have: who counts them comes later.
        total = min(self._total(relation, parsed), most + 1)
        return tuple(self._numbered(request, n) for n in range(self.first + 1, self.first + total))

    def _total(self, relation: str, parsed: Parsed) -> int:
        found = parsed.find(self.total)
        if isinstance(found, str) and found.isdecimal():
            return int(found)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        said = "nothing" if found is ABSENT else repr(found)
        raise SchemaChanged(f"{relation}: expected the number of pages at {self.total!r}, found {said}")

    def _numbered(self, request: Request, number: int) -> Request:
        kept = tuple(pair for pair in request.query if pair[0] != self.param)
        return replace(request, query=(*kept, (self.param, str(number))))


class LinkedPages(BaseModel):
    """Each page says where the next one is: `next` is the place of the link; the last page has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    next: str = Declared(min_length=1)

    def begin(self, request: Request) -> Request:
        return request

    def after(self, relation: str, request: Request, parsed: Parsed, most: int) -> tuple[Request, ...]:
        link = parsed.find(self.next)
        if link is ABSENT or link is None or link == "":
            return ()
        if not isinstance(link, str):
            raise SchemaChanged(f"{relation}: expected a link at {self.next!r}, found {link!r}")
        following = followed(request, link)
        if not following.path.startswith(("/", "http://", "https://")):
            raise SchemaChanged(f"{relation}: expected a link at {self.next!r}, found {link!r}")
        if following == request:
            raise Endless(f"{relation}: the page at {request.path} names itself as the next one")
        return (following,)


Paging = NumberedPages | LinkedPages


def followed(request: Request, link: str) -> Request:
    """The request that a link on this request's page means, resolved as a browser would."""
    parts = urlsplit(urljoin(request.path, link))
    return Request(
        path=parts._replace(query="", fragment="").geturl(),
        query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        headers=tuple(h for h in request.headers if h[0].lower() != "content-type"),
        rooted=not parts.scheme and (request.rooted or link.startswith("/")),
    )
