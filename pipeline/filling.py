"""Who writes a log: one thread, which asks the query and writes what comes, in pieces.

Where it is killed, another goes on: it asks the query again (mostly out of the log's store), and leaves out what the
log has already, row by row. That gives the same rows however the sites order them. Where the rows depend on more than
what the sites say (on their order, as with LIMIT; on the clock, or on chance), nothing is shown before it is whole:
then all is one piece.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

import pyarrow as pa

from mediator.answering import verdicts_of
from mediator.query.model import BlockStage, Query
from mediator.query.understand import understand
from pipeline.asking import Asking
from pipeline.log import Log, Writer, read_piece
from pipeline.options import Wanted
from pipeline.reading import asked_of
from pipeline.types import Columns

PIECE_ROWS = 65_536
PIECE_SECONDS = 0.5  # after which a piece is written though it is not full
_AGAIN = 0.05  # seconds between two tries to be the one who writes
# What the clock or chance has a part in. One word too many costs no more than a later first row.
_UNSTEADY = re.compile(
    r"\b(now|today|current_\w+|localtime\w*|get_current_\w+|transaction_timestamp|age|random\w*|setseed|uuid\w*|"
    r"gen_random_uuid|nextval|row_number|first|last|any_value|arbitrary|list|array_agg|string_agg|group_concat|using\s+sample|"
    r"tablesample)\b",
    re.IGNORECASE,
)


class Filling:
    """Writes a log to its end, or waits for another process that does."""

    def __init__(self, log: Log, wanted: Wanted) -> None:
        self.error: BaseException | None = None
        self._log = log
        self._wanted = wanted
        self._over = threading.Event()
        self._asking: Asking | None = None
        self._thread = threading.Thread(target=self._run, name="mediator log", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """What is under way is called back. The log is as whole as it was."""
        self._over.set()
        if self._asking is not None:
            self._asking.cancel()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            while not self._over.is_set() and self._log.end is None:
                with self._log.writing() as writer:
                    if writer is not None and self._log.end is None:
                        self._fill(writer)
                        return
                self._over.wait(_AGAIN)
        except BaseException as error:
            self.error = error

    def _fill(self, writer: Writer) -> None:
        wanted, log = self._wanted, self._log
        catalog = wanted.load()
        sql, parameters = asked_of(wanted, catalog)
        query = understand(sql, catalog, parameters)
        verdicts_of(query, catalog)
        columns = Columns.of(query.schema)
        given = Given()
        for number in range(log.pieces()):
            for batch in read_piece(log.piece(number)):
                given.add(batch)
        with Asking(catalog, sql, parameters, wanted.settings, log.store) as asking:
            self._asking = asking
            rows = (given.rest(columns.arranged(batch)) for batch in asking.batches())
            if steady(query):
                for piece in _pieces(rows):
                    self._check_wanted()
                    writer.write(columns.arrow, piece)
                self._finish(asking)
                writer.end(asking.report.as_dict())
            else:
                whole = list(rows)
                self._finish(asking)
                writer.end(asking.report.as_dict(), 1)
                writer.write(columns.arrow, whole)
        shutil.rmtree(log.store, ignore_errors=True)

    def _finish(self, asking: Asking) -> None:
        self._check_wanted()
        if not self._wanted.partial:
            asking.check_complete()

    def _check_wanted(self) -> None:
        if self._over.is_set():
            raise InterruptedError("the stream was ended")


class Given:
    """The rows that a log has, by a digest of each: an answer that is asked again gives them again."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        self._counts.update(_digests(batch))

    def rest(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that were not given, or not so often."""
        if not self._counts:
            return batch
        return batch.filter(pa.array([not self._taken(digest) for digest in _digests(batch)], pa.bool_()))

    def _taken(self, digest: bytes) -> bool:
        left = self._counts.pop(digest, 0)
        if left > 1:
            self._counts[digest] = left - 1
        return left > 0


def steady(query: Query) -> bool:
    """Whether its answers are found one after another, and are the same whenever it is asked over the same rows."""
    if _UNSTEADY.search(query.sql):
        return False
    return all(
        isinstance(stage, BlockStage) or (stage.rowwise and stage.limit is None and not stage.offset)
        for stage in query.stages
    )


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches together, until there are many rows, or the first has waited for long."""
    waiting: list[pa.RecordBatch] = []
    since = time.monotonic()
    for batch in batches:
        if not batch.num_rows:
            continue
        if not waiting:
            since = time.monotonic()
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= PIECE_ROWS or time.monotonic() - since >= PIECE_SECONDS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _digests(batch: pa.RecordBatch) -> list[bytes]:
    columns = [column.to_pylist() for column in batch.columns]
    return [blake2b(repr(row).encode(), digest_size=16).digest() for row in zip(*columns, strict=True)]
