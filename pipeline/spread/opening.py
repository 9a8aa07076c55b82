"""The plan of a spread, once for each process that works for it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan


@lru_cache(maxsize=4)
def opened(folder: Path, id_: str, layout: int) -> Plan:
    return Folder(folder).plan(id_, layout)
