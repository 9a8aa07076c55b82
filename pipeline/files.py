"""Files that appear under their names when they are whole, and outlive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def new_of(target: Path) -> Path:
    """Where a file is written before it has its name."""
    return target.with_name(f".{target.name}.new")


def put(new: Path, target: Path) -> None:
    """Give it its name."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(target)
    synced(target.parent)


def put_bytes(target: Path, content: bytes) -> None:
    """A small file, whole."""
    new = new_of(target)
    new.write_bytes(content)
    put(new, target)


def put_text(target: Path, text: str) -> None:
    put_bytes(target, text.encode())


def written(path: Path, text: str) -> None:
    """A file that is on the disk when this returns."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def synced(folder: Path) -> None:
    """What appeared in a folder, or vanished, stays so."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
