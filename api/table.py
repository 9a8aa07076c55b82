"""A table for people, that streams: its columns' widths are settled by the first rows and by their types.

In a terminal a row is one line: what has no room is cut off with `…`, but never a number. Elsewhere nothing
is cut, and a column grows with what comes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from api.cells import NULL, harmless, shown, values

_GAP = "  "
# A column of text, which later rows may need wider than the first ones did, gets up to this much of what is
# left.
_COMFORT = 32
_NARROWEST = 6
# Texts longer than this tend to vary, and get more room than the first ones need; this much where nothing is
# cut.
_SHORT, _ROOMY = 8, 20
_UNKNOWN = "…"
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Table:
    def __init__(self, schema: pa.Schema, width: int | None = None, colour: bool = False) -> None:
        self._names = [harmless(name) for name in schema.names]
        self._numeric = [_is_number(kind) for kind in schema.types]
        self._texts = [_is_text(kind) for kind in schema.types]
        self._least = [_least(kind) for kind in schema.types]
        self._width = width
        self._colour = colour
        self._widths: list[int] = []

    def start(self) -> bytes:
        """Nothing yet: the header waits for the first rows, to know how wide it is."""
        return b""

    def rows(self, batch: pa.RecordBatch, unknown: Collection[int] = ()) -> bytes:
        """Lines of a table. Of the columns at these places nothing can be said yet."""
        columns = [values(column) for column in batch.columns]
        cells = [
            [_UNKNOWN if place in unknown else shown(v) for v in column]
            for place, column in enumerate(columns)
        ]
        head = "" if self._widths else self._head(cells)
        nulls = [[v is None for v in column] for column in columns]
        lines = [
            self._line(*row) for row in zip(zip(*cells, strict=True), zip(*nulls, strict=True), strict=True)
        ]
        return (head + "".join(lines)).encode()

    def end(self) -> bytes:
        return b"" if self._widths else self._head([[] for _ in self._names]).encode()

    def _head(self, cells: Sequence[Sequence[str]]) -> str:
        needed = [
            max(cell_len(name), least, *(cell_len(c) for c in column), 1)
            for name, least, column in zip(self._names, self._least, cells, strict=True)
        ]
        self._widths = fitted(needed, self._texts, self._width)
        rule = _GAP.join("─" * width for width in self._widths)
        return (
            self._line(self._names, [False] * len(self._names), bold=True) + self._styled(rule, _DIM) + "\n"
        )

    def _line(self, cells: Sequence[str], nulls: Sequence[bool], bold: bool = False) -> str:
        parts = []
        for number, cell in enumerate(cells):
            last = number == len(cells) - 1
            padded = self._padded(number, cell, last)
            style = _BOLD if bold else _DIM if nulls[number] else ""
            parts.append(self._styled(padded, style))
        return _GAP.join(parts).rstrip(" ") + "\n"

    def _padded(self, number: int, cell: str, last: bool) -> str:
        width, length = self._widths[number], cell_len(cell)
        if length > width and self._width is None:
            self._widths[number] = length
            return cell
        if length > width:
            return cell if self._numeric[number] else _cut(cell, width)
        if self._numeric[number]:
            return " " * (width - length) + cell
        return cell if last else cell + " " * (width - length)

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if style and self._colour else text


def fitted(needed: Sequence[int], texts: Sequence[bool], total: int | None) -> list[int]:
    """Widths for columns that need these: text gives way where there is too much, and grows into room."""
    if total is None:
        return [max(n, _ROOMY) if text and n > _SHORT else n for n, text in zip(needed, texts, strict=True)]
    widths = list(needed)
    room = total - len(_GAP) * (len(widths) - 1)
    elastic = [n for n, text in enumerate(texts) if text]
    while sum(widths) > room:
        widest = max(elastic, key=lambda n: widths[n], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    while sum(widths) < room:
        narrow = [n for n in elastic if _SHORT < needed[n] <= widths[n] < _COMFORT]
        if not narrow:
            break
        widths[min(narrow, key=lambda n: widths[n])] += 1
    return widths


def _cut(cell: str, width: int) -> str:
    return set_cell_size(cell, width - 1).rstrip(" ") + "…" if width > 1 else "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    """What has no natural width."""
    return not (_is_number(kind) or _least(kind))


def _least(kind: pa.DataType) -> int:
    """How wide the values of a type mostly are, whatever the first of them are; 0: no telling."""
    if pa.types.is_boolean(kind):
        return 5
    if pa.types.is_date(kind):
        return 10
    if pa.types.is_timestamp(kind):
        return 19
    if _is_number(kind):
        return 5
    return len(NULL) if pa.types.is_null(kind) else 0
