"""Those who run a shape's query: the engine, DuckDB, Polars. Arrow in, Arrow out.

What needs to be done once, and is not the query, is done before the clock starts: batches are cut, tables are
registered, and Polars has taken the tables over into its own kind of frame (which copies strings).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from bench.feeding import Feed, settings_of
from bench.shapes import Shape
from mediator.assembly import Settings
from mediator.state.hands import Hands

if TYPE_CHECKING:
    from polars import LazyFrame

Contest = Callable[[], pa.Table]

_DUCKDB_CHUNK = 122_880  # rows: what DuckDB itself works in


@dataclass(frozen=True)
class Entry:
    """Who runs it, and how. `batch`, `policy` and `order` are the engine's."""

    engine: str
    batch: int = 0
    policy: str = Settings().policy
    order: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What it goes by in the detail."""
        if self.engine != "mediator":
            return self.engine
        order = f" {'-'.join(map(str, self.order))}" if self.order else ""
        return f"mediator {self.policy}{order} {self.batch}"


def ours(batch: int, policy: str = Settings().policy, order: tuple[int, ...] = ()) -> Entry:
    """The engine."""
    return Entry("mediator", batch, policy, order)


DUCKDB = Entry("duckdb")
POLARS = Entry("polars")
POLARS_STREAMING = Entry("polars streaming")


def contest(entry: Entry, shape: Shape, threads: int) -> Contest:
    """Ready to run. Polars has as many threads as POLARS_MAX_THREADS said before it was first imported."""
    match entry.engine:
        case "mediator":
            return Feed(shape, entry.batch, settings_of(entry.policy, entry.order), Hands(threads)).run
        case "duckdb":
            return _duckdb(shape, threads)
        case "polars":
            return _polars(shape, "in-memory")
        case "polars streaming":
            return _polars(shape, "streaming")
    raise ValueError(f"nobody is called {entry.engine!r}")


def _duckdb(shape: Shape, threads: int) -> Contest:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    for name, table in shape.tables.items():
        chunks = table.combine_chunks().to_batches(max_chunksize=_DUCKDB_CHUNK)
        connection.register(name, pa.Table.from_batches(chunks, table.schema))
    return lambda: connection.sql(shape.sql).to_arrow_table()


def _polars(shape: Shape, engine: Literal["in-memory", "streaming"]) -> Contest:
    import polars

    frames = {name: polars.LazyFrame(polars.from_arrow(table)) for name, table in shape.tables.items()}
    query = _star(frames) if shape.name == "star" else _chain(frames)
    newest = polars.CompatLevel.newest()  # which leaves strings as they are
    return lambda: query.collect(engine=engine).to_arrow(compat_level=newest)


def _chain(frames: dict[str, LazyFrame]) -> LazyFrame:
    return frames["r"].join(frames["s"], on="a").join(frames["t"], on="b").select("k", "a", "b", "c")


def _star(frames: dict[str, LazyFrame]) -> LazyFrame:
    joined = frames["f"]
    for number in range(1, len(frames)):
        point = frames[f"d{number}"].rename({"x": f"x{number}"})
        joined = joined.join(point, left_on=f"d{number}", right_on="d")
    return joined.select("k", *(f"x{number}" for number in range(1, len(frames))))
