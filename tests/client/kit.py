"""What the tests of the clients share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import duckdb
import pyarrow as pa

from fixtures import Behaviour, Fault, Web

PATIENCE = 60.0
HANGS = Behaviour(faults=(Fault("hang", probability=1.0),))
FAILS = Behaviour(faults=(Fault("schema", probability=1.0),))


def hangs_after(answered: int) -> Behaviour:
    """The first requests are answered; those after them never are."""
    return Behaviour(faults=(Fault("hang", requests=tuple(range(answered + 1, answered + 500))),))


def truth(web: Web, sql: str) -> pa.Table:
    """The answer over the rows that the sites really hold."""
    with duckdb.connect() as connection:
        for name, table in web.tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()


def bag(table: pa.Table) -> list[str]:
    """Rows in an order that says nothing."""
    return sorted(map(repr, table.to_pylist()))


def eventually(holds: Callable[[], bool]) -> None:
    """Waits for as long as it may take on any machine."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


async def in_time(holds: Callable[[], bool]) -> None:
    """The same, in an event loop."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)
