"""Functions that a caller brings along for SQL to call: what is declared of one, and how it is called.

    @function([str, str], float, seconds=5e-6)
    def alike(left: pa.Array, right: pa.Array) -> pa.Array: ...

    @function([int], bool, by_row=True)
    def is_prime(number: int) -> bool: ...

    Mediator(catalog, functions=[alike, is_prime])

How they are found in a statement, and what DuckDB is told of them, is `query/functions.py`'s.
"""

from __future__ import annotations

import datetime
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mediator.clock import monotonic
from mediator.errors import CatalogError, FunctionFailed

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.datetime: pa.timestamp("us"),
}
_ENOUGH = 1_000  # rows after which a measured cost is believed
TINY = 1e-6  # seconds a row: what costs no more is not worth a step of its own


@dataclass(slots=True)
class _Spent:
    """What calls came to so far."""

    rows: int = 0
    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, rows: int, seconds: float) -> None:
        with self.lock:
            self.rows += rows
            self.seconds += seconds


@dataclass(frozen=True, eq=False)
class Function:
    """A function of SQL. `call` gets an Arrow array per argument, all of one length, and gives one of that length; if
    `by_row`, it gets and gives plain values. It may be called from several threads at once.

    A row with a NULL argument gives NULL, and `call` does not see it, unless it takes `nulls`. One that is not `steady`
    may give another value for the same arguments. `seconds` is what a row costs; where nothing is said it is measured.
    Conditions that call it are modules of their own where that is not tiny, or as `apart` says.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    result: pa.DataType
    call: Callable[..., Any]
    by_row: bool = False
    seconds: float | None = None
    steady: bool = True
    nulls: bool = False
    apart: bool | None = None
    _spent: _Spent = field(default_factory=_Spent, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise CatalogError(f"{self.name!r} cannot be a function's name: write it in lower case letters")
        if not self.arguments:
            raise CatalogError(f"the function {self.name} takes no argument: give it one, of any type")
        if self.seconds is not None and not 0 <= self.seconds < float("inf"):
            raise CatalogError(f"the function {self.name} cannot cost {self.seconds} seconds a row")
        if not callable(self.call):
            raise CatalogError(f"the function {self.name} has nothing to call")

    def cost(self) -> float | None:
        """Seconds that a row takes, as declared or else as measured; none while too little is known."""
        if self.seconds is not None:
            return self.seconds
        return self._spent.seconds / self._spent.rows if self._spent.rows >= _ENOUGH else None

    @property
    def is_costly(self) -> bool:
        """Whether conditions that call it are worth a step of their own; where its cost is not known, they are."""
        cost = self.cost()
        return self.apart if self.apart is not None else cost is None or cost > TINY

    @property
    def why_costly(self) -> str:
        """Why they are, for people."""
        cost = self.cost()
        if self.apart:
            return f"{self.name} is always to be one"
        if cost is None:
            return f"what {self.name} costs is not known yet"
        said = "is said to cost" if self.seconds is not None else "was measured to cost"
        return f"{self.name} {said} {1e6 * cost:,.3g} µs a row"

    def over(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Its value for each row. Raises `FunctionFailed`, which names it, for whatever goes wrong inside."""
        given = [c.cast(t) for c, t in zip(columns, self.arguments, strict=True)]
        missing = None if self.nulls else _missing(given)
        if missing is not None:
            given = [c.filter(pc.invert(missing)) for c in given]
        began = monotonic()
        values = self._values(given)
        self._spent.add(len(values), monotonic() - began)
        if missing is None:
            return values
        places = pc.cumulative_sum(pc.cast(pc.invert(missing), pa.int64()))
        return values.take(pc.if_else(missing, None, pc.subtract(places, 1)))

    def _values(self, given: list[pa.Array]) -> pa.Array:
        rows = len(given[0])
        if not rows:
            return pa.array([], self.result)
        try:
            found = self._by_row(given) if self.by_row else self.call(*given)
        except Exception as error:
            raise FunctionFailed(self.name, f"{type(error).__name__}: {error}") from error
        values = self._typed(found)
        if len(values) != rows:
            raise FunctionFailed(self.name, f"it gave {len(values)} values for {rows} rows")
        return values

    def _by_row(self, given: list[pa.Array]) -> list[object]:
        return [self.call(*row) for row in zip(*(c.to_pylist() for c in given), strict=True)]

    def _typed(self, found: object) -> pa.Array:
        """What was given, as an array of the declared type."""
        try:
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if not isinstance(found, pa.Array):
                return pa.array(found, self.result)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise FunctionFailed(self.name, f"it did not give {self.result} values: {error}") from None
        if found.type == self.result:
            return found
        if _is_text(found.type) != _is_text(self.result):
            raise FunctionFailed(self.name, f"it gave {found.type} values, not {self.result}")
        try:
            return found.cast(self.result)
        except pa.ArrowException as error:
            raise FunctionFailed(
                self.name, f"it gave {found.type} values, not {self.result}: {error}"
            ) from None


def function(
    arguments: Iterable[pa.DataType | type],
    result: pa.DataType | type,
    *,
    name: str = "",
    by_row: bool = False,
    seconds: float | None = None,
    steady: bool = True,
    nulls: bool = False,
    apart: bool | None = None,
) -> Callable[[Callable[..., Any]], Function]:
    """Makes a Python function one of SQL. Types are Arrow's, or Python's own for the plain ones."""

    def made(call: Callable[..., Any]) -> Function:
        own = name or getattr(call, "__name__", "")
        types = tuple(_type(t, own) for t in arguments)
        return Function(own, types, _type(result, own), call, by_row, seconds, steady, nulls, apart)

    return made


def _type(said: object, name: str) -> pa.DataType:
    if isinstance(said, pa.DataType):
        return said
    known = _TYPES.get(said) if isinstance(said, type) else None
    if known is None:
        plain = ", ".join(t.__name__ for t in _TYPES)
        raise CatalogError(f"the function {name}: {said!r} is no type; there are Arrow's, and {plain}")
    return known


def _missing(columns: Iterable[pa.Array]) -> pa.Array | None:
    """The rows where some column is NULL, if there are any."""
    found: pa.Array | None = None
    for column in columns:
        if column.null_count:
            found = column.is_null() if found is None else pc.or_(found, column.is_null())
    return found


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
