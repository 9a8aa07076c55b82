"""Numbered files of a spread: their names, how many there are, and what is said at the head of a piece.

Spark asks for this in a process that it begins for each query, which is to be there soon: nothing heavy is imported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

COUNTS, WEIGHT, AFTER = b"counts", b"weight", b"after"
_NUMBERED = re.compile(r"(\d{8,})\.(arrow|json)")


def numbered(folder: Path, number: int, ending: str) -> Path:
    return folder / f"{number:08d}.{ending}"


def count(folder: Path) -> int:
    """How many numbered files there are. What appears while the folder is listed may be left out of the list."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return 0
    return max((int(m[1]) for name in names if (m := _NUMBERED.fullmatch(name))), default=-1) + 1


def weight_of(piece: Path) -> int:
    """How many bytes there are to be read."""
    return int(said_of(piece)[WEIGHT])


def ahead_of(piece: Path) -> tuple[int, dict[str, int]]:
    """How many bytes there are to be read, and how many pieces of other strands go before them."""
    said = said_of(piece)
    return int(said[WEIGHT]), json.loads(said[AFTER])


def said_of(piece: Path) -> Mapping[bytes, bytes]:
    with pa.memory_map(str(piece)) as file:
        found: Mapping[bytes, bytes] = pa.ipc.open_file(file).schema.metadata
        return found
