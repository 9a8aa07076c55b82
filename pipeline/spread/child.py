"""A process of its own for the drive of one spread, with a Spark session of its own: `python -m pipeline.spread.child`.

Where Spark's Java is killed, PySpark's process is of no more use: whoever started it starts another, which goes on from
the folder. It ends when its stdin does, so that it never outlives whoever wants the answers.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from mediator.errors import MediatorError
from pipeline.errors import NotStarted
from pipeline.session import BRIEF, local_session
from pipeline.spread.drive import Drive
from pipeline.spread.errors import BROKEN, MISTAKEN
from pipeline.spread.folder import Folder


def main() -> int:
    folder = Folder(Path(sys.argv[1]))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        plan = folder.plan()
        with local_session(plan.slots + plan.askers, flags=BRIEF) as session:
            Drive(session, folder, plan).run()
    except MediatorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - read by whoever started it
        return BROKEN if isinstance(error, NotStarted) else MISTAKEN
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return BROKEN
    return 0


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(BROKEN)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a thread waits for stdin, which Python would trip over
