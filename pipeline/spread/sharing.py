"""A scan's pages, dealt out among the askers of its source.

The first page that names several others decides: its asker, the scan's owner, goes on to a share of them and notes who
is to ask for the rest. Whoever has a part begins with its first page, and goes on to the others from there. So each
walks as ever, and every page is asked for once.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mediator.catalog.model import AccessMethod, BindSet, Catalog, Relation
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from pipeline.cells.envelopes import Lookup
from pipeline.spread.plan import Plan
from pipeline.spread.requests import can_be_told, mark, text_of
from pipeline.spread.shares import Shared
from pipeline.wrapping import Around


class Sharing:
    """What one asker knows of shared scans. Told of replies by wrappers, which may be read in threads."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._number = plan, number
        self.hides: Callable[[str], bool] = lambda text: False  # whether there is a secret in a text
        self.known: dict[Lookup, Shared] = {}
        self.new: deque[Shared] = deque()  # that nobody else has been told of
        self._walked: defaultdict[Lookup, dict[Request, None]] = defaultdict(dict)  # before it was decided
        self._decided: set[Lookup] = set()
        self._further: defaultdict[Lookup, dict[str, None]] = defaultdict(dict)
        self._lock = threading.Lock()

    def catalog(self, catalog: Catalog) -> Catalog:
        """In which scans that may be shared are."""
        relations = {
            name: replace(relation, methods=tuple(self._sharing(relation, m) for m in relation.methods))
            for name, relation in catalog.relations.items()
        }
        return replace(catalog, relations=relations)

    def further(self, lookup: Lookup) -> tuple[str, ...]:
        """Marks of the pages that its own part has led to, beside those that were dealt."""
        return tuple(self._further[lookup])

    def most(self, lookup: Lookup) -> int:
        return self._method(lookup).max_pages

    def begins(self, lookup: Lookup) -> Request | None:
        """Where another's scan is gone on with."""
        shared = self.known.get(lookup)
        return None if shared is None or shared.owner == self._number else shared.parts[self._number][0]

    def then(self, lookup: Lookup, request: Request, named: tuple[Request, ...]) -> tuple[Request, ...]:
        """Of the pages that one names those that are asked for here. What leads back leads to itself: whoever turns the
        pages says so, and how many there may be."""
        with self._lock:
            shared = self.known.get(lookup) or self._dealt(lookup, request, named)
            if shared is None:
                return named
            mine = shared.parts[self._number]
            if request == shared.named_by:
                # What was dealt stays dealt. What the site names only now is the owner's.
                named = tuple(page for page in named if page in mine or page not in shared.known)
                return named if self._goes_on(shared, named) else ()
            if request in shared.walked:
                return named  # by who has begun anew
            if not shared.known.isdisjoint(named):
                return (request,)
            named = named if self._goes_on(shared, named) else ()
            return (*mine[1:], *named) if request == self.begins(lookup) else named

    def _goes_on(self, shared: Shared, named: Sequence[Request]) -> bool:
        """Whether there may be so many pages. If not, it is to no avail: the owner says so at the end."""
        further = self._further[shared.lookup]
        further.update((mark(page), None) for page in named if page not in shared.known)
        return len(shared.known) + len(further) <= self.most(shared.lookup)

    def _dealt(self, lookup: Lookup, request: Request, named: tuple[Request, ...]) -> Shared | None:
        if lookup in self._decided:
            return None
        walked = self._walked[lookup]
        walked[request] = None
        if len(named) < 2:
            return None
        self._decided.add(lookup)
        del self._walked[lookup]
        pages = {**walked, **dict.fromkeys(named)}
        once = len(pages) == len(walked) + len(named)
        if not once or len(pages) > self.most(lookup) or not self._can_be_told(tuple(pages)):
            return None
        askers = self._plan.dealing.askers_of(self._method(lookup))
        first = askers.index(self._number)
        order = (*askers[first:], *askers[:first])
        parts = {asker: named[n :: len(order)] for n, asker in enumerate(order[: len(named)])}
        shared = self.known[lookup] = Shared(lookup, self._number, tuple(walked), parts)
        self.new.append(shared)
        return shared

    def _can_be_told(self, requests: Sequence[Request]) -> bool:
        return all(map(can_be_told, requests)) and not self.hides("\n".join(map(text_of, requests)))

    def _method(self, lookup: Lookup) -> AccessMethod:
        return self._plan.relations[lookup.relation].method(lookup.method)

    def _sharing(self, relation: Relation, method: AccessMethod) -> AccessMethod:
        plain = method.at_most is None and not method.order and method.batch_size == 1
        alone = len(method.mirrors) != 1 or len(self._plan.dealing.askers_of(method)) == 1
        wanted = relation.name in self._plan.relations and method.kind == "scan"
        if method.wrapper is None or alone or not (plain and wanted):
            return method
        return replace(method, wrapper=_Sharer(method.wrapper, relation.name, method.name, self))


@dataclass
class _Sharer(Around):
    relation: str
    method: str
    sharing: Sharing

    def request(self, bind_set: BindSet, bindings: Sequence[Binding]) -> Request:
        return self.sharing.begins(self._lookup(bind_set, bindings)) or self.inner.request(bind_set, bindings)

    def read(self, request: Request, bind_set: BindSet, bindings: Sequence[Binding], reply: Reply) -> Page:
        page = self.inner.read(request, bind_set, bindings, reply)
        return replace(page, then=self.sharing.then(self._lookup(bind_set, bindings), request, page.then))

    def _lookup(self, bind_set: BindSet, bindings: Sequence[Binding]) -> Lookup:
        (binding,) = bindings
        return Lookup(self.relation, self.method, bind_set, binding)
