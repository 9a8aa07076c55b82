"""The cells of a table by their columns: one that spans several places stands in all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

MOST_COLUMNS = 2_000
_ACROSS = 1_000  # columns that a cell may span, as browsers have it
_DOWN = 65_534  # and lines
_DIGITS = re.compile(r"\s*\+?0*(\d+)", re.ASCII)

Row = dict[int, str]


class Grid:
    """Lays out one line of a table after another. A cell hangs down no further than the part of the table that it is
    in: head, body or foot."""

    def __init__(self, text_of: Callable[[Any], str], repeat: Callable[[str], None]) -> None:
        self.width = MOST_COLUMNS
        self._text_of = text_of
        self._repeat = repeat  # told of each further place in which a text stands
        self._part: Any = None
        self._hanging: dict[int, tuple[str, int]] = {}  # by column, with the lines that are left to it

    def hangs_into(self, line: Any) -> bool:
        """Whether a cell of the lines before is in this one."""
        return bool(self._hanging) and line.getparent() is self._part

    def row(self, line: Any) -> Row:
        """The texts of the next line by their columns. The first cell behind the last column is there, too: who reads
        the line sees that it does not fit."""
        row = self._hung(line)
        column = 0
        for cell in cells_of(line):
            while column in row:
                column += 1
            text = self._text_of(cell)
            if column >= self.width:
                row[self.width] = text
                break
            column = self._put(row, column, text, cell)
        return row

    def _hung(self, line: Any) -> Row:
        hanging = self._hanging if self.hangs_into(line) else {}
        self._part = line.getparent()
        self._hanging = {column: (text, left - 1) for column, (text, left) in hanging.items() if left > 1}
        for text, _ in hanging.values():
            self._repeat(text)
        return {column: text for column, (text, _) in hanging.items()}

    def _put(self, row: Row, start: int, text: str, cell: Any) -> int:
        """The column behind this cell."""
        end = min(start + (_span(cell, "colspan", _ACROSS) or 1), self.width)
        left = (_span(cell, "rowspan", _DOWN) or _DOWN) - 1  # 0 is to the end
        for column in range(start, end):
            if column in row:
                continue
            if column > start:
                self._repeat(text)
            row[column] = text
            if left:
                self._hanging[column] = text, left
        return end


def cells_of(line: Any) -> Sequence[Any]:
    cells: Sequence[Any] = line.xpath("./th|./td")
    return cells


def spans(cell: Any) -> bool:
    return cell.get("colspan") is not None or cell.get("rowspan") is not None


def _span(cell: Any, name: str, most: int) -> int:
    said = _DIGITS.match(cell.get(name, "1"))
    if said is None:
        return 1
    return min(int(said[1]), most) if len(said[1]) < 9 else most
