"""What one query may spend at the sites, and what it has spent. A request is charged to all who wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from mediator.access.limits.pocket import Pocket
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.errors import Cause

if TYPE_CHECKING:
    from mediator.access.limits.stay import Stay

_NOWHERE: Mapping[str, Ceilings] = {}


class Purse:
    """One per query: a pocket for all that it sends, and one for each source that it has ceilings for.

    `spent` is told, once for each pocket, that nothing more can be paid from it. The seconds of the whole query are
    the driver's.
    """

    def __init__(
        self, ceilings: Ceilings, spent: Callable[[], None], at: Mapping[str, Ceilings] = _NOWHERE
    ) -> None:
        self._whole = Pocket(Ceilings(ceilings.calls, ceilings.bytes), spent)
        self._pockets = {s: Pocket(c, spent, s) for s, c in at.items() if c != NO_CEILINGS}

    @property
    def calls(self) -> int:
        return self._whole.calls

    @property
    def bytes(self) -> int:
        return self._whole.bytes

    def left(self) -> dict[str, Ceilings]:
        """What may still be spent at the sources that it has ceilings for."""
        return {source: pocket.left for source, pocket in self._pockets.items()}

    @property
    def empty(self) -> Cause | None:
        """Why nothing more can be paid anywhere."""
        return self._whole.empty

    def affords(self, source: str) -> bool:
        """Whether one more request to this source can be paid for."""
        pocket = self._pockets.get(source)
        return self._whole.affords and (pocket is None or pocket.affords)

    def refuses(self, sources: Iterable[str]) -> Cause | None:
        """Why nothing more can be paid at any of these; none where something may still be."""
        if self._whole.empty is not None or not self._pockets:
            return self._whole.empty
        refusal = None
        for source in sources:
            pocket = self._pockets.get(source)
            if pocket is None or pocket.empty is None:
                return None
            refusal = refusal or pocket.empty
        return refusal

    def pay(self, source: str) -> bool:
        """Pays for one request that is about to be sent; false when there is nothing to pay it with."""
        pocket = self._pockets.get(source)
        if not (pocket is None or pocket.ready()) or not self._whole.ready():
            return False
        self._whole.pay()
        if pocket is not None:
            pocket.pay()
        return True

    def received(self, source: str, size: int) -> None:
        """A reply of so many bytes was read."""
        self._whole.received(size)
        if source in self._pockets:
            self._pockets[source].received(size)

    def begin(self, stay: Stay) -> None:
        if stay.source in self._pockets:
            self._pockets[stay.source].begin(stay)

    def end(self, stay: Stay) -> None:
        if stay.source in self._pockets:
            self._pockets[stay.source].end(stay)

    def drop(self) -> None:
        """The query is over: no time passes any more."""
        for pocket in self._pockets.values():
            pocket.drop()
