"""One process at a time writes a store."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mediator.errors import StoreError

FILE = "lock"


class Lock:
    """Held from its making until `release`, or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / FILE).open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            who = f"process {holder}" if holder else "another process"
            raise StoreError(
                f"The store {folder} is in use by {who}: wait until that ends, or name another folder"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()
