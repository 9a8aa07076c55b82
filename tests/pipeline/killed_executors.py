"""Put before a program that is submitted, this kills executors once, when its query has given the first answers: the
one in which the sites are asked, and another that has cells."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pipeline.spread.given import Given, Giving
from tests.pipeline.cluster import MARK
from tests.pipeline.killing import parents, said_by

STRUCK = "struck"  # a file in the query's folder that says who was hit
_give = Giving.give


def give_and_kill(self: Giving, one: Given) -> bool:
    first = _give(self, one)
    struck = Path(sys.argv[2]) / STRUCK
    if one.files and not struck.exists():
        (asks,) = executors("asker")
        cells = sorted(executors("host 0") - {asks})[:1]
        struck.write_text(" ".join(map(str, [asks, *cells])))
        for pid in (asks, *cells):
            os.kill(pid, signal.SIGKILL)
    return first


def executors(role: str) -> set[int]:
    """Those in which a worker has this role."""
    of, found = parents(), set[int]()
    for pid in of:
        around = said_by(pid, "environ")
        if f"{MARK}={os.environ[MARK]}" in around and f"MEDIATOR_ROLE={role}" in around:
            while pid and "CoarseGrainedExecutorBackend" not in said_by(pid, "cmdline"):
                pid = of.get(pid, 0)
            found.add(pid)
    return found - {0}


if MARK in os.environ:  # in the program, and not where it is only named
    Giving.give = give_and_kill  # type: ignore[method-assign]
