"""The side that asks: as many workers as are needed at once, up to a number, and each for one statement at a time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import duckdb
import pyarrow as pa

from mediator.errors import MediatorError, Unsupported
from mediator.statements import wire
from mediator.statements.database import NotOne
from mediator.statements.patience import Interrupted, Patience, at_hand

T = TypeVar("T")
Tables = Mapping[str, pa.Table]

_KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
_SPARE = 2  # workers that wait for the next statement
_PATIENCE = 10.0  # seconds
_AGAIN = 0.05  # seconds between two looks whether a worker is still waited for


class TooMuch(Exception):
    """The result has more bytes than it may have."""


class Worker:
    """One process, for one thread at a time; interrupted from any."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self._sock, self.pid = sock, pid
        self._file = cast(BinaryIO, sock.makefile("rwb"))
        self.leaves = False
        self.seconds = 0.0  # that it has worked in all

    def describe(self, request: wire.Describe) -> list[str]:
        """Raises `wire.Ended` when the process is not there any more, as `run` does."""
        try:
            wire.ask(self._file, request)
            self._file.flush()
        except OSError:
            raise wire.Ended from None
        names: list[str] = self._heard()["names"]
        return names

    def run(self, request: wire.Run, tables: Tables) -> pa.Table:
        try:
            wire.ask(self._file, request)
            for table in tables.values():
                with wire.writer(self._file, table.schema) as written:
                    written.write_table(table)
            self._file.flush()
            self._heard()
            found = wire.reader(self._file).read_all()
        except (OSError, pa.ArrowInvalid):
            raise wire.Ended from None
        self._heard()
        return found

    def _heard(self) -> wire.Message:
        told = wire.read(self._file)
        self.leaves = self.leaves or told.get("leaves", False)
        self.seconds += told.get("seconds", 0.0)
        match told.get("error"):
            case None:
                return told
            case wire.NOT_ONE:
                raise NotOne
            case wire.TOO_MUCH:
                raise TooMuch
            case wire.FAILED:
                raise Unsupported(f"the result cannot be had: {told['text']}")
            case name:
                raise getattr(duckdb, name, duckdb.Error)(told["text"])

    @property
    def alive(self) -> bool:
        """Whether it is there, and has nothing to say."""
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def interrupt(self) -> None:
        """It is ended, and whoever waits for it need not wait until it is: it may have gigabytes to give back, and to
        stand behind all others for a processor."""
        self.leaves = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """At once, whatever it does."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """It ends when it has nothing more to do."""
        with suppress(OSError):
            self._file.close()
        self._sock.close()


class Apart:
    """Statements run in processes of their own: `at_once` of them, of so many bytes each. To be used with `with`."""

    def __init__(self, memory: int, at_once: int) -> None:
        self._memory, self._at_once = memory, at_once
        self._changed = threading.Condition()  # of the three below
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()
        self._wanted = 0  # workers that somebody uses, or is about to
        self._nursery = Nursery(memory)

    def __enter__(self) -> Self:
        self._nursery.begin()
        try:
            self.idle.append(self._nursery.born())
        except BaseException:
            self._nursery.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever still runs is ended."""
        with self._changed:
            workers = (*self.idle, *self.busy)
            self.idle.clear()
        for worker in workers:
            worker.end()
        self._nursery.end()

    def run(self, sql: str, tables: Tables, most: int | None) -> tuple[pa.Table, float]:
        """The rows of a statement over these tables, and for how long it worked. Raises what DuckDB has against it,
        `TooMuch` when they are more bytes than that, or `Interrupted` when patience is lost."""
        request = wire.Run(sql, tuple(tables), most)

        def run(worker: Worker) -> tuple[pa.Table, float]:
            before = worker.seconds
            return worker.run(request, tables), worker.seconds - before

        return self._done(run)

    def describe(self, sql: str, schemas: Mapping[str, pa.Schema], parameters: object) -> list[str]:
        """As `database.described`."""
        request = wire.Describe(sql, dict(schemas), parameters)
        return self._done(lambda worker: worker.describe(request))

    def _done(self, work: Callable[[Worker], T]) -> T:
        """Where nobody said how much patience there is, there is a little."""
        if (patience := at_hand()) is not None:
            return self._patiently(work, patience)
        patience = Patience()
        losing = threading.Timer(_PATIENCE, patience.lose)
        losing.start()
        try:
            with patience.at_hand():
                return self._patiently(work, patience)
        finally:
            losing.cancel()

    def _patiently(self, work: Callable[[Worker], T], patience: Patience) -> T:
        with self._borrowed(patience) as worker:
            try:
                with patience.running(worker):
                    return work(worker)
            except wire.Ended:
                worker.leaves = True
                if not patience.lost:
                    raise Unsupported(
                        f"the statement ended the process that ran it, which may take {self._memory:,} bytes: "
                        "make shorter texts and lists, or ask for fewer rows"
                    ) from None
                raise Interrupted from None
            except (NotOne, TooMuch, Unsupported, Interrupted):
                raise
            except duckdb.Error:
                if patience.lost:
                    raise Interrupted from None
                raise
            except BaseException:
                worker.leaves = True  # it may be in the middle of anything
                raise

    @contextmanager
    def _borrowed(self, patience: Patience) -> Iterator[Worker]:
        worker = self._taken(patience)
        try:
            yield worker
        finally:
            self._give_back(worker)

    def _taken(self, patience: Patience) -> Worker:
        with self._changed:
            while self._wanted >= self._at_once:
                if patience.lost:
                    raise Interrupted
                self._changed.wait(_AGAIN)
            self._wanted += 1
            worker = None
            while self.idle and worker is None:
                worker = self.idle.pop()
                if not worker.alive:
                    worker.end()
                    worker = None
        try:
            worker = worker or self._nursery.born()
        except BaseException:
            self._leave()
            raise
        with self._changed:
            self.busy.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            self.busy.discard(worker)
            stays = not worker.leaves and len(self.idle) < _SPARE
            if stays:
                self.idle.append(worker)
        if not stays:
            worker.end()
        self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._wanted -= 1
            self._changed.notify()


class Nursery:
    """The process that begins workers. When it has ended, another is begun."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    def begin(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "mediator.statements.nursery",
                    str(theirs.fileno()),
                    str(self._memory),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a terminal's Ctrl-C is for those who know what to do
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
            )
        self._line = ours

    def end(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def born(self) -> Worker:
        with self._lock:
            try:
                return self._born()
            except OSError:
                self.end()
                self.begin()
            try:
                return self._born()
            except OSError as error:
                raise MediatorError(
                    f"No statement can be run, for no process can be begun: {error}"
                ) from None

    def _born(self) -> Worker:
        assert self._line is not None, "it has been begun"
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._line, [b"+"], [theirs.fileno()])
            said = b""
            while not said.endswith(b"\n"):
                some = self._line.recv(64)
                if not some:
                    raise ConnectionResetError("it ended at once")
                said += some
        except BaseException:
            ours.close()
            raise
        return Worker(ours, int(said))
