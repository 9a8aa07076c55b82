"""Folders that are gone when their process has ended; where that was killed, the next run takes them away.

Each has a file that names its process, and is locked for as long as that lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

PREFIXES = ("mediator-spread-", "mediator-spark-")
_OWNER = "owner"


def own(folder: Path) -> IO[str]:
    """It is this process's, until what is returned is closed."""
    new = folder / f".{_OWNER}.new"
    file = new.open("w", encoding="utf-8")
    try:
        file.write(str(os.getpid()))
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        new.rename(folder / _OWNER)  # whoever sees it sees it locked
    except BaseException:
        file.close()
        raise
    return file


def sweep(place: Path | None = None) -> None:
    """Removes folders of processes that are gone. What cannot be removed stays."""
    for prefix in PREFIXES:
        for folder in (place or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
            with suppress(OSError):  # no owner yet; or one that lives; or somebody else sweeps as well
                _remove(folder)


def _remove(folder: Path) -> None:
    """Raises `OSError` where its owner lives."""
    if folder.lstat().st_uid != os.getuid():
        return
    with (folder / _OWNER).open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
