"""A drive whose Java is killed once, when an epoch's answers have been given and Spark does not know of it yet."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from pipeline.spread import child
from pipeline.spread.given import Given, Giving
from tests.pipeline.killing import of_kind

_give = Giving.give


def give_and_die(self: Giving, one: Given) -> bool:
    first = _give(self, one)
    struck = Path(sys.argv[1]) / "struck"
    if one.batch is not None and one.files and not struck.exists():
        struck.touch()
        for pid in of_kind(os.getpid(), "java"):
            os.kill(pid, signal.SIGKILL)
        time.sleep(1.0)  # nothing that comes after it happens
    return first


def main() -> int:
    Giving.give = give_and_die  # type: ignore[method-assign]
    return child.main()


if __name__ == "__main__":
    os._exit(main())  # as the drive does
