"""Envelopes as bytes, for whoever carries or keeps them: one Arrow stream each, whose schema says what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from mediator.catalog.model import Relation
from mediator.errors import Cause
from mediator.store import bindings
from pipeline.cells.envelopes import Broken, Came, Envelope, Lookup, Over

_ABOUT = b"about"
_NEVER = float("inf")
# Many bytes are carried and kept for longer than it takes to make fewer of them.
_MUCH = 1 << 14
_LARGE = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1), use_threads=False)

Said = dict[str, Any]


def packed(envelope: Envelope, relations: Mapping[str, Relation]) -> bytes:
    match envelope:
        case Came(lookups, landing, rows):
            about: Said = {"is": "came", "lookups": _written(lookups, relations), "landing": landing}
        case Over(lookup, at, until, landings):
            rows = _none(relations[lookup.relation])
            about = {"is": "over", "lookups": _written([lookup], relations), "at": at, "landings": landings}
            if until != _NEVER:  # which JSON has not
                about["until"] = until
        case Broken(lookup, cause):
            rows = _none(relations[lookup.relation])
            about = {"is": "broken", "lookups": _written([lookup], relations), "cause": _told(cause)}
    schema = rows.schema.with_metadata({_ABOUT: json.dumps(about)})
    sink = pa.BufferOutputStream()
    options = _LARGE if rows.nbytes >= _MUCH else None
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        if rows.num_rows:
            writer.write_batch(rows.replace_schema_metadata(schema.metadata))
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(content: bytes, relations: Mapping[str, Relation]) -> Envelope:
    with pa.ipc.open_stream(content) as reader:
        about: Said = json.loads(reader.schema.metadata[_ABOUT])
        lookups = _read(about["lookups"], relations)
        match about["is"]:
            case "came":
                batches = [batch.replace_schema_metadata(None) for batch in reader]
                return Came(lookups, about["landing"], *(batches or [_none(relations[lookups[0].relation])]))
            case "over":
                return Over(lookups[0], about["at"], about.get("until", _NEVER), tuple(about["landings"]))
            case _:
                return Broken(lookups[0], Cause(*about["cause"]))


def _told(cause: Cause) -> list[str]:
    return [cause.kind, cause.message]


def _none(relation: Relation) -> pa.RecordBatch:
    arrays = [pa.array([], f.type) for f in relation.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=relation.schema)


def _written(lookups: Sequence[Lookup], relations: Mapping[str, Relation]) -> list[list[Any]]:
    """Those that go the same way together, in their order."""
    found: list[list[Any]] = []
    for (relation, method, bind_set), some in groupby(lookups, key=lambda lookup: lookup[:3]):
        texts = bindings.written(relations[relation].schema, bind_set, [lookup.binding for lookup in some])
        found.append([relation, method, bind_set, texts])
    return found


def _read(written: Sequence[Sequence[Any]], relations: Mapping[str, Relation]) -> tuple[Lookup, ...]:
    found: list[Lookup] = []
    for relation, method, fields, texts in written:
        bind_set = tuple(fields)
        some = bindings.read(relations[relation].schema, bind_set, texts)
        found += [Lookup(relation, method, bind_set, binding) for binding in some]
    return tuple(found)
