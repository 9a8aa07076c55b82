"""Loads every kernel before the first query needs it, and compiles those that this machine has not compiled yet.

Otherwise the first turns of the first query would: some tenths of a second with the compiled kernels on disk, some
seconds without.
"""

from __future__ import annotations

import atexit
import datetime
import gc
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.state.columns import TextColumn
from mediator.state.index import Index, Visible
from mediator.state.kernels.codes import count_pairs
from mediator.state.keys import Keys, Part, keys_of
from mediator.state.rowstore import RowStore
from mediator.state.sorted import SortedRuns
from mediator.state.vocabulary import share

Ids = NDArray[np.int32]

_LONG = "longer than what two words can hold"
_COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "close": (pa.int64(), [1, 1, None]),
    "far": (pa.int64(), [1, 1 << 40, 1 << 50]),
    "narrow": (pa.int32(), [1, 2, 3]),
    "number": (pa.float64(), [0.5, None, 2.0]),
    "flag": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)]),
    "text": (pa.string(), ["short", _LONG, None]),
    "large text": (pa.large_string(), ["short", _LONG, None]),
}
_KEYS = (("close",), ("narrow",), ("far",), ("text",), ("number",), ("close", "text"))


@cache
def warm() -> None:
    """Run every kernel once, on a few rows of each kind of column. Only the first call does anything."""
    for copies in (1, 2):  # keys with one row each, and with two
        _run_all(_store(copies), np.array([2, 0, 1], np.int32))


@cache
def devote() -> None:
    """For a process that does nothing but answer queries: warm up, and take what has been imported from Python's
    garbage collector, which would go through some hundred thousand objects in the middle of a query, for 20 ms."""
    warm()
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # some libraries look for what was left behind when the process ends


def _store(copies: int) -> RowStore:
    store = RowStore(pa.schema([(name, type_) for name, (type_, _) in _COLUMNS.items()]))
    arrays = [pa.array(values, type_) for type_, values in _COLUMNS.values()]
    for _ in range(copies):
        store.append(pa.RecordBatch.from_arrays(arrays, schema=store.schema))
    return store


def _run_all(store: RowStore, ids: Ids) -> None:
    _outgrow()
    _speak()
    for rows in (range(store.n), ids):
        for name in _COLUMNS:
            store.gather(name, rows)
            keyed = store.column(name).keyed()
            count_pairs(keyed.codes_of(ids), keyed.codes(), np.empty(64, np.int64), np.zeros(64, np.int32))
        for fields in _KEYS:
            _probe(store, fields, keys_of([Part(store.column(f).keyed(), rows) for f in fields]))
    bounds = [("<=", np.array([1, 2], np.int64))]
    for visible in _sights(store.n):
        SortedRuns(store, "close").probe(bounds, np.array([False, True]), visible, 0, 10)


def _probe(store: RowStore, fields: tuple[str, ...], keys: Keys) -> None:
    index = Index(store, fields)
    for visible in _sights(store.n):
        for room in (1, 100):
            index.probe(keys, visible, 0, 0, room)


def _speak() -> None:
    """Strings of two columns with one vocabulary, of which one is looked for in the other, and a third one's."""
    stores = [_store(1) for _ in range(3)]
    texts = [store.column("text") for store in stores]
    share([text for text in texts[:2] if isinstance(text, TextColumn)])
    for store, text in product(stores[:2], texts):
        for rows in (range(3), np.array([2, 0, 1], np.int32)):
            _probe(store, ("text",), keys_of([Part(text.keyed(), rows)]))


def _outgrow() -> None:
    """More keys than a new table of slots has room for."""
    store = RowStore(pa.schema([("far", pa.int64())]))
    index = Index(store, ("far",))
    for start in range(0, 1 << 42, 1 << 40):
        far = pa.array([start + (n << 32) for n in range(100)], pa.int64())
        store.append(pa.RecordBatch.from_arrays([far], schema=store.schema))
        index.extend()


def _sights(count: int) -> tuple[Visible, Visible]:
    """All rows, in the order of their ids and in another."""
    return Visible(count), Visible(count, 0, np.arange(count, dtype=np.int32)[::-1].copy())
