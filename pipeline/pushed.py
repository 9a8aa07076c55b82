"""One DataFrame, one set of filters: a guard around a fault of Spark 4.3.

Spark keeps what came of the filters that it pushed last with the DataFrame that `load()` gave, and not with the query
that it planned. Another query over the same DataFrame, or the other half of a union, then reads with those filters,
and nobody is told. So filters are taken only where the user asks for that, and a second set of them is noticed here. A
query without any filter is never told to a data source, and cannot be noticed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mediator.clock import wall
from pipeline.errors import BadOption
from pipeline.filters import Condition

_REMEMBERED = 24 * 3600.0  # seconds


def check_alone(load: str, conditions: Sequence[Condition]) -> None:
    """Raises `BadOption` where other filters were pushed to this `load()` before. Those who plan share a folder."""
    mine = hashlib.sha256(repr(sorted(map(repr, conditions))).encode()).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"mediator-pushed-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    _forget(folder)
    file = folder / load
    try:
        with file.open("x", encoding="ascii") as new:
            new.write(mine)
    except FileExistsError:
        if file.read_text(encoding="ascii") != mine:
            raise BadOption(
                "other filters were pushed to this DataFrame before, and Spark would mix them up: make another with "
                "load() for each query, or say .option('bindings', ...) instead of .option('pushdown', 'true')"
            ) from None


def _forget(folder: Path) -> None:
    oldest = wall() - _REMEMBERED
    for file in folder.iterdir():
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
