"""Pages that a site may say are still as they were: within so many bytes, the least recently used are forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from mediator.access.fresh.validators import Validators
from mediator.catalog.wrapper import Page

BYTES = 64 << 20
_SHARE = 4  # a page larger than this part of it all would drive out too many others
_BESIDES = 1_024  # bytes of an entry, apart from its page
_PER_REQUEST = 512  # bytes of a further request, apart from what it sends


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a reply was read as, by what it is told from newer ones, and what it said of its freshness."""

    validators: Validators
    page: Page
    headers: Mapping[str, str] = field(default_factory=dict)  # those that a 304 may leave out
    carried: tuple[object, ...] = ()  # what the request knew besides what it sent

    @property
    def size(self) -> int:
        rows = self.page.rows.get_total_buffer_size()
        sent = sum(_PER_REQUEST + len(r.path) + len(r.body or b"") + 8 * len(r.query) for r in self.page.then)
        return int(rows + sent + _BESIDES)


class Memory:
    """One per process. Its keys say which request it was, of which method, to which mirror."""

    def __init__(self, most: int = BYTES) -> None:
        self.size = 0
        self._most = most
        self._entries: OrderedDict[Hashable, Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def largest(self) -> int:
        """Bytes that an entry may have."""
        return self._most // _SHARE

    def get(self, key: Hashable) -> Remembered | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: Hashable, entry: Remembered) -> None:
        """From now on this is what the request means, unless it is too large to be remembered."""
        self.forget(key)
        if entry.size > self.largest:
            return
        self._entries[key] = entry
        self.size += entry.size
        while self.size > self._most:
            _, forgotten = self._entries.popitem(last=False)
            self.size -= forgotten.size

    def forget(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry.size
