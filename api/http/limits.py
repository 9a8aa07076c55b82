"""What one server allows, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Each is told with a hint when it is met. Where a key or a request says less, less counts."""

    body: int = 1 << 20  # bytes of a request
    statement: int = 32_768  # characters of a query
    queries: int = 256  # at once, of all keys
    spark: int = 1  # queries on Spark at once; each has a Java of its own
    seconds: float = 300.0  # that a query may take
    memory: int = 4 << 30  # bytes for all that SQL gathers, of all queries together; a sixteenth for each
    result_bytes: int = 1 << 30  # that are kept of one query's results
    kept_bytes: int = 4 << 30  # of all queries that have ended
    kept_seconds: float = 900.0  # after the end of a query
    stalled: float = 30.0  # seconds for which a reader may take nothing
    wait: float = 60.0  # seconds that a request for a page may wait
    grace: float = 10.0  # seconds for streams to come to their ends at shutdown
