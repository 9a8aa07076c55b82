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


@dataclass(frozen=True, slots=True)
class Result(Reply):
    """Every row of a statement, as the driver's Python values."""

    rows: tuple[Row, ...] = ()
