"""Our side: a query spread over Spark, from SQL text to the last answer on the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.spark.trade import Laid
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.profile import NO_PROFILE
from mediator.query.understand import understand
from pipeline.spread.drive import Drive
from pipeline.spread.folder import Folder
from pipeline.spread.given import Given, given
from pipeline.spread.plan import Plan, planned
from pipeline.spread.seeding import Landed, seed
from pipeline.spread.skew import SAMPLE, Sample, heavy
from pipeline.spread.stream import Pace

_LOOK = 0.01


@dataclass
class Ran:
    """What came of it. `answers`: after so many seconds there were so many rows."""

    seconds: float
    files: list[str]
    answers: list[tuple[float, int]] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)  # when each micro-batch had given what it brought
    plan: Plan | None = None

    @property
    def first(self) -> float:
        """Seconds to the first answers; to the end, where there are none."""
        return next((at for at, rows in self.answers if rows), self.seconds)


def catalog_of(laid: Laid) -> Catalog:
    """Each file as a relation that one scan would bring."""
    scan = AccessMethod("scan", "scan", (Mirror("files", ""),), None)
    schemas = {name: pq.read_schema(file) for name, file in laid.files.items()}
    relations = {
        name: Relation(name, tuple(Field(f.name, f.type) for f in schema), (scan,))
        for name, schema in schemas.items()
    }
    return Catalog(relations, {"files": Source("files")})


def plan_of(laid: Laid, slots: int, cells: int | None = None) -> Plan:
    catalog = catalog_of(laid)
    query = understand(laid.sql, catalog)
    return planned(
        catalog,
        query,
        verdicts_of(query, catalog),
        Settings(),
        lambda _, alias: float(laid.sizes[alias.relation.name]),
        slots=slots,
        askers=1,
        cells=cells,
        heavy=lambda cube, sizes: heavy(cube, sizes, _begun(laid), NO_PROFILE),
    )


def _begun(laid: Laid) -> Sample:
    """The beginning of each file, where values that stand in many rows are looked for."""

    def sample(relation: str) -> pa.RecordBatch:
        rows = next(pq.ParquetFile(laid.files[relation]).iter_batches(SAMPLE))
        schema = pq.read_schema(laid.files[relation])
        return pa.Table.from_batches([rows]).cast(schema).combine_chunks().to_batches()[0]

    return sample


def landed(laid: Laid) -> list[Landed]:
    return [Landed(name, "scan", (), (), (file,)) for name, file in laid.files.items()]


def spread(
    session: SparkSession,
    laid: Laid,
    path: Path,
    *,
    slots: int,
    cells: int | None = None,
    pace: Pace | None = None,
) -> Ran:
    """Of relations that have landed: nobody is asked for anything."""
    began = perf_counter()
    plan = plan_of(laid, slots, cells)
    folder = Folder(path)
    folder.begin(plan)
    seed(plan, folder, landed(laid))
    seen: list[tuple[float, Given]] = []
    with _watched(folder, seen):
        Drive(session, folder, plan, ask=lambda: None, pace=pace).run()
        seconds = perf_counter() - began
    files = [file for _, one in seen for file in one.files]
    ran = Ran(seconds, [file.path for file in files], plan=plan)
    rows = 0
    for at, one in seen:
        rows += sum(file.rows for file in one.files)
        ran.answers.append((at - began, rows))
        if one.batch is not None:
            ran.epochs.append(at - began)
    return ran


@contextmanager
def _watched(folder: Folder, seen: list[tuple[float, Given]]) -> Iterator[None]:
    """Each thing that is given, and when it is seen to be."""
    over = threading.Event()

    def look() -> None:
        last = False
        while not last:
            last = over.wait(_LOOK)  # all was given before it was over
            seen.extend((perf_counter(), one) for one in given(folder.given, len(seen)))

    watching = threading.Thread(target=look, name="watching")
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
