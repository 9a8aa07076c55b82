"""What SteMs receive goes to the store, and what the store has comes back into SteMs.

The SteMs note what is new. It is taken from them between two turns, and written by a thread that does nothing else:
one group at a time, so whatever comes while one is written makes up the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from mediator.assembly import Stems
from mediator.catalog.model import Catalog, Relation
from mediator.clock import Clock
from mediator.errors import StoreError
from mediator.state.stem import SteM
from mediator.store.news import News
from mediator.store.records import Group, Kept
from mediator.store.store import Store
from mediator.turns import Turns

_log = logging.getLogger(__name__)

# Seconds from the first news to the writing, for others to come along.
_GATHERING = 0.05


class Keeping:
    """The SteMs of a mediator and their store, while it is open."""

    def __init__(
        self, store: Store, thread: ThreadPoolExecutor, turns: Turns, offset: float, numbered: int
    ) -> None:
        self.stems = Stems(self._empty)
        self._store = store
        self._thread = thread  # the only one that touches the store
        self._turns = turns
        # From the loop's clock to the wall's. It stays the same, so that rows are never older than what was asked
        # before them, whatever is done to the machine's clock meanwhile.
        self._offset = offset
        self._numbered = numbered  # lookups that the store knows of
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = (
            None  # the last group; those before it are written before it
        )
        self._failed = ""

    @classmethod
    async def opened(cls, folder: Path, catalog: Catalog, turns: Turns, wall: Clock) -> Self:
        """Everything fresh that was kept before is in the SteMs. A `StoreError` if the folder can't be used."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, "store")
        stores: list[Store] = []
        opening = loop.run_in_executor(thread, _open, folder, catalog, wall, stores)
        try:
            await asyncio.wait([opening])
            now, numbered, kept = opening.result()
        except BaseException:
            thread.shutdown()
            for store in stores:
                store.close()
            raise
        keeping = cls(stores[0], thread, turns, now - loop.time(), numbered)
        for relation, found in kept:
            stem = keeping._empty(relation)
            stem.restore(found, -keeping._offset)
            keeping.stems.put(stem)
        return keeping

    async def kept(self) -> None:
        """Wait until all that has come so far is on the disk. A `StoreError` if it can't be written."""
        async with self._turns.taken():
            self._hand_over()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._failed:
            raise StoreError(self._failed)

    async def close(self) -> None:
        """Keep the rest, and leave the store to others."""
        try:
            await self.kept()
        except StoreError:
            pass  # it has been said when it happened
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._thread.submit(self._store.close)
            self._thread.shutdown()

    def _empty(self, relation: Relation) -> SteM:
        return SteM(relation, News(relation, self._stirred, self._numbered))

    def _stirred(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(_GATHERING, self._gathered)

    def _gathered(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            self._stirred()
        else:
            self._turns.between(self._hand_over)

    def _hand_over(self) -> None:
        now = self._loop.time()
        taken = [stem.news(now, self._offset) for stem in self.stems.held().values()]
        groups = [group for group in taken if group is not None]
        if groups and not self._failed:
            self._writing = self._loop.run_in_executor(self._thread, self._write, groups)

    def _write(self, groups: Sequence[Group]) -> None:
        """In the thread. After a failure nothing more is written: it might rest on rows that were lost."""
        if self._failed:
            return
        try:
            self._store.append(groups)
        except Exception as error:
            self._failed = f"The store {self._store.folder} cannot be written: {error}"
            _log.warning("%s. Queries go on; what comes from now on is not kept.", self._failed)


def _open(
    folder: Path, catalog: Catalog, wall: Clock, stores: list[Store]
) -> tuple[float, int, list[tuple[Relation, Kept]]]:
    """The time, the highest number of a lookup, and what the store has of each relation that sites have. What can't be
    used is discarded."""
    store = Store(folder)
    stores.append(store)
    # A wall clock may have been set back since. What was kept before is older than all that comes now.
    now = max(wall(), store.newest() + 0.001)
    kept = []
    for relation in catalog.relations.values():
        found = _loaded(store, relation, now)
        if found is not None:
            kept.append((relation, found))
    return now, store.numbered, kept


def _loaded(store: Store, relation: Relation, now: float) -> Kept | None:
    try:
        if store.suits(relation):
            return store.load(relation, now)
        why = "it is declared otherwise now"
    except StoreError as error:
        why = str(error)
    _log.warning("What %s kept of %s is discarded: %s", store.folder, relation.name, why)
    store.discard(relation.name)
    return None
