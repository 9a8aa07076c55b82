"""Statements for the oracle: every corner of SQL that the query room says it understands."""

from __future__ import annotations

import datetime
from pathlib import Path

_HERE = Path(__file__).parent


def read(name: str) -> list[str]:
    """The statements of a file, one per line."""
    lines = (_HERE / name).read_text().splitlines()
    return [line.removesuffix(";") for line in lines if line and not line.startswith("--")]


PLAIN = read("statements.sql")
ORDERED = read("ordered.sql")

WITH_PARAMETERS: list[tuple[str, object]] = [
    ("SELECT title FROM books WHERE year > ?", [1900]),
    ("SELECT title FROM books WHERE isbn = ? AND year > ?", ["i2", 1900]),
    ("SELECT title FROM books WHERE isbn IN (?, ?)", ["i1", "it's; DROP TABLE books"]),
    ("SELECT shop FROM offers WHERE isbn = $isbn AND price > $least", {"isbn": "i1", "least": 8.5}),
    ("SELECT $2 AS b, $1 AS a, $2 || 'x' AS c", ["one", "two"]),
    ("SELECT prize FROM prizes WHERE awarded = ?", [datetime.date(2024, 1, 1)]),
    ("SELECT prize FROM prizes p WHERE p.at = ?", [datetime.datetime(2024, 1, 1, 12)]),
    ("SELECT title, ? AS n FROM books WHERE publisher = ?", [None, "P"]),
    ("SELECT title FROM books ORDER BY isbn LIMIT ? OFFSET ?", [2, 1]),
    ("SELECT ? AS f, ? AS b", [1.5, True]),
    ('SELECT \'?\' AS q, "select" AS "$x" FROM "Odd Names" WHERE "Key" = ? -- ?', [1]),
]
