"""Pages by a mark that the page before gives."""

from __future__ import annotations

from pydantic import Field

from mediator.catalog.wrapper import Request
from mediator.errors import Endless, SchemaChanged
from wrappers.columns import ABSENT
from wrappers.paging.turning import Leaf, Parameter

_LONGEST = 4_096


class CursorPages(Parameter):
    """`cursor` is where a page names the mark of the next one, `param` the parameter that takes it.

    The last page names none, or says at `more` that there is no more.
    """

    cursor: str = Field(min_length=1)
    param: str = Field(min_length=1)
    more: str = ""

    def begin(self, request: Request) -> Request:
        return request

    def after(self, leaf: Leaf) -> tuple[Request, ...]:
        if self.more and leaf.parsed.find(self.more) in (False, None, ABSENT, "", "false", 0):
            return ()
        mark = leaf.parsed.find(self.cursor)
        if mark is ABSENT or mark is None or mark == "" or mark is False:
            if self.more:
                raise self._wrong(leaf, mark)
            return ()
        if not isinstance(mark, str | int) or isinstance(mark, bool) or len(str(mark)) > _LONGEST:
            raise self._wrong(leaf, mark)
        following = self._with(leaf.request, self.param, mark)
        if following == leaf.request:
            raise Endless(
                f"{leaf.relation}: the page at {self.param} = {mark!r} names itself as the next one"
            )
        return (leaf.onward(following, repr(self.param)),)

    def _wrong(self, leaf: Leaf, mark: object) -> SchemaChanged:
        said = "nothing" if mark is ABSENT else repr(mark)[:60]
        return SchemaChanged(
            f"{leaf.relation}: expected the cursor of the next page at {self.cursor!r}, found {said}"
        )
