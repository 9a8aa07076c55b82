"""Memory for large arrays: reserved ahead of its use, in huge pages where the system has them, and used again.

A page that is touched for the first time costs the system a microsecond or more, which for columns and indexes that
grow by megabytes came to a third of a query's time. Huge pages cost a tenth of that and make random reads cheaper. A
virtual machine may have to ask its host for each, which takes as long as all the rest of a query: so pages that arrays
have left wait a while for the next ones, as an allocator's do. Reserved memory that is never touched costs nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from mediator.clock import monotonic

_HUGE = 1 << 21  # bytes in a huge page
LARGE = 1 << 20  # from here on an array has pages of its own
_SLAB = 1 << 23
_ALIGNMENT = 64
_MAP = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)}
_MINCORE = getattr(ctypes.CDLL(None), "mincore", None)
# Not Python's own, which has everybody wait for the interpreter while the system has it wait: pages that join others of
# their kind are not taken on before whoever touches one of those for the first time has it, from the host if need be.
_MADVISE = getattr(ctypes.CDLL(None), "madvise", None)
WAIT = 10.0  # seconds that pages wait to be used again
_SHARE = 4  # of the machine's memory, one part in so many may wait at most


class _Piece(NamedTuple):
    pages: mmap.mmap
    held: int  # bytes of memory: of what is reserved ahead most was never touched
    since: float


class Spare:
    """Pieces of memory that nobody uses any more, by size. Any thread may put one here, in the middle of anything."""

    def __init__(self, most: int, now: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._now = now
        self._pieces: dict[int, deque[_Piece]] = {}
        self._users: int | None = None  # none who says when it leaves
        self._counting = Lock()

    def join(self) -> None:
        """Somebody will use pieces again, and says when he leaves."""
        with self._counting:
            self._users = (self._users or 0) + 1

    def leave(self) -> None:
        """When the last one has left, pages that come go back to the system, until somebody joins again."""
        with self._counting:
            self._users = (self._users or 1) - 1
        self.release(wait=0.0)

    @property
    def size(self) -> int:
        """Bytes of memory that wait here."""
        return sum(piece.held for pieces in list(self._pieces.values()) for piece in list(pieces))

    def put(self, pages: mmap.mmap, size: int) -> None:
        if self._users == 0:
            return
        held = _held(pages, size)
        if self.size + held <= self._most:
            self._pieces.setdefault(size, deque()).append(_Piece(pages, held, self._now()))

    def take(self, size: int) -> mmap.mmap | None:
        """A piece of just this size, the latest, as it was left."""
        try:
            return self._pieces[size].pop().pages
        except (KeyError, IndexError):
            return None

    def release(self, wait: float = WAIT) -> None:
        """Give back to the system what has waited so long."""
        until = self._now() - wait
        for pieces in list(self._pieces.values()):
            with suppress(IndexError):
                while pieces[0].since <= until:
                    pieces.popleft()


def _held(pages: mmap.mmap, size: int) -> int:
    """How much memory the pages take, and that is never nothing; all of their size, where the system does not say."""
    there = np.empty(-(-size // mmap.PAGESIZE), np.uint8)
    if _MINCORE is None or _MINCORE(
        _first(pages), ctypes.c_size_t(size), there.ctypes.data_as(ctypes.c_void_p)
    ):
        return size
    return max(1, int(np.count_nonzero(there & 1))) * mmap.PAGESIZE


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


SPARE = Spare(_memory() // _SHARE)


def empty(count: int, dtype: DTypeLike) -> Any:
    """An array of undefined content, for long use. Costs memory only as far as it is written to."""
    kind = np.dtype(dtype)
    array, _ = _array(count, kind) if count * kind.itemsize >= LARGE else (None, False)
    return np.empty(count, kind) if array is None else array


def zeros(count: int, dtype: DTypeLike) -> Any:
    """An array of zeros, for long use."""
    kind = np.dtype(dtype)
    array, used = _array(count, kind) if count * kind.itemsize >= LARGE else (None, False)
    if array is None:
        return np.zeros(count, kind)
    if used:
        array.fill(0)
    return array


class Slabs:
    """Cuts arrays of undefined content from large pieces of memory, which are freed when all their arrays are.

    For what is made once per batch and handed on. Each thread has a slab of its own.
    """

    def __init__(self) -> None:
        self._mine = local()

    def empty(self, count: int, dtype: DTypeLike) -> Any:
        kind = np.dtype(dtype)
        size = count * kind.itemsize
        if not _SLAB >> 9 <= size <= _SLAB >> 1:
            return empty(count, kind)
        start = getattr(self._mine, "used", _SLAB)
        if start + size > _SLAB:
            self._mine.slab, start = empty(_SLAB, np.uint8), 0
        self._mine.used = start + size + -size % _ALIGNMENT
        return np.frombuffer(self._mine.slab, kind, count, start)


SLABS = Slabs()


def _array(count: int, kind: np.dtype[Any]) -> tuple[Any, bool]:
    """An array over whole huge pages, and whether they were used before; none where the system refuses so much."""
    size = count * kind.itemsize
    size += -size % _HUGE
    pages = SPARE.take(size)
    used = pages is not None
    if pages is None and (pages := _pages(size)) is None:
        return None, False
    # What stands between the array and its pages dies with the last view of the array: then the pages are spare.
    lease = (ctypes.c_char * size).from_buffer(pages)
    weakref.finalize(lease, SPARE.put, pages, size).atexit = False
    return np.frombuffer(memoryview(lease), kind, count), used


def _pages(size: int) -> mmap.mmap | None:
    """Whole huge pages; none where the system refuses so much."""
    try:
        pages = mmap.mmap(-1, size, **_MAP)
    except (OSError, ValueError):
        return None
    if _MADVISE is not None and hasattr(mmap, "MADV_HUGEPAGE"):
        _MADVISE(_first(pages), ctypes.c_size_t(size), mmap.MADV_HUGEPAGE)  # a kernel without them says no
    return pages


def _first(pages: mmap.mmap) -> Any:
    """Where they begin, for the system."""
    return ctypes.byref(ctypes.c_char.from_buffer(pages))
