"""Reading without looking for garbage: what a reply says refers to nothing in a circle, and takes thousands of objects.

Python looks for circles whenever so many objects are new, through all that there are: in a large process that takes
longer than to read the reply.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_one = threading.Lock()


@contextmanager
def uncollected() -> Iterator[None]:
    """Of several at once the first says how long: so it is never for longer than one of them takes."""
    if not _one.acquire(blocking=False):
        yield
        return
    try:
        looked = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if looked:
                gc.enable()
    finally:
        _one.release()
