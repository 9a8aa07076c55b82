"""How much memory there is."""

from __future__ import annotations

import os


def memory_of_machine() -> int:
    """Bytes."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
