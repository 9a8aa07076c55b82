"""A query of the engine, for those who do not await: it runs in a thread, and its rows are taken batch by batch."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.output.report import Report
from mediator.query.parameters import Parameters
from pipeline.errors import Incomplete

_ROOM = 8  # batches that wait for their reader; then the query's own buffer fills, and then it rests
_LEAVING = 10.0  # seconds that it may take to call everything back


class Asking:
    """`with Asking(...) as asking: for batch in asking.batches()`. Leaving the block calls back what is under way."""

    def __init__(
        self,
        catalog: Catalog,
        sql: str,
        parameters: Parameters = (),
        settings: Mapping[str, Any] | None = None,
        store: Path | None = None,
    ) -> None:
        self.report = Report()
        self._catalog = catalog
        self._sql = sql
        self._parameters = parameters
        self._settings = dict(settings or {})
        self._store = store
        self._found: queue.SimpleQueue[pa.RecordBatch | BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mediator query", daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        self._thread.join(_LEAVING)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Each as it is found. What goes wrong in the query is raised here."""
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
            self._call(self._room.release)

    def check_complete(self) -> None:
        """After the last batch: raises `Incomplete` where some of the answer is missing."""
        if not self.report.complete:
            lines = "\n".join(self.report.lines())
            raise Incomplete(
                f"the answer is not complete, and was not used:\n{lines}\n"
                "With .option('incomplete', 'allow') what was found is taken for the answer"
            )

    def cancel(self) -> None:
        """From any thread: what is under way is called back, and the batches end."""
        if self._task is not None:
            self._call(self._task.cancel)

    def _call(self, what: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        try:
            asyncio.run(self._ask())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._found.put(error)
        finally:
            self._started.set()
            self._found.put(None)

    async def _ask(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._room = asyncio.Semaphore(_ROOM)
        self._started.set()
        async with (
            Mediator(self._catalog, store=self._store) as mediator,
            mediator.answering(self._sql, self._parameters, **self._settings) as answers,
        ):
            async for batch in answers:
                await self._room.acquire()
                self._found.put(batch)
            self.report = answers.report
