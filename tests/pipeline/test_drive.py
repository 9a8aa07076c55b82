"""What is done once: what an earlier stage gives is told to the blocks above it, whoever asks for it again, and what
comes is cut, whichever host it is for."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from pyspark.sql import SparkSession

from fixtures import Web
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.query.understand import understand
from pipeline.cells.envelopes import Came, Lookup, Over
from pipeline.cells.packing import unpacked
from pipeline.spread.above import written
from pipeline.spread.drive import Drive, divided
from pipeline.spread.folder import Folder
from pipeline.spread.given import Given
from pipeline.spread.plan import planned
from pipeline.spread.strands import Strand, entries

SQL = (
    "WITH t AS (SELECT author_id, max(year) AS y FROM books GROUP BY 1) "
    "SELECT a.name, t.y FROM t JOIN authors a ON a.id = t.author_id"
)


def test_its_rows_are_told_once(calm: Web, tmp_path: Path) -> None:
    query = understand(SQL, calm.catalog)
    verdicts = verdicts_of(query, calm.catalog)
    plan = planned(calm.catalog, query, verdicts, Settings(), lambda *_: 10.0, slots=2, askers=1)
    folder = Folder(tmp_path / "c")
    folder.begin(plan)
    name = next(n for n in plan.relations if n in plan.stages)
    method = plan.relations[name].methods[0].name
    lookup, (first, second) = Lookup(name, method, (), ()), tuple(plan.cells_of(plan.readers(name)[0]))[:2]
    schema = plan.stages[name].schema
    files = written(folder, name, pa.Table.from_pylist([dict.fromkeys(schema.names, 1)], schema))

    def drive() -> Drive:
        made = Drive(SimpleNamespace(sparkContext=None), folder, plan)  # type: ignore[arg-type]
        made._strand = Strand(folder.strand("drive"))
        made._begin()
        return made

    one = drive()
    one._giving.give(Given(None, tuple(files), ended=(name,)))
    for cell in (first, second, first):  # the last of them was made anew, and asks once more
        one._want([(cell, lookup)])
        one._serve_stages()
    one._strand.close()
    other = drive()  # where the first was killed
    other._want([(first, lookup)])
    other._serve_stages()
    other._strand.close()
    told = [unpacked(e.envelope, plan.relations) for e in entries(folder.strand("drive")) if e.envelope]
    assert sum(isinstance(one, Came) for one in told) == 1
    assert sum(isinstance(one, Over) for one in told) == 4


def test_it_is_cut_once(spark: SparkSession, tmp_path: Path) -> None:
    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (tmp_path / uuid.uuid4().hex).touch()
            yield batch.rename_columns(["cell"])

    pieces = spark.range(0, 100, 1, 2).mapInArrow(cut, "cell long")
    first, *others = [part.groupBy("cell").count() for part in divided(pieces, 3)]
    for other in others:
        first = first.unionAll(other)
    assert sorted(row.cell for row in first.collect()) == list(range(100))
    assert len(list(tmp_path.iterdir())) == 2
    for host, part in enumerate(divided(pieces, 3)):
        assert {row.cell % 3 for row in part.collect()} == {host}
