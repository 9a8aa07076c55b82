"""Who runs the drive: a process of its own, or a thread beside a Spark session that is there already."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from mediator.errors import MediatorError
from pipeline.leftovers import own
from pipeline.spread.errors import FULL, MISTAKEN, STUCK, NoRoom, SpreadError, in_short, no_room, told
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "pipeline.spread.child"
_LEAVING = 30.0  # seconds for a process to end when it is told to
_SAID = 2_000  # characters of what it said last
# What Java and Spark say of themselves, whatever happens; and where in a program something happened.
_NOISE = re.compile(
    r"\s|$|WARNING: |Traceback |During handling|The above exception|ERROR:|(?:Starting )?Streaming TransformWith"
    r"|Setting default log level|To adjust logging level|Using Spark's |Picked up |\S+ object at 0x"
)


class Gone(Exception):
    """It ended before the query did. Another may go on."""


class Driving(Protocol):
    async def start(self) -> None: ...

    def check(self) -> None:
        """Raises `Gone` where it has ended; a `MediatorError` or `NoRoom` where there is no use in another."""
        ...

    async def close(self) -> None:
        """After the spread has ended, or to end it at once."""
        ...


class Nothing:
    """Where the query has ended: all that it found is in the folder."""

    async def start(self) -> None:
        pass

    def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Process:
    """With a session of its own."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        # For as long as the process is there: what it says itself, and what Java and Spark do.
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # What Spark leaves there goes, also where it is killed.
        self._scratch = tempfile.TemporaryDirectory(prefix="mediator-spark-", ignore_cleanup_errors=True)
        self._owned = own(Path(self._scratch.name))

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", CHILD, str(self._folder.path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=self._words,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for whoever started it, which then says what is to be done
            env={**os.environ, "PYTHONPATH": _importable(), "TMPDIR": self._scratch.name},
        )

    def check(self) -> None:
        assert self._process is not None
        code = self._process.returncode
        if code is None or self._folder.end is not None:
            return
        if code == FULL:
            raise no_room(self._folder.path)
        words = _read(self._words)
        if code == MISTAKEN:
            raise SpreadError(words)
        said = (
            told_of(_read(self._said)) if code == STUCK or not words else ""
        )  # Java knows why it did not start
        raise Gone("\n".join(filter(None, (words, said))) or f"it ended with {code}")

    async def close(self) -> None:
        try:
            if self._process is not None:
                await self._end(self._process)
        finally:
            self._words.close()
            self._said.close()
            self._owned.close()
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


class Thread:
    """In a session that is there already. It is the session's owner who starts it again, should it end."""

    def __init__(self, folder: Folder, plan: Plan, session: SparkSession) -> None:
        from pipeline.spread.drive import Drive  # here, as the engine may be asked for where Spark is not

        self._folder = folder
        self._drive = Drive(session, folder, plan)
        self._thread = threading.Thread(target=self._run, name="drive", daemon=True)
        self._error: Exception | None = None

    async def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        self._drive.leave()
        await asyncio.to_thread(self._thread.join, _LEAVING)

    def _run(self) -> None:
        try:
            self._drive.run()
        except Exception as error:
            self._error = told(error, self._folder.path)
            if not isinstance(
                self._error, MediatorError | NoRoom
            ):  # in words: the session may be gone when it is read
                self._error = SpreadError(f"Spark has given the query up: {in_short(self._error)}")


def told_of(said: str) -> str:
    """What a process said last, without what Java and Spark say of themselves; whole lines of it."""
    found: list[str] = []
    left = _SAID
    for line in reversed(said.splitlines()):
        if not _NOISE.match(line):
            left -= len(line) + 1
            if left < 0:
                break
            found.append(line)
    return "\n".join(reversed(found))


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def _importable() -> str:
    """What can be imported here can be imported there, and by the workers."""
    root = str(Path(__file__).parents[2])
    said = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, (root, said)))
