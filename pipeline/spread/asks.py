"""What cells ask for, on its way to the askers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from mediator.catalog.model import Relation
from mediator.store import bindings
from pipeline.cells.envelopes import Lookup
from pipeline.files import new_of, put
from pipeline.log import read_piece

SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("relation", pa.string()),
        ("method", pa.string()),
        ("fields", pa.list_(pa.string())),
        ("binding", pa.string()),  # as text: equal ones are written alike
    ]
)
Asked = tuple[int, Lookup]  # a cell, and what it asks for


def table(asked: Sequence[Asked], relations: Mapping[str, Relation]) -> pa.RecordBatch:
    rows: list[tuple[int, str, str, list[str], str]] = []
    for (relation, method, bind_set), some in groupby(asked, key=lambda a: a[1][:3]):
        group = list(some)
        schema = relations[relation].schema
        texts = bindings.written(schema, bind_set, [lookup.binding for _, lookup in group])
        fields = list(bind_set)
        rows += [(cell, relation, method, fields, t) for (cell, _), t in zip(group, texts, strict=True)]
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def asked(batch: pa.RecordBatch, relations: Mapping[str, Relation]) -> list[Asked]:
    found: list[Asked] = []
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    for (relation, method, fields), some in groupby(rows, key=lambda row: (row[1], row[2], row[3])):
        group = list(some)
        bind_set = tuple(fields)
        read = bindings.read(relations[relation].schema, bind_set, [row[4] for row in group])
        found += [(row[0], Lookup(relation, method, bind_set, b)) for row, b in zip(group, read, strict=True)]
    return found


def put_asks(target: Path, batches: Iterable[pa.RecordBatch]) -> None:
    new = new_of(target)
    with pa.OSFile(str(new), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    put(new, target)


def read_asks(path: Path, relations: Mapping[str, Relation]) -> list[Asked]:
    return [one for batch in read_piece(path) for one in asked(batch, relations)]
