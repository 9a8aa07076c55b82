"""The drive of a spread: starts its stream and its askers in a Spark session, and sees them to the end.

All that it knows it knows from the folder, so that another can go on where it was killed.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all the world calls it
from pyspark.sql.streaming.query import StreamingQuery

from mediator.query.model import SqlStage
from pipeline.cells.envelopes import Came, Lookup, Over
from pipeline.cells.packing import packed, unpacked
from pipeline.spread import asks, cutting, stream
from pipeline.spread.above import made
from pipeline.spread.asker import run_asker
from pipeline.spread.errors import SpreadError, told
from pipeline.spread.folder import Folder
from pipeline.spread.given import File, Given, Giving
from pipeline.spread.host import COLUMNS, Host
from pipeline.spread.pieces import count, numbered
from pipeline.spread.plan import Plan
from pipeline.spread.portion import is_site
from pipeline.spread.relaying import Balance, laid_anew
from pipeline.spread.seeding import entries_of_file
from pipeline.spread.strands import Entry, Strand
from pipeline.spread.strands import entries as entries_of_strand

_LOOK = 0.02  # seconds between two looks at how it goes
_LAST_WORDS = 10.0  # seconds for a micro-batch to end when the query is to stop
_ROLE = "MEDIATOR_ROLE"  # workers are shared only by those that have one
_PARTITIONS = "spark.sql.shuffle.partitions"
# Whatever the session is set to: state as this needs it, no micro-batch without rows, and half a file of one that was
# killed before its first micro-batch is not in the way.
_STREAM = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
_MINE = "drive"


class Drive:
    def __init__(
        self,
        session: SparkSession,
        folder: Folder,
        plan: Plan,
        ask: Callable[[], None] | None = None,
        pace: stream.Pace | None = None,
    ) -> None:
        """`ask` runs askers until the spread ends, where Spark's tasks are not to."""
        self._session, self._folder, self._plan = session, folder, plan
        self._context = session.sparkContext
        self._giving = Giving(folder.given, plan.layout)
        self._balance = Balance()
        self._asks = count(folder.asks)
        self._wanted: dict[Lookup, set[int]] = {}  # of earlier stages, by whom
        self._served: dict[Lookup, bytes] = {}  # those of them that were told, and what of their end
        self._landings = 1 << 60
        self._lock = threading.Lock()
        self._fault: Exception | None = None  # of the askers
        self._left = False
        self._run_askers = ask or self._ask_in_tasks
        self._pace = pace or stream.pace_of(plan.slots)

    def leave(self) -> None:
        """From another thread: end at once, with nothing said."""
        self._left = True

    def run(self) -> None:
        """To the end, or until somebody stops it. Raises what went wrong with Spark."""
        if self._folder.end is not None:
            return
        self._strand = Strand(self._folder.strand(_MINE))
        try:
            self._begin()
            why = self._in_cells() if self._plan.cells else self._without()
        finally:
            self._strand.close()
        self._finish(why)

    def _in_cells(self) -> str:
        """Why it stopped before the end, if it did."""
        self._session.dataSource.register(stream.SpreadSource)
        askers = InheritableThread(target=self._ask, name="askers")
        try:
            while True:
                query = self._stream()
                if askers.ident is None:
                    askers.start()
                try:
                    why = self._follow(query)
                finally:
                    _stop(query)
                if why is not None:
                    return why
        except BaseException:
            self._context.cancelJobGroup(self._group)
            raise

    def _go_on_by(self, plan: Plan) -> None:
        """By another layout. The stream has stopped."""
        before = self._plan
        with self._lock:
            self._folder.lay(plan)
            self._plan, self._giving = plan, Giving(self._folder.given, plan.layout)
        self._strand.write([Entry(b"", tuple(plan.cells))])
        shutil.rmtree(self._folder.checkpoint(before.layout), ignore_errors=True)

    def _without(self) -> str:
        """Where nothing is read."""
        self._go_on()
        return ""

    def _begin(self) -> None:
        for number in range(self._asks):
            self._want(asks.read_asks(numbered(self._folder.asks, number, "arrow"), self._plan.relations))
        begun: set[int] = set()
        for entry in entries_of_strand(self._strand.folder):
            begun.update(() if entry.envelope else entry.cells or ())
            told = unpacked(entry.envelope, self._plan.relations) if entry.envelope else None
            if isinstance(told, Over):
                self._served[told.lookup] = entry.envelope
            elif isinstance(told, Came):
                self._landings = max(self._landings, told.landing)
        if not begun.issuperset(self._plan.cells):
            self._strand.write([Entry(b"", tuple(self._plan.cells))])

    # The stream.

    def _stream(self) -> StreamingQuery:
        plan = self._plan
        local = str(self._context.master).startswith("local[")
        # Workers of one process serve whatever comes: a host that is to meet its cells again has workers of its own.
        hosts = min(plan.slots, len(plan.cells)) if local else 1
        partitions = 1 if local else plan.slots
        # One source for all hosts: Spark begins a process for each that there is, and asks each for what is new.
        pieces = (
            self._session.readStream.format(stream.FORMAT)
            .option("log", str(self._folder.path / "log"))
            .options(tasks=str(plan.slots), **self._pace.options())
            .load()
        )
        cut = self._in_role("cut", lambda: pieces.mapInArrow(
            cutting.cutting(self._folder.path, plan.id, plan.layout, partitions), cutting.COLUMNS
        ))  # fmt: skip
        hosted = [self._hosted(part, host) for host, part in enumerate(divided(cut, hosts))]
        together = hosted[0]
        for one in hosted[1:]:
            together = together.unionAll(one)
        with self._set({_PARTITIONS: str(partitions), **_STREAM}):
            return (
                together.writeStream.option("checkpointLocation", str(self._folder.checkpoint(plan.layout)))
                .foreachBatch(partial(self._batch, plan.layout))
                .start()
            )

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        """The session's own, which a stream takes along when it starts."""
        conf = self._session.conf
        before = {name: conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    conf.unset(name)
                else:
                    conf.set(name, old)

    def _hosted(self, cut: DataFrame, host: int) -> DataFrame:
        return self._in_role(f"host {host}", lambda: cut.groupBy("key").transformWithState(
            Host(self._folder.path, self._plan.id, self._plan.layout), COLUMNS, "append", "none"
        ))  # fmt: skip

    def _in_role(self, role: str, make: Any) -> DataFrame:
        self._context.environment[_ROLE] = role
        try:
            found: DataFrame = make()
            return found
        finally:
            del self._context.environment[_ROLE]

    def _batch(self, layout: int, frame: DataFrame, number: int) -> None:
        """What came of a micro-batch. One that is done again may ask for other things, as routes differ."""
        rows = frame.collect()
        asked = [batch for row in rows if row.asks for batch in pa.ipc.open_stream(bytes(row.asks))]
        with self._lock:
            if layout != self._plan.layout:  # it was under way when the stream was stopped
                return
            if asked:
                asks.put_asks(numbered(self._folder.asks, self._asks, "arrow"), asked)
                self._asks += 1
                for batch in asked:
                    self._want(asks.asked(batch, self._plan.relations))
            files = tuple(File(row.stage, row.file, row.rows) for row in rows if row.file)
            cells = {row.cell: json.loads(row.status) for row in rows}
            self._giving.give(Given(number, files, cells))

    def _want(self, asked: Iterable[asks.Asked]) -> None:
        for cell, lookup in asked:
            if not is_site(self._plan, lookup):
                self._wanted.setdefault(lookup, set()).add(cell)

    # The askers.

    @property
    def _group(self) -> str:
        return f"askers of {self._plan.id}"

    def _ask(self) -> None:
        try:
            self._run_askers()
        except Exception as error:
            self._fault = error

    def _ask_in_tasks(self) -> None:
        path, askers = self._folder.path, self._plan.askers

        def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    run_asker(path, number)
                yield batch

        self._context.setJobGroup(self._group, "asks the sites", interruptOnCancel=True)
        numbers = self._session.range(0, askers, 1, askers)
        self._in_role("asker", lambda: numbers.mapInArrow(ask, "id long")).agg(F.count("id")).collect()

    # The end.

    def _follow(self, query: StreamingQuery) -> str | None:
        """Until all that the answer is made of has been given; why it stopped before that, if it did. None where it
        goes on by another layout."""
        while True:
            with self._lock:
                more = self._go_on()
                cells = dict(self._giving.cells)
            if not more:
                return ""
            if self._balance.tips(self._plan, cells):
                plan = laid_anew(self._plan, self._folder, cells)
                if plan is not None:
                    _stop(query)
                    self._go_on_by(plan)
                    return None
            if self._left:
                raise SpreadError("it was left")
            if (why := self._folder.stop) is not None:
                _settle(query)
                return why
            if not query.isActive:
                error = query.exception()
                raise (
                    told(error, self._folder.path)
                    if error is not None
                    else SpreadError("Spark has stopped the stream")
                )
            if self._fault is not None:
                raise told(self._fault, self._folder.path)
            time.sleep(_LOOK)

    def _go_on(self) -> bool:
        """Do what has become possible; whether there is anything left to wait for."""
        self._end_blocks()
        for stage in self._plan.above:
            ended = self._giving.ended
            if stage.name not in ended and ended.issuperset(stage.reads):
                self._make(stage)
        self._serve_stages()
        return not self._giving.ended.issuperset(self._plan.results)

    def _end_blocks(self) -> None:
        ended, cells = self._giving.ended, self._giving.cells
        over = {
            name
            for name in self._plan.cubes
            if all(cells.get(cell, {}).get("finished") for cell in self._plan.cells_of(name))
        }
        names = {name for name in over if name not in ended}
        for name in self._plan.cubes:
            gives = self._plan.gives(name)
            giving = {n for n in self._plan.cubes if self._plan.gives(n) == gives}
            if gives not in ended and giving <= over:
                names.add(gives)
        if names:
            self._giving.give(Given(None, (), ended=tuple(sorted(names))))

    def _make(self, stage: SqlStage, files: Sequence[File] | None = None, *, early: bool = False) -> None:
        """Of these files, or of all that there are."""
        reads = self._giving.files(stage.reads) if files is None else files
        files = made(self._session, self._plan, self._folder, stage, reads)
        self._giving.give(Given(None, tuple(files), ended=(stage.name,), early=early))

    def _serve_stages(self) -> None:
        """Blocks that join with what an earlier stage gives are told all of it when it has ended."""
        for lookup in [lookup for lookup in self._wanted if lookup.relation in self._giving.ended]:
            cells = sorted(self._wanted.pop(lookup))
            if lookup in self._served:  # the rows have gone to all cells that they belong to
                self._strand.write([Entry(self._served[lookup], cells)])
                continue
            landings, entries = [], []
            for file in self._giving.files([lookup.relation]):
                for entry, number in entries_of_file(self._plan, file.path, lookup, self._next_landing):
                    landings.append(number)
                    entries.append(entry)
            over = packed(Over(lookup, 0.0, float("inf"), tuple(landings)), self._plan.relations)
            self._strand.write([*entries, Entry(over, cells)])
            self._served[lookup] = over

    def _next_landing(self) -> int:
        self._landings += 1
        return self._landings

    def _finish(self, why: str) -> None:
        with self._lock:
            if why:
                for stage in self._plan.above:
                    if stage.name not in self._giving.ended:
                        self._make(stage, self._giving.most(stage.reads), early=True)
            self._folder.end = {"given": len(self._giving.all), "stopped": why}


def divided(cut: DataFrame, hosts: int) -> list[DataFrame]:
    """For each host its cells. They are cut once, whoever they are for: hosts share one exchange, as Spark reuses those
    that are alike. A condition that seems to be left to chance is not pushed below it, where they would differ.
    """
    if hosts == 1:
        return [cut]
    together, nothing = cut.repartition(1), F.floor(F.rand())
    return [together.where(F.col("cell") % hosts + nothing == host) for host in range(hosts)]


def _settle(query: StreamingQuery) -> None:
    """What is found in the micro-batch that is under way is given, if that does not take long."""
    before, until = _batches(query), time.monotonic() + _LAST_WORDS
    while query.isActive and _batches(query) == before and time.monotonic() < until:
        if not query.status["isTriggerActive"]:
            return
        time.sleep(_LOOK)


def _batches(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


def _stop(query: StreamingQuery) -> None:
    if query.isActive:
        query.stop()
