"""A query's results, read to their end however often the connection breaks off in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal, Self

import orjson
import pyarrow as pa

from api.client.errors import ClientError, CutOff, Problem, ShuttingDown, Unreachable
from api.client.ipc import Decoder, NotArrow
from api.client.records import End, Record, Start, record_of
from api.client.wire import Wire

_PAUSE = 0.1  # seconds before the second try; each time twice as long
_LONGEST_PAUSE = 2.0
Shape = Literal["objects", "arrays"]
_PASSING = (
    502,
    503,
    504,
)  # what a server that is being started again, or a proxy in front of it, answers meanwhile


class Tries:
    """How often a reading may be taken up again without anything new."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0

    def progress(self) -> None:
        """Something new came."""
        self._used = 0

    async def again(self, error: Exception) -> None:
        """Waits a little; raises where there have been enough."""
        if isinstance(error, Problem) and error.status not in _PASSING:
            raise error
        if self._used >= self._most:
            if isinstance(error, Unreachable | ShuttingDown):
                raise error
            raise CutOff(str(error)) from error
        await asyncio.sleep(min(_PAUSE * 2**self._used, _LONGEST_PAUSE))
        self._used += 1


async def records(
    wire: Wire, path: str, tries: Tries, after: str | None = None, shape: Shape = "objects"
) -> AsyncGenerator[Record, None]:
    """All that is told, up to and with the end. What has an id comes once, whatever happens on the way."""
    begun = after is not None
    while True:
        try:
            query = {"format": "ndjson", "shape": shape}
            async with (
                wire.stream(path, query if after is None else {**query, "after": after}) as pieces,
                aclosing(_lines(pieces)) as lines,
            ):
                async for said in lines:
                    record = record_of(said)
                    if said.get("id") is not None:
                        after = str(said["id"])
                        tries.progress()
                    if record is None or (isinstance(record, Start) and begun):
                        continue
                    begun = True
                    yield record
                    if isinstance(record, End):
                        return
            failure: Exception = CutOff("the stream stopped before its end")
        except (Unreachable, Problem) as error:
            failure = error
        await tries.again(failure)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    """The objects of whole lines; what was cut in its middle is left out."""
    waiting: list[bytes] = []
    async for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            text = b"".join([*waiting, line])
            waiting.clear()
            if text.strip():
                yield orjson.loads(text)
        if rest:
            waiting.append(rest)


class Batches:
    """The rows as they arrive, as record batches: an iterator. `schema` waits for the first message only."""

    def __init__(self, items: AsyncGenerator[pa.Schema | pa.RecordBatch, None]) -> None:
        self._items = items
        self._schema: pa.Schema | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        await self.schema()
        return await anext(self._items)

    async def schema(self) -> pa.Schema:
        """The names and types of the columns: there before the first row."""
        if self._schema is None:
            found = await anext(self._items, None)
            if found is None:
                raise ClientError("nothing more can be read here: it has failed, or was closed")
            self._schema = found
        return self._schema

    async def aclose(self) -> None:
        """Read no more."""
        await self._items.aclose()


async def batches(
    wire: Wire, path: str, tries: Tries, ended: Callable[[End], None], still: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[pa.Schema | pa.RecordBatch, None]:
    """The schema, then the rows.

    `ended` is told how it ended. `still` says, after a cut, whether there is more to read, and raises what the query
    itself failed with. A stream that is taken up again begins anew, and tells the same: what was had is passed over.
    """
    begun = False
    had = 0
    while True:
        passed = 0
        decoder = Decoder()
        try:
            async with wire.stream(path, {"format": "arrow"}) as pieces:
                async for piece in pieces:
                    told = list(decoder.feed(piece))
                    if decoder.schema is not None and not begun:
                        begun = True
                        yield decoder.schema
                    for batch, metadata in told:
                        if "mediator.end" in metadata:
                            ended(_end(metadata["mediator.end"]))
                            return
                        new = batch.slice(min(batch.num_rows, max(0, had - passed)))
                        passed += batch.num_rows
                        if new.num_rows:
                            had += new.num_rows
                            tries.progress()
                            yield new
            failure: Exception = CutOff("the stream stopped before its end")
        except NotArrow as error:
            raise CutOff(str(error)) from error
        except (Unreachable, Problem) as error:
            failure = error
        if not await still():
            raise CutOff("the connection broke off, and the query does not go on without it") from failure
        await tries.again(failure)


def _end(text: str) -> End:
    record = record_of({"type": "end", **orjson.loads(text)})
    assert isinstance(record, End)
    return record
