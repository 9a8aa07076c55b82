"""Pages by number."""

from __future__ import annotations

from mediator.catalog.wrapper import Request
from wrappers.paging.turning import Leaf, Parameter, paged, start_of


class NumberedPages(Parameter):
    """Pages by number, in the parameter `param`.

    `total` is where a reply says how many there are: then all the others can be asked side by side. Without
    it they are asked one after another, until one comes without rows.
    """

    param: str
    first: int = 1
    total: str = ""

    def begin(self, request: Request) -> Request:
        return paged(self._with(request, self.param, self.first), self.first)

    def at(self, request: Request, number: int) -> Request:
        """The request for the page with this number."""
        return paged(self._with(request, self.param, number), number)

    def after(self, leaf: Leaf) -> tuple[Request, ...]:
        """What this reply shows to be still needed. Of more than `most` pages no more than shows that there are."""
        here = start_of(leaf.request)
        if not self.total:
            following = self._with(leaf.request, self.param, here + 1)
            return (leaf.onward(following, repr(self.param), here + 1),) if leaf.parsed.count else ()
        if here != self.first:
            leaf.check_beside(self.param)
            return ()
        # The rows of this page were found, however many pages the site claims to have: who counts them comes later.
        total = min(leaf.count(self.total, "pages"), leaf.most + 1)
        numbers = range(self.first + 1, self.first + total)
        return tuple(leaf.beside(self._with(leaf.request, self.param, n), n) for n in numbers)
