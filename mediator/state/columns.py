"""One column of stored rows: numbers, text, or anything else that Arrow knows.

Every column can be appended to, gathered from by row id, and read as 64-bit key codes. Codes of equal values are equal
across columns of one key type; where unequal values may share a code (`exact` is false), `same` tells them apart.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mediator.flow.batch import Rows, as_ids
from mediator.state.growable import Growable
from mediator.state.kernels import codes as code_kernels
from mediator.state.kernels import text as text_kernels
from mediator.state.memory import SLABS
from mediator.state.vocabulary import Vocabulary

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Offsets = NDArray[np.int64] | NDArray[np.int32]


class Keyed(Protocol):
    """A column as the key of an index."""

    exact: bool

    @property
    def valid(self) -> Mask | None:
        """Which rows are not NULL; none where no row is."""
        ...

    def codes(self) -> Codes: ...

    def codes_of(self, rows: Ids) -> Codes:
        """Of these rows alone, where nobody may ever want the others'."""
        ...

    def settle(self, alone: bool) -> None:
        """Do now what a probe with this column's values, `alone` or beside others', would do first."""
        ...

    def same(self, at: Ids, other: Keyed, rows: Ids, out: Mask) -> None:
        """Clear `out` where this column's rows `at` differ from the other's `rows`."""
        ...


class StoreColumn(Protocol):
    type: pa.DataType

    def append(self, values: pa.Array) -> None: ...

    def adopt(self, values: pa.Array) -> None:
        """Take in the first values, without a copy where that can be."""
        ...

    def gather(self, rows: Rows) -> pa.Array: ...

    def keyed(self) -> Keyed: ...

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        ...


def column_of(type_: pa.DataType) -> StoreColumn:
    """An empty column for values of this type."""
    if _is_text(type_):
        return TextColumn(type_)
    if is_fixed(type_):
        return FixedColumn(type_)
    return OtherColumn(type_)


class FixedColumn:
    """Values of a fixed width, kept as a NumPy array that grows."""

    exact = True

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self._values: Growable[np.generic] = Growable(_dtype(type_))
        self._nulls = _Nulls()
        self._codes: Growable[np.int64] = Growable(np.int64)

    @property
    def size(self) -> int:
        return self._values.size + self._codes.size

    def append(self, values: pa.Array) -> None:
        self._nulls.append(values, self._values.n)
        self._values.extend(_numbers(values, self._values.data.dtype))

    def adopt(self, values: pa.Array) -> None:
        self._nulls.append(values, 0)
        self._values = Growable.of(_numbers(values, self._values.data.dtype))

    def gather(self, rows: Rows) -> pa.Array:
        values = self._values.used
        if isinstance(rows, range):
            return _array(self.type, values[rows.start : rows.stop], self._nulls.gather(rows))
        picked = SLABS.empty(len(rows), values.dtype)
        code_kernels.gather(values, rows, picked)
        return _array(self.type, picked, self._nulls.gather(rows))

    def numbers(self, rows: Rows) -> tuple[NDArray[np.generic], Mask | None]:
        """The values as they are kept, and which of them are not NULL; none where all are."""
        return self._values.used[as_ids(rows)], self._nulls.gather(rows)

    def keyed(self) -> Keyed:
        return self

    @property
    def valid(self) -> Mask | None:
        return self._nulls.valid

    def codes(self) -> Codes:
        values = self._values.used
        if values.dtype == np.int64:
            return values.view(np.int64)
        start = self._codes.n
        if start < len(values):
            fresh = values[start:]
            if values.dtype.kind == "f":
                codes = np.empty(len(fresh), np.int64)
                code_kernels.float_codes(fresh.astype(np.float64), codes)
            else:
                codes = fresh.astype(np.int64)
            self._codes.extend(codes)
        return self._codes.used

    def codes_of(self, rows: Ids) -> Codes:
        values = self._values.used[rows]
        if values.dtype.kind != "f":
            return values.astype(np.int64)
        codes = np.empty(len(values), np.int64)
        code_kernels.float_codes(values.astype(np.float64), codes)
        return codes

    def settle(self, alone: bool) -> None:
        self.codes()

    def same(self, at: Ids, other: Keyed, rows: Ids, out: Mask) -> None:
        code_kernels.same_codes(self.codes(), at, other.codes(), rows, out)


class TextColumn:
    """Strings or bytes, kept as word pairs and a heap for the long ones."""

    exact = False

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self.words: Growable[np.int64] = Growable(np.int64)
        self.heap: Growable[np.uint8] = Growable(np.uint8)
        self.vocabulary: Vocabulary | None = None  # where it is joined with columns that have the same one
        self._nulls = _Nulls()
        self._codes: Growable[np.int64] = Growable(np.int64)
        self._numbers: Growable[np.int32] = Growable(np.int32)

    @property
    def size(self) -> int:
        return self.words.size + self.heap.size + self._codes.size + self._numbers.size

    def append(self, values: pa.Array) -> None:
        count, start = len(values), self._rows
        self._nulls.append(values, start)
        offsets, data = _text_buffers(values)
        self.words.claim(2 * (start + count))
        self.heap.reserve(self.heap.n + int(offsets[-1] - offsets[0]))
        self.heap.n = text_kernels.to_words(
            offsets, data, 0, count, self.words.data, start, self.heap.data, self.heap.n
        )

    def adopt(self, values: pa.Array) -> None:
        self.append(values)

    @property
    def _rows(self) -> int:
        return self.words.n // 2

    def gather(self, rows: Rows) -> pa.Array:
        ids = as_ids(rows)
        words, offsets = np.empty(2 * len(ids), np.int64), np.empty(len(ids) + 1, np.int64)
        text_kernels.gather_words(self.words.data, ids, words, offsets)
        data = SLABS.empty(int(offsets[-1]) + text_kernels.SPARE, np.uint8)
        text_kernels.to_text(words, self.heap.data, offsets, data)
        large = pa.large_binary() if _is_bytes(self.type) else pa.large_string()
        buffers = [_bitmap(self._nulls.gather(rows)), pa.py_buffer(offsets), pa.py_buffer(data)]
        if self.type in (pa.string(), pa.binary()):
            buffers[1] = pa.py_buffer(offsets.astype(np.int32))
            return pa.Array.from_buffers(self.type, len(ids), buffers)
        gathered = pa.Array.from_buffers(large, len(ids), buffers)
        return gathered if self.type == large else gathered.cast(self.type)

    def keyed(self) -> Keyed:
        return self

    @property
    def valid(self) -> Mask | None:
        return self._nulls.valid

    def codes(self) -> Codes:
        start, stop = self._codes.n, self._rows
        if start < stop:
            fresh = np.empty(stop - start, np.int64)
            text_kernels.hash_words(self.words.data, self.heap.data, start, stop, fresh)
            self._codes.extend(fresh)
        return self._codes.used

    def codes_of(self, rows: Ids) -> Codes:
        words, offsets = np.empty(2 * len(rows), np.int64), np.empty(len(rows) + 1, np.int64)
        text_kernels.gather_words(self.words.data, rows, words, offsets)
        codes = np.empty(len(rows), np.int64)
        text_kernels.hash_words(words, self.heap.data, 0, len(rows), codes)
        return codes

    def numbers(self) -> Ids:
        """Of all its strings, in its vocabulary; -1 for NULLs."""
        if self.vocabulary is not None:
            self.vocabulary.extend(self, self._numbers)
        return self._numbers.used

    def settle(self, alone: bool) -> None:
        if not alone:
            self.codes()
        elif self.vocabulary is not None:  # else a single string is compared itself
            self.numbers()

    def same(self, at: Ids, other: Keyed, rows: Ids, out: Mask) -> None:
        assert isinstance(other, TextColumn)
        text_kernels.same_words(
            self.words.data, self.heap.data, at, other.words.data, other.heap.data, rows, out
        )


class OtherColumn:
    """Values of any other Arrow type, kept as chunks whose sizes at least halve from one to the next."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self._chunks: list[pa.Array] = []
        self._key = TextColumn(pa.large_string())
        self._unread: list[pa.Array] = []

    @property
    def size(self) -> int:
        return sum(int(chunk.nbytes) for chunk in self._chunks) + self._key.size

    def append(self, values: pa.Array) -> None:
        self._unread.append(values)
        while self._chunks and len(self._chunks[-1]) < 2 * len(values):
            values = pa.concat_arrays([self._chunks.pop(), values])
        self._chunks.append(values)

    def adopt(self, values: pa.Array) -> None:
        self.append(values)

    def gather(self, rows: Rows) -> pa.Array:
        whole = pa.chunked_array(self._chunks, self.type)
        if isinstance(rows, range):
            part = whole.slice(rows.start, len(rows))
        else:
            part = whole.take(pa.array(rows))
        return part.combine_chunks() if part.num_chunks != 1 else part.chunk(0)

    def keyed(self) -> Keyed:
        # Values of these types are rarely keys: their text stands for them, written only when it is asked for.
        for values in self._unread:
            texts = [None if v is None else repr(v) for v in values.to_pylist()]
            self._key.append(pa.array(texts, pa.large_string()))
        self._unread.clear()
        return self._key


class _Nulls:
    """Which rows are valid; costs nothing until the first NULL."""

    __slots__ = ("_valid",)

    def __init__(self) -> None:
        self._valid: Growable[np.bool_] | None = None

    def append(self, values: pa.Array, before: int) -> None:
        if values.null_count and self._valid is None:
            self._valid = Growable(np.bool_)
            self._valid.extend(np.ones(before, np.bool_))
        if self._valid is not None:
            self._valid.extend(values.is_valid().to_numpy(zero_copy_only=False))

    def gather(self, rows: Rows) -> Mask | None:
        if self._valid is None:
            return None
        picked: Mask = self._valid.used[as_ids(rows)]
        return None if picked.all() else picked

    @property
    def valid(self) -> Mask | None:
        return None if self._valid is None else self._valid.used


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or type_ == pa.binary_view())


def _is_text(type_: pa.DataType) -> bool:
    is_string = pa.types.is_string(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view()
    return bool(is_string or _is_bytes(type_))


def is_fixed(type_: pa.DataType) -> bool:
    """Whether a column of this type is kept as plain numbers."""
    t = pa.types
    if t.is_uint64(type_) or t.is_float16(type_):
        return False  # does not fit the int64 codes; a float16 has no NumPy buffer of its own
    return bool(
        t.is_integer(type_)
        or t.is_floating(type_)
        or t.is_boolean(type_)
        or t.is_date(type_)
        or t.is_timestamp(type_)
        or t.is_time(type_)
        or t.is_duration(type_)
    )


def _dtype(type_: pa.DataType) -> np.dtype[np.generic]:
    if pa.types.is_boolean(type_):
        return np.dtype(np.uint8)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        plain: np.dtype[np.generic] = np.dtype(type_.to_pandas_dtype())
        return plain
    return np.dtype(np.int32 if type_.bit_width == 32 else np.int64)


def _numbers(values: pa.Array, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """The values as they lie in their buffer; where one is NULL, whatever lies there."""
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    if not len(values):
        return np.empty(0, dtype)
    return np.asarray(_Lent(values.buffers()[1], dtype))[values.offset : values.offset + len(values)]


class _Lent:
    """A buffer that NumPy takes for memory to write to. Arrow would not have that, and nobody here does; but Numba
    would compile every kernel once more for arrays that cannot be written to."""

    def __init__(self, buffer: pa.Buffer, dtype: np.dtype[np.generic]) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "data": (buffer.address, False),
            "shape": (buffer.size // dtype.itemsize,),
            "typestr": dtype.str,
            "version": 3,
        }


def _array(type_: pa.DataType, values: NDArray[np.generic], valid: Mask | None) -> pa.Array:
    stored = pa.uint8() if pa.types.is_boolean(type_) else type_
    array = pa.Array.from_buffers(stored, len(values), [_bitmap(valid), pa.py_buffer(values)])
    return array if stored == type_ else pc.cast(array, type_)


def _bitmap(valid: Mask | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _text_buffers(values: pa.Array) -> tuple[Offsets, NDArray[np.uint8]]:
    narrow = values.type in (pa.string(), pa.binary())
    if not narrow:
        values = values.cast(pa.large_binary() if _is_bytes(values.type) else pa.large_string())
    if values.null_count:
        values = pc.fill_null(values, b"" if _is_bytes(values.type) else "")
    _, offsets, data = values.buffers()
    count, width = len(values), np.dtype(np.int32 if narrow else np.int64)
    if not count or offsets is None:
        none: Offsets = np.zeros(count + 1, width)
        return none, np.empty(0, np.uint8)
    placed: Offsets = np.frombuffer(offsets, width)[values.offset : values.offset + count + 1]
    return placed, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
