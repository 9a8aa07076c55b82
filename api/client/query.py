"""One query at the server: read what it answers, look how it goes, steer it, end it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from api.client import reading
from api.client.errors import (
    Cancelled,
    ClientError,
    Gone,
    Incomplete,
    IncompleteWarning,
    NotFound,
    NotYet,
    problem_of,
)
from api.client.reading import Batches, Shape
from api.client.records import End, Record
from api.client.values import python_values

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from api.client.client import AsyncClient

_MISSING = 3  # failures that a message spells out


class AsyncQuery:
    """A query. It starts when it is awaited, entered, or first asked for anything.

    `async with` cancels it at the end of the block, if it still runs then. Otherwise the client cancels it when that is
    closed, unless it was told `on_disconnect="keep"`.
    """

    def __init__(
        self, client: AsyncClient, start: tuple[str, Mapping[str, Any]] | str, *, whole: bool = False
    ) -> None:
        """`start` is what to ask in order to start it, or the id of one that has been."""
        self._client = client
        self._start = start
        self._whole = whole
        self._id = start if isinstance(start, str) else None
        self._starting: asyncio.Task[str | ClientError] | None = None
        self._end: End | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self.started().__await__()

    async def __aenter__(self) -> Self:
        return await self.started()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is None:
            await self.cancel()

    def __repr__(self) -> str:
        return f"<query {self._id or 'not started'}{'' if self._end is None else f', {self._end.status}'}>"

    @property
    def id(self) -> str:
        """The name of the query at the server."""
        if self._id is None:
            raise ClientError("the query has not been started: await it")
        return self._id

    @property
    def end(self) -> End | None:
        """How it ended, once its results have been read to their end."""
        return self._end

    @property
    def complete(self) -> bool | None:
        """Whether the answer that was read is all that there is; None as long as that is not known."""
        return None if self._end is None else self._end.complete

    async def started(self) -> Self:
        """Has the server take it. Raises a `QueryProblem` if the statement is at fault."""
        if self._id is not None:
            return self
        if self._starting is None:
            assert not isinstance(self._start, str)
            self._starting = self._client.starting(self, *self._start)
        # Somebody who is cancelled here leaves the request to be answered: else nobody would know what to cancel.
        outcome = await asyncio.shield(self._starting)
        if isinstance(outcome, ClientError):
            raise outcome
        self._id = outcome
        return self

    def records(self, after: str | None = None, *, shape: Shape = "objects") -> AsyncGenerator[Record, None]:
        """All that the query tells, as it comes; `after` is the id of a record behind which to go on.

        Rows are objects by column name, or `arrays`, as is best where two columns have one name.

        Raises, after the end record, what the query failed with.
        """
        return self._client.reading(self._records(after, shape))

    def batches(self) -> Batches:
        """The rows as Arrow record batches, as they arrive."""
        return Batches(self._client.reading(self._batches()))

    async def arrow(self) -> pa.Table:
        """All rows. Where they are not all that there is, it warns (`IncompleteWarning`), or, of a query that was to be
        `whole`, raises `Incomplete`."""
        found = self.batches()
        schema = await found.schema()
        return pa.Table.from_batches([batch async for batch in found], schema)

    async def pandas(self, /, **options: Any) -> pd.DataFrame:
        """All rows; `options` are those of `pyarrow.Table.to_pandas`."""
        table = await self.arrow()
        return await asyncio.to_thread(table.to_pandas, **options)

    async def polars(self) -> pl.DataFrame:
        """All rows."""
        return await asyncio.to_thread(_polars, await self.arrow())

    async def rows(self) -> list[dict[str, Any]]:
        """All rows as Python values."""
        return await asyncio.to_thread(_rows, await self.arrow())

    async def status(self) -> dict[str, Any]:
        """The status document."""
        return await self._ask("GET", "")

    async def report(self) -> dict[str, Any]:
        """What was asked, answered and failed, and so whether the answer is complete; final once it has ended."""
        if self._end is not None and self._end.report:
            return dict(self._end.report)
        return dict((await self.status()).get("report") or {})

    async def explain(self) -> dict[str, Any]:
        """How it is answered, and while it runs how its rows are routed and why."""
        return await self._ask("GET", "/explain")

    async def steer(
        self,
        *,
        prefer: Mapping[str, float] | None = None,
        pause: Sequence[str] = (),
        resume: Sequence[str] = (),
        boost: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """Change what goes first. `prefer` takes the place of what was preferred; the others add up.

        No effect on a query that has ended.
        """
        said = {"pause": list(pause), "resume": list(resume), "boost": dict(boost or {})}
        change = {name: value for name, value in said.items() if value}
        if prefer is not None:
            change["prefer"] = dict(prefer)
        return await self._change(change)

    async def stop(self) -> dict[str, Any]:
        """End it with what was found so far. No effect on one that has ended."""
        return await self._change({"stop": "enough"})

    async def cancel(self) -> None:
        """End it at once. No effect on one that has not begun, or has ended."""
        if self._id is None and self._starting is None:
            return
        try:
            # What has ended would be forgotten instead.
            if (await self.status()).get("status") == "running":
                await self._ask("DELETE", "")
        except NotFound:
            pass
        self._client.over(self)

    async def forget(self) -> None:
        """Have the server forget a query that has ended."""
        await self._ask("DELETE", "")

    def retry(self, *, whole: bool | None = None) -> AsyncQuery:
        """A query that asks again only what failed, and gives only the rows that this one has not given."""
        whole = self._whole if whole is None else whole
        return AsyncQuery(self._client, (f"{self._path}/retry", {}), whole=whole)

    @property
    def _path(self) -> str:
        return f"/v1/queries/{self.id}"

    async def _ask(self, method: str, under: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        await self.started()
        return await self._client.wire.ask(method, self._path + under, body=body) or {}

    async def _change(self, change: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._ask("PATCH", "", change)
        except (NotYet, Gone):
            return await self.status()

    async def _records(self, after: str | None, shape: Shape) -> AsyncGenerator[Record, None]:
        await self.started()
        tries = self._client.tries()
        found = reading.records(self._client.wire, f"{self._path}/results", tries, after, shape)
        async with aclosing(found):
            async for record in found:
                if isinstance(record, End):
                    self._ended(record)
                yield record
        self._judged(warn=False)

    async def _batches(self) -> AsyncGenerator[pa.Schema | pa.RecordBatch, None]:
        await self.started()
        tries, path = self._client.tries(), f"{self._path}/results"
        found = reading.batches(self._client.wire, path, tries, self._ended, self._still)
        async with aclosing(found):
            async for item in found:
                yield item
        self._judged()

    async def _still(self) -> bool:
        """After a cut: whether its results can be read once more. Raises what it failed with."""
        try:
            status = await self.status()
        except ClientError:
            return True  # the next try will say
        if status["status"] in {"failed", "cancelled"}:
            self._ended(End(status["status"], status.get("report") or {}, status.get("problem")))
            self._judged()
        return status.get("results") != "gone"

    def _ended(self, end: End) -> None:
        self._end = end
        self._client.over(self)

    def _judged(self, *, warn: bool = True) -> None:
        """What is to be said of how it ended. A part is not handed over as if it were the whole."""
        end = self._end
        if end is None or end.complete:
            return
        if end.status == "failed":
            raise problem_of(end.problem or {"title": "The query failed"}, report=end.report)
        if end.status == "cancelled":
            raise Cancelled(f"the query {self.id} did not come to its end: {missing(end.report)}", end.report)
        said = f"the answer of the query {self.id} is not complete: {missing(end.report)}"
        if self._whole:
            raise Incomplete(said, end.report)
        if warn:
            warnings.warn(said, IncompleteWarning, stacklevel=2)


def _polars(table: pa.Table) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(table)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [python_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def missing(report: Mapping[str, Any]) -> str:
    """What a report says is missing, in a line."""
    relations = report.get("relations") or ()
    failures = [(r["relation"], f.get("cause") or {}) for r in relations for f in r.get("failures") or ()]
    stopped = [report["stopped"]] if report.get("stopped") else []
    parts = [*stopped, *(f"{name}: {cause.get('message', 'failed')}" for name, cause in failures)]
    shown = parts[:_MISSING]
    return "; ".join([*shown, *([f"and {len(parts) - len(shown)} more"] if len(parts) > len(shown) else [])])
