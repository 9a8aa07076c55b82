"""A reply as code reads it: what came, what it was asked for, and the kit's own careful parsers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mediator.catalog.wrapper import Binding, Reply, Request
from mediator.errors import SchemaChanged
from wrappers.paging import followed
from wrappers.parsed import charset, decoded
from wrappers.record_reader import understood, utf8
from wrappers.requesting import Step
from wrappers.web_page import web_page


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReply(Reply):
    """What a site answered to `request`. The parsers raise `Unreadable`, as the built-in kinds do."""

    relation: str
    request: Request
    bind_set: tuple[str, ...]
    bindings: Sequence[Binding]

    @property
    def kept(self) -> Any:
        """What the request that led here was given to keep."""
        return self.request.kept if isinstance(self.request, Step) else None

    @property
    def lookups(self) -> list[Mapping[str, object]]:
        """What was asked for: the bind-fields of each binding, with their values."""
        return [dict(zip(self.bind_set, binding, strict=True)) for binding in self.bindings]

    def bound(self, field: str) -> Any:
        """The value of a bind-field, where the request carried one binding; None where it was not bound."""
        if len(self.bindings) != 1:
            raise ValueError(
                f"{len(self.bindings)} bindings were asked for together: look at reply.lookups, or leave out batch_size"
            )
        return self.lookups[0].get(field)

    def header(self, name: str) -> str:
        """A header's value; empty where there is none."""
        return ", ".join(value for key, value in self.headers.items() if key.lower() == name.lower())

    def text(self) -> str:
        """The body as text, in the charset that the reply names, else UTF-8."""
        return decoded(f"{self.relation}: not text", self.body, charset(self) or "utf-8")

    def json(self) -> Any:
        """The body as JSON: no NaN, and no key twice."""
        what = f"{self.relation}: not JSON"
        return understood(what, utf8(what, self))

    def html(self) -> Any:
        """The root element of a web page, to be asked with `.xpath()` or `.cssselect()`."""
        return web_page(self.relation, self)

    def follow(self, link: str, *, rows: Callable[[Any], object] | None = None, kept: object = None) -> Step:
        """The request that a link on this page means, resolved as a browser would."""
        try:
            to = followed(self.request, link, self.address)
        except (TypeError, ValueError, AttributeError):
            raise SchemaChanged(f"{self.relation}: expected a link, found {repr(link)[:100]}") from None
        return Step(to.path, to.query, to.method, to.headers, to.body, to.rooted, rows=rows, kept=kept)
