"""Memory for large arrays: reserved ahead of its use, and in huge pages where the system has them.

A page that is touched for the first time costs the system a microsecond or more, which for columns and indexes that
grow by megabytes came to a third of a query's time. Huge pages cost a tenth of that and make random reads cheaper.
Reserved memory that is never touched costs nothing.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from threading import local
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

_HUGE = 1 << 21  # bytes in a huge page
LARGE = 1 << 20  # from here on an array has pages of its own
_SLAB = 1 << 23
_ALIGNMENT = 64
_MAP = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)}


def zeros(count: int, dtype: DTypeLike) -> Any:
    """An array of zeros, for long use. Touched only as far as it is written to."""
    kind = np.dtype(dtype)
    pages = _pages(count * kind.itemsize) if count * kind.itemsize >= LARGE else None
    return np.zeros(count, kind) if pages is None else np.frombuffer(pages, kind, count)


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
            return np.empty(count, kind) if size < LARGE else zeros(count, kind)
        start = getattr(self._mine, "used", _SLAB)
        if start + size > _SLAB:
            self._mine.slab, start = zeros(_SLAB, np.uint8), 0
        self._mine.used = start + size + -size % _ALIGNMENT
        return np.frombuffer(self._mine.slab, kind, count, start)


SLABS = Slabs()


def _pages(size: int) -> mmap.mmap | None:
    """Whole huge pages; none where the system refuses so much."""
    try:
        pages = mmap.mmap(-1, size + -size % _HUGE, **_MAP)
    except (OSError, ValueError):
        return None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
