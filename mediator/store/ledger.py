"""The ledger: how many requests of which day were, or may have been, sent to each source. Blocks.

What stands in it is never less than what was sent: a block of requests is noted before the first of them goes. So
after a kill a source may get a few requests fewer than it allows, and never one more.
"""

from __future__ import annotations

import logging
import threading
from datetime import date
from pathlib import Path
from typing import Any

from mediator.store import notes

FILE = "requests.json"
_VERSION = 1
_ALL = 1 << 62  # as if no budget were so large: of a day whose count was lost

_log = logging.getLogger(__name__)

Counts = dict[str, tuple[date, int]]


class Ledger:
    """Of the process that has the store. A file that cannot be read has lost the count of its day: nothing is left of
    it then, as far as anybody can tell, and the next day starts anew."""

    def __init__(self, folder: Path, today: date) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._lost: date | None = None
        try:
            self._counts, self._lost = _read(self._path)
        except notes.Unreadable as error:
            _log.warning(
                "%s. How many requests were sent today is not known, so daily budgets count as spent until tomorrow "
                "(UTC). If none was sent, remove the file.",
                error,
            )
            self._counts, self._lost = {}, today
            self._write()

    def noted(self, source: str) -> tuple[date, int] | None:
        """The last day on which it was asked, and how often at most."""
        found = self._counts.get(source)
        if self._lost is not None and (found is None or found[0] <= self._lost):
            return self._lost, _ALL
        return found

    def note(self, source: str, day: date, count: int) -> None:
        """When it returns, this is on the disk."""
        with self._lock:
            before = self._counts.get(source)
            self._counts[source] = day, count
            try:
                self._write()
            except BaseException:
                if before is None:
                    del self._counts[source]
                else:
                    self._counts[source] = before
                raise

    def _write(self) -> None:
        sources = {name: {"day": day.isoformat(), "count": n} for name, (day, n) in self._counts.items()}
        lost = self._lost.isoformat() if self._lost else None
        notes.replace(self._path, {"version": _VERSION, "lost": lost, "sources": sources})


def sent_on(folder: Path, today: date) -> dict[str, int] | None:
    """What a store's ledger says was sent that day, by source, for a look at it: also while another process writes it.

    None where it has lost the count. Raises `Unreadable` where it is about to.
    """
    counts, lost = _read(folder / FILE)
    if lost is not None and lost >= today:
        return None
    return {name: count for name, (day, count) in counts.items() if day >= today}


def _read(path: Path) -> tuple[Counts, date | None]:
    found = notes.read(path)
    if found is None:
        return {}, None
    try:
        if found["version"] != _VERSION:
            raise ValueError(f"format {found['version']!r}, not {_VERSION}")
        lost = date.fromisoformat(found["lost"]) if found["lost"] is not None else None
        return {name: _count(said) for name, said in found["sources"].items()}, lost
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise notes.Unreadable(f"{path} is damaged: {error!r}") from None


def _count(said: dict[str, Any]) -> tuple[date, int]:
    count = said["count"]
    if type(count) is not int or count < 0:
        raise ValueError(f"{count!r} is no count of requests")
    return date.fromisoformat(said["day"]), count
