"""A process of its own for the drive of one spread, with a Spark session of its own: `python -m pipeline.spread.child`.

What went wrong it says on stdout, in a sentence; stderr is left to Java and to Spark.

Where Spark's Java is killed, PySpark's process is of no more use: whoever started it starts another, which goes on from
the folder. It ends when its stdin does, so that it never outlives whoever wants the answers.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from mediator.errors import MediatorError
from pipeline.errors import NotStarted
from pipeline.session import BRIEF, local_session
from pipeline.spread.drive import Drive
from pipeline.spread.errors import BROKEN, FULL, MISTAKEN, STUCK, NoRoom, in_short, told
from pipeline.spread.folder import Folder


def main() -> int:
    """An exit code. The last words are said while Spark is there, which knows what Java's errors mean."""
    folder = Folder(Path(sys.argv[1]))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        plan = folder.plan()
        with local_session(plan.slots + plan.askers, flags=BRIEF) as session:
            try:
                Drive(session, folder, plan).run()
            except Exception as error:
                return _leave(told(error, folder.path))
    except Exception as error:
        return _leave(told(error, folder.path))
    return 0


def _leave(error: Exception) -> int:
    words = str(error) if isinstance(error, MediatorError | NoRoom) else in_short(error)
    with suppress(OSError):  # there is no room for it
        print(words, flush=True)  # noqa: T201 - read by whoever started it
    for kind, code in ((NoRoom, FULL), (NotStarted, STUCK), (MediatorError, MISTAKEN)):
        if isinstance(error, kind):
            return code
    return BROKEN


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(BROKEN)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a thread waits for stdin, which Python would trip over
