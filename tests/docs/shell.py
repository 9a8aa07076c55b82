"""A shell with a terminal, as a reader has it, in one folder."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

_PATIENCE = 60.0  # for one command
_MARK = "<the command has ended>"
_ENDED = re.compile(rf"\n{_MARK} (\d+)\n")


class Shell:
    """Runs commands one after another in one bash: what is exported stays so, what is started with `&` runs on."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder, self._env = folder, dict(env)

    def __enter__(self) -> Shell:
        self._terminal, inside = pty.openpty()
        try:
            self._bash = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=inside,
                stderr=inside,
                start_new_session=True,
            )
        finally:
            os.close(inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._bash.stdin is not None
        os.killpg(self._bash.pid, signal.SIGKILL)  # with all that it has started
        self._bash.wait()
        self._bash.stdin.close()
        os.close(self._terminal)

    def run(self, command: str, enough: Callable[[str], bool]) -> tuple[str, int]:
        """What it prints, and its exit code. After one that runs on behind, as much is awaited as is `enough`."""
        assert self._bash.stdin is not None
        ends = f"printf '\\n%s %s\\n' {shlex.quote(_MARK)} $code; (exit $code)"
        self._bash.stdin.write(f"eval {shlex.quote(command)} </dev/null; code=$?; {ends}\n".encode())
        self._bash.stdin.flush()
        text = self._read("", _ENDED.search, command)
        if command.endswith("&"):
            text = self._read(
                text, lambda text: _whole(printed := _printed(text)) and enough(printed), command
            )
        ended = _ENDED.search(text)
        assert ended is not None
        return _printed(text), int(ended[1])

    def _read(self, text: str, whole: Callable[[str], object], command: str) -> str:
        until = time.monotonic() + _PATIENCE
        data = text.encode()
        while not whole(text):
            if not select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(f"$ {command}\ndoes not end; so far it has printed:\n{text}")
            data += os.read(self._terminal, 1 << 16)
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        return text


def _whole(printed: str) -> bool:
    """Whether the last line has ended: a program may write its end apart."""
    return not printed or printed.endswith("\n")


def _printed(text: str) -> str:
    return _ENDED.sub("", text)
