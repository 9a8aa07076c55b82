"""A response that streams what a query tells, for as long as its reader takes it.

What FastAPI and Starlette bring along for this leaves a generator open, or drains it to its end, when a client vanishes
while its socket is full. Here a pump sends, beside it somebody waits for the client to leave, and whichever is first
ends the other; the reader's place in the journal is given back before the response is over. A client that takes nothing
for too long is dropped: its connection is aborted, since closing it would wait for what it does not take.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.http.encoding import Encoder, columns_of
from api.http.metrics import Metrics
from api.http.places import Place
from api.http.run import Run

_BEAT = 15.0  # seconds without anything, after which an event stream says that it is alive


class BrokenOff(Exception):
    """The rest will not come, and this format cannot say so."""


class Streamed(Response):
    def __init__(
        self,
        run: Run,
        encoder: Encoder,
        after: Place,
        warnings: tuple[str, ...],
        *,
        stalled: float,
        metrics: Metrics,
        headers: Mapping[str, str],
    ) -> None:
        self.status_code = 200
        self.media_type = encoder.media_type
        self.background = None
        self.body = b""
        self.init_headers({**headers, "X-Accel-Buffering": "no"})  # proxies pass on what they get
        del self.headers["content-length"]
        self._run = run
        self._encoder = encoder
        self._after = after
        self._warnings = warnings
        self._stalled = stalled
        self._metrics = metrics
        self._format = encoder.media_type.partition(";")[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort: Callable[[], None] | None = scope.get("state", {}).get("abort")
        with self._run.read(), self._metrics.readers.held():
            async with aclosing(self._told()) as chunks, asyncio.TaskGroup() as group:
                pumping = group.create_task(self._pump(chunks, send, abort))
                leaving = group.create_task(_left(receive))
                await asyncio.wait({pumping, leaving}, return_when=asyncio.FIRST_COMPLETED)
                pumping.cancel()
                leaving.cancel()

    async def _pump(
        self, chunks: AsyncGenerator[bytes, None], send: Send, abort: Callable[[], None] | None
    ) -> None:
        """Send until there is no more, or the reader stalls."""
        first = await anext(chunks)  # what goes wrong before it is an error of its own
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await self._send(first, send)
            async for chunk in chunks:
                await self._send(chunk, send)
                await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._metrics.readers_dropped.add()
            if abort is not None:
                abort()
        except BrokenOff:
            if abort is None:
                raise
            abort()

    async def _send(self, chunk: bytes, send: Send) -> None:
        if not chunk:
            return
        message: MutableMapping[str, Any] = {"type": "http.response.body", "body": chunk, "more_body": True}
        async with asyncio.timeout(self._stalled):
            await send(message)
        self._metrics.bytes_sent.add(len(chunk), format=self._format)

    async def _told(self) -> AsyncGenerator[bytes, None]:
        """Everything after the reader's place, up to the end; in between, what is of the moment."""
        run, encoder, journal = self._run, self._encoder, self._run.journal
        with journal.reading(self._after.entry) as reader:
            yield encoder.start(start_record(run, self._warnings))
            skip, progress, snapshots = self._after.rows, run.progress, 0
            while True:
                news = journal.stirred()
                entry = journal.next(reader)
                if entry is None and journal.ended:  # it has had the end before, and is told once more
                    entry = journal.entry(journal.last)
                if entry is None:
                    if encoder.moments:
                        if run.snapshots > snapshots and run.snapshot is not None and not journal.rows:
                            snapshots = run.snapshots
                            yield encoder.moment("snapshot", encoder.provisional(run.snapshot))
                        if run.progress is not progress and run.progress is not None:
                            progress = run.progress
                            yield encoder.moment("progress", progress)
                    if not await _soon(news):
                        yield encoder.beat()
                    continue
                for chunk in encoder.entry(entry, skip):
                    yield chunk
                self._metrics.rows_sent.add(max(0, entry.rows - skip) if entry.kind == "rows" else 0)
                skip = 0
                if entry.kind == "end":
                    if entry.body["status"] == "failed" and not encoder.moments:
                        raise BrokenOff
                    yield encoder.end(entry.body)
                    return


def start_record(run: Run, warnings: tuple[str, ...]) -> dict[str, Any]:
    """What stands at the beginning of every stream."""
    return {"query": run.id, "columns": columns_of(run.schema), "warnings": list(warnings)}


async def _left(receive: Receive) -> None:
    """Until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _soon(news: asyncio.Event) -> bool:
    """Whether there is anything new before it is time for a sign of life."""
    try:
        async with asyncio.timeout(_BEAT):
            await news.wait()
    except TimeoutError:
        return False
    return True
