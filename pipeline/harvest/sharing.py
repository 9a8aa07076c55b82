"""One scan, walked by several: the pages that one page names side by side are dealt out among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mediator.catalog.model import BindSet, Catalog
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from pipeline.wrapping import Around


@dataclass
class Share(Around):
    """A wrapper that reads as another does, and of several pages side by side goes on to its share of them: every
    `of`-th, from `number` on. None is a share, too: then it goes on to no page, and `named` says how many there are."""

    number: int = 0
    of: int | None = None
    named: int = field(default=0, compare=False)

    def request(self, bind_set: BindSet, bindings: Sequence[Binding]) -> Request:
        return self.inner.request(bind_set, bindings)

    def read(self, request: Request, bind_set: BindSet, bindings: Sequence[Binding], reply: Reply) -> Page:
        page = self.inner.read(request, bind_set, bindings, reply)
        self.named = max(self.named, len(page.then))
        if self.of is None:
            return replace(page, then=())
        return replace(page, then=page.then[self.number :: self.of]) if len(page.then) > 1 else page


def shared(
    catalog: Catalog, relation: str, method: str, number: int = 0, of: int | None = None
) -> tuple[Catalog, Share]:
    """The catalog, in which one method's scan is walked by shares."""
    whole = catalog.relations[relation]
    wrapper = whole.method(method).wrapper
    assert wrapper is not None
    share = Share(wrapper, number, of)
    methods = tuple(replace(m, wrapper=share) if m.name == method else m for m in whole.methods)
    return replace(catalog, relations={**catalog.relations, relation: replace(whole, methods=methods)}), share
