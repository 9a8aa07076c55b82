"""What is said to a database: a statement with parameters, and the rows that it gives."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.catalog.wrapper import Reply, Request

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Statement(Request):
    """A request to a database; `path` names the table. What is bound stands in `parameters`, never in `sql`."""

    sql: str = ""
    parameters: Row = ()
    unbounded: tuple[str, ...] = ()  # columns whose bounds are left to the engine


@dataclass(frozen=True, slots=True)
class Result(Reply):
    """Every row of a statement, as the driver's Python values."""

    rows: tuple[Row, ...] = ()
    # What the database says of the columns' values, by which it is known how it compares them: PostgreSQL's types, or
    # the encoding of SQLite's texts. Empty where it says nothing.
    kinds: tuple[str, ...] = ()
