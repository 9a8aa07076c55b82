"""A process that has all that it needs ready, and answers a line with a line as often as it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_ROOT = Path(__file__).parents[1]


class Kept:
    """`python -m MODULE SAID`, until its stdin ends."""

    def __init__(self, module: str, said: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, said],
            cwd=_ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()

    def ask(self, line: str = "") -> str:
        """Its answer; nothing where it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(line, file=self._process.stdin, flush=True)
        except OSError:
            return ""
        return self._process.stdout.readline()
