"""The mediator from Python: `connect(url)`, or `async with connect_async(url)`.

`docs/clients.md` shows what can be done with them. Nothing of the engine is imported here.
"""

from api.client.client import AsyncClient, connect_async
from api.client.errors import (
    Cancelled,
    ClientError,
    Closed,
    CutOff,
    Incomplete,
    IncompleteWarning,
    Problem,
    QueryProblem,
    TimedOut,
    Unreachable,
)
from api.client.query import AsyncQuery
from api.client.records import End, Note, Partial, Progress, Record, Rows, Snapshot, Start, Withdrawn
from api.client.sync import Client, Query, connect

__all__ = [
    "AsyncClient",
    "AsyncQuery",
    "Cancelled",
    "Client",
    "ClientError",
    "Closed",
    "CutOff",
    "End",
    "Incomplete",
    "IncompleteWarning",
    "Note",
    "Partial",
    "Problem",
    "Progress",
    "Query",
    "QueryProblem",
    "Record",
    "Rows",
    "Snapshot",
    "Start",
    "TimedOut",
    "Unreachable",
    "Withdrawn",
    "connect",
    "connect_async",
]
