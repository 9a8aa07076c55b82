"""Bindings as text, so that the manifest finds them: a JSON list of what Arrow writes for each value."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from mediator.catalog.bindfields import subschema
from mediator.catalog.model import BindSet
from mediator.flow.events import Binding
from mediator.flow.plain import plain


def written(schema: pa.Schema, bind_set: BindSet, bindings: Sequence[Binding]) -> list[str]:
    """One text for each; equal bindings have equal texts."""
    if not bind_set or not bindings:
        return ["[]"] * len(bindings)
    columns = [
        _texts(pa.array(list(values), field.type))
        for field, values in zip(subschema(schema, bind_set), zip(*bindings, strict=True), strict=True)
    ]
    return [json.dumps(texts, ensure_ascii=False) for texts in zip(*columns, strict=True)]


def read(schema: pa.Schema, bind_set: BindSet, texts: Sequence[str]) -> list[Binding]:
    """The bindings that were written so."""
    if not bind_set or not texts:
        return [()] * len(texts)
    parts = zip(*map(json.loads, texts), strict=True)
    fields = subschema(schema, bind_set)
    columns = [_values(list(p), f.type) for p, f in zip(parts, fields, strict=True)]
    return list(zip(*columns, strict=True))


def _texts(values: pa.Array) -> list[str]:
    if _is_binary(values.type):
        return [value.hex() for value in values.to_pylist()]
    texts: list[str] = values.cast(pa.string()).to_pylist()
    return texts


def _values(texts: list[str], type_: pa.DataType) -> list[object]:
    if _is_binary(type_):
        return [bytes.fromhex(text) for text in texts]
    return plain(pa.array(texts, pa.string()).cast(type_))


def _is_binary(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_)
    )
