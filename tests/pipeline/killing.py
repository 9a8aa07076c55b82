"""Kills a query's processes at points that are seen from outside, as a machine that fails would."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

POINTS = ("fetch", "log", "cut", "state", "answers", "given", "any")
_LOOK = 0.001


def parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            found[int(name)] = int(stat.rsplit(")", 1)[1].split()[1])
    return found


def alive(pid: int) -> bool:
    """And not only waiting for somebody to take note of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def below(root: int) -> list[int]:
    """All that a process has begun, and what they have begun."""
    of, found = parents(), [root]
    for one in found:
        found += [pid for pid, parent in of.items() if parent == one]
    return found[1:]


def said_by(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def of_kind(root: int, kind: str) -> list[int]:
    """`java`, `source` (the process that is asked for offsets), or the workers in a role."""
    found = below(root)
    if kind == "java":
        return [pid for pid in found if "org.apache.spark.deploy" in said_by(pid, "cmdline")]
    if kind == "source":
        return [pid for pid in found if "python_streaming_source_runner" in said_by(pid, "cmdline")]
    workers = [pid for pid in found if f"MEDIATOR_ROLE={kind}" in said_by(pid, "environ")]
    forked = [pid for pid in workers if parents().get(pid) in workers]
    return forked or workers


class Killer:
    """Strikes once at each of these points, one after another, for as long as the query runs."""

    def __init__(self, folder: Path, fetched: Callable[[], int], random: Random, points: list[str]) -> None:
        self._folder, self._fetched, self._random = folder, fetched, random
        self._points = points
        self.struck: list[tuple[str, str]] = []  # the point, and who was hit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while self._points and not self._over.is_set():
            if self._reached(self._points[0]) and self._strike(self._points[0]):
                self._points.pop(0)

    def _reached(self, point: str) -> bool:
        """Waits for something that had not happened when this began."""
        look = self._looks()[point]
        before = look()
        while not self._over.is_set():
            if look() != before:
                return True
            time.sleep(_LOOK)
        return False

    def _looks(self) -> dict[str, Callable[[], object]]:
        def names(folder: str, pattern: str = "*") -> Callable[[], object]:
            return lambda: sorted(p.name for p in (self._folder / folder).rglob(pattern))

        return {
            "fetch": self._fetched,
            "log": names("log"),
            "cut": names("checkpoint/offsets", "[0-9]*"),
            "state": names("checkpoint/state", "*.changelog"),
            "answers": names("answers", "*.parquet"),
            "given": names("given", "*.json"),
            "any": lambda: self._random.random() < 0.002,
        }

    def _strike(self, point: str) -> bool:
        kinds = {"fetch": ("asker", "java"), "log": ("asker", "java"), "cut": ("cut", "java"),
                 "state": ("host 0", "java"), "answers": ("host 0", "java"), "given": ("java",)}  # fmt: skip
        kind = self._random.choice(kinds.get(point, ("java", "asker", "cut", "host 0", "source", "drive")))
        drives = [pid for pid in below(os.getpid()) if str(self._folder) in said_by(pid, "cmdline")]
        victims = drives[:1] if kind == "drive" or not drives else of_kind(drives[0], kind)
        if not victims:
            return False
        try:
            os.kill(self._random.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.struck.append((point, kind))
        return True
