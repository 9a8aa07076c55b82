"""Pages by the number of rows before them."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from mediator.catalog.wrapper import Request
from mediator.errors import Miscounted
from wrappers.paging.turning import Leaf, Paged, Parameter, paged, start_of


class OffsetPages(Parameter):
    """`offset` is the parameter for the rows to skip, `limit` the one for how many to send, `size` its value.

    A site may send fewer than it was asked for: the next page begins after the rows that came. With `total`,
    where a reply says how many rows there are, the others are asked side by side; without it one after
    another, until one comes without rows.
    """

    offset: str = Field(min_length=1)
    limit: str = ""
    size: PositiveInt = 100
    first: int = Field(default=0, ge=0)  # the offset of the first row: some sites count from 1
    total: str = ""

    def begin(self, request: Request) -> Request:
        return self._at(request, self.first, 0)

    def after(self, leaf: Leaf) -> tuple[Request, ...]:
        came, here = leaf.parsed.count, start_of(leaf.request)
        if not self.total:
            return (self._onward(leaf, here + came, 0),) if came else ()
        end = leaf.request.end if isinstance(leaf.request, Paged) else 0
        if end:
            return self._rest(leaf, here, came, end)
        end = self.first + leaf.count(self.total, "rows")
        if here + came >= end:
            return ()
        if not came:
            raise self._broken(leaf, here)
        starts = range(here + came, min(end, here + came * (leaf.most + 1)), came)
        return tuple(self._beside(leaf, start, min(start + came, end)) for start in starts)

    def at(self, request: Request, start: int) -> Request:
        """The request for the rows from this one on."""
        return self._at(request, start, 0)

    def _rest(self, leaf: Leaf, here: int, came: int, end: int) -> tuple[Request, ...]:
        """A page that brought fewer rows than it should leaves the others to one more."""
        leaf.check_beside(self.offset)
        if here + came >= end:
            return ()
        if not came:
            raise self._broken(leaf, here)
        return (self._onward(leaf, here + came, end),)

    def _onward(self, leaf: Leaf, start: int, end: int) -> Request:
        return leaf.onward(self._at(leaf.request, start, end), repr(self.offset), start, end)

    def _beside(self, leaf: Leaf, start: int, end: int) -> Request:
        return leaf.beside(self._at(leaf.request, start, end), start, end)

    def _at(self, request: Request, start: int, end: int) -> Request:
        request = self._with(request, self.offset, start)
        if self.limit:
            request = self._with(request, self.limit, end - start if end else self.size)
        return paged(request, start, end)

    def _broken(self, leaf: Leaf, here: int) -> Miscounted:
        return Miscounted(f"{leaf.relation}: {self.total!r} promises rows from {here:,} on, but none came")
