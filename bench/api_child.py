"""Processes that the bench of the HTTP API starts, asks, and ends with its block."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

_PATIENCE = 120.0  # seconds for an answer
_ENDING = 20.0  # for the end, after which nobody asks any more
_LOOK = 0.2  # seconds between two looks at its memory
_LOOKS = 4  # that must show the same
_SAME = 1 << 16  # bytes more or less
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Child:
    """`work` is called in a process of its own, with its end of a line and the arguments."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=work, args=(theirs, *arguments), daemon=True)
        self._theirs = theirs

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()  # so that its end is an end of file here
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """By the signal by which a user ends it."""
        self._process.terminate()
        self._process.join(_ENDING)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def ask(self, *what: object) -> Any:
        self.tell(*what)
        return self.hear()

    def tell(self, *what: object) -> None:
        self._line.send(what)

    def hear(self) -> Any:
        """What it says next. An error that it says is raised here."""
        if not self._line.poll(_PATIENCE):
            raise RuntimeError(f"{self._process.name} has said nothing for {_PATIENCE:g} s")
        said = self._line.recv()
        if isinstance(said, Exception):
            raise said
        return said

    @property
    def resident(self) -> int:
        """Bytes of it that are in memory. What the kernel buffers of its connections is not among them."""
        return int(self._proc("statm").split()[1]) * _PAGE

    @property
    def cpu(self) -> float:
        """Seconds that processors have spent on it."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def settled(self, within: float = 15.0) -> int:
        """`resident`, once it has stayed as it is for a while in which the process had little to do."""
        until, before, still = monotonic() + within, (0, 0.0), 0
        while still < _LOOKS and monotonic() < until:
            now = self.resident, self.cpu
            same = abs(now[0] - before[0]) < _SAME and now[1] - before[1] < _LOOK / 2
            still = still + 1 if same else 0
            before = now
            sleep(_LOOK)
        return self.resident

    def _proc(self, what: str) -> str:
        return Path(f"/proc/{self._process.pid}/{what}").read_text(encoding="ascii")
