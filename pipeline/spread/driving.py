"""Who runs the drive: a process of its own, or a thread beside a Spark session that is there already."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from mediator.errors import MediatorError
from pipeline.spread.errors import MISTAKEN, SpreadError, told
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "pipeline.spread.child"
_LEAVING = 30.0  # seconds for a process to end when it is told to
_SAID = 2_000  # characters of what it said last


class Gone(Exception):
    """It ended before the query did. Another may go on."""


class Driving(Protocol):
    async def start(self) -> None: ...

    def check(self) -> None:
        """Raises `Gone` where it has ended; a `MediatorError` where there is no use in another."""
        ...

    async def close(self) -> None:
        """After the spread has ended, or to end it at once."""
        ...


class Process:
    """With a session of its own."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the process is there
        # What Spark leaves there goes, also where it is killed.
        self._scratch = tempfile.TemporaryDirectory(prefix="mediator-spark-", ignore_cleanup_errors=True)

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", CHILD, str(self._folder.path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for whoever started it, which then says what is to be done
            env={**os.environ, "PYTHONPATH": _importable(), "TMPDIR": self._scratch.name},
        )

    def check(self) -> None:
        assert self._process is not None
        code = self._process.returncode
        if code is None or self._folder.end is not None:
            return
        said = self._last_words()
        if code == MISTAKEN:
            raise SpreadError(said)
        raise Gone(said or f"it ended with {code}")

    async def close(self) -> None:
        try:
            if self._process is not None:
                await self._end(self._process)
        finally:
            self._said.close()
            await asyncio.to_thread(self._scratch.cleanup)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if self._folder.end is None and process.stdin is not None:
            process.stdin.close()  # it ends at once
        try:
            async with asyncio.timeout(_LEAVING):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        finally:
            with suppress(ProcessLookupError):  # Java, where the process that began it was killed
                os.killpg(process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace")[-_SAID:].strip().splitlines()
        return "\n".join(line for line in lines if line and not line.startswith(_NOISE))


class Thread:
    """In a session that is there already. It is the session's owner who starts it again, should it end."""

    def __init__(self, folder: Folder, plan: Plan, session: SparkSession) -> None:
        from pipeline.spread.drive import Drive  # here, as the engine may be asked for where Spark is not

        self._drive = Drive(session, folder, plan)
        self._thread = threading.Thread(target=self._run, name="drive", daemon=True)
        self._error: Exception | None = None

    async def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        if self._error is not None:
            if isinstance(self._error, MediatorError):
                raise self._error
            raise SpreadError(f"Spark has given the query up: {self._error}")

    async def close(self) -> None:
        self._drive.leave()
        await asyncio.to_thread(self._thread.join, _LEAVING)

    def _run(self) -> None:
        try:
            self._drive.run()
        except Exception as error:
            self._error = told(error)


_NOISE = ("Starting Streaming TransformWithState", "Streaming TransformWithState", "WARNING: ")


def _importable() -> str:
    """What can be imported here can be imported there, and by the workers."""
    root = str(Path(__file__).parents[2])
    said = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, (root, said)))
