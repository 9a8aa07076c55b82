"""What outlives the process beside the rows: what was measured of the sites, and how much they were asked today."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from mediator.catalog.measured import Measurements
from mediator.clock import Clock
from mediator.errors import StoreError
from mediator.store import statistics
from mediator.store.ledger import Ledger

_log = logging.getLogger(__name__)

# Seconds from the first measurement to the writing. A process that is killed loses no more than that.
_GATHERING = 30.0


class Noting:
    """Of the process that has the store's lock, while it has it."""

    def __init__(self, folder: Path, wall: Clock, measurements: Measurements, ledger: Ledger) -> None:
        self.measurements = measurements
        self.ledger = ledger
        self._folder = folder
        self._wall = wall
        self._aged_at = wall()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._failed = False
        measurements.stirred = self._stirred

    @classmethod
    async def opened(cls, folder: Path, wall: Clock) -> Self:
        """What the store has of it. A `StoreError` if it can be neither read nor begun anew."""
        now = wall()
        try:
            ledger = await asyncio.to_thread(Ledger, folder, datetime.fromtimestamp(now, UTC).date())
        except OSError as error:
            raise StoreError(f"The store {folder} cannot be written: {error}") from None
        return cls(folder, wall, await asyncio.to_thread(statistics.load, folder, now), ledger)

    async def close(self) -> None:
        """Note the rest."""
        measured = self._timer is not None
        if self._timer is not None:
            self._timer.cancel()
        self.measurements.stirred = None
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if measured:
            await asyncio.wait([self._write()])

    def _stirred(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(_GATHERING, self._gathered)

    def _gathered(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            self._stirred()
        else:
            self._write()

    def _write(self) -> asyncio.Future[None]:
        now = self._wall()
        self.measurements.age(now - self._aged_at)
        self._aged_at = now
        measured = statistics.written(self.measurements, now)
        self._writing = self._loop.run_in_executor(None, self._save, measured)
        return self._writing

    def _save(self, measured: dict[str, object]) -> None:
        """In a thread. What cannot be kept is no reason to fail; that is said once."""
        try:
            statistics.save(self._folder, measured)
        except (OSError, ValueError) as error:
            if not self._failed:
                _log.warning("What was measured cannot be kept in %s: %s", self._folder, error)
            self._failed = True
