"""Whether a statement has the same rows when it is run again over the same."""

from __future__ import annotations

import pytest

from mediator.query import understand
from tests.query.naive import CATALOG


@pytest.mark.parametrize(
    ("sql", "volatile"),
    [
        ("SELECT title FROM books", False),
        ("SELECT title, now() FROM books", False),
        ("SELECT title FROM books LIMIT 7 OFFSET 2", False),
        ("SELECT title, random() FROM books", True),
        ("SELECT title FROM books WHERE uuid()::VARCHAR > 'a'", True),
        ("SELECT title FROM (SELECT title FROM books LIMIT 7)", True),
        ("SELECT title FROM (SELECT title FROM books ORDER BY isbn LIMIT 7)", False),
        ("WITH b AS (SELECT * FROM books OFFSET 3) SELECT title FROM b", True),
        ("SELECT title FROM books WHERE isbn IN (SELECT isbn FROM books LIMIT 2)", True),
        ("(SELECT title FROM books LIMIT 3) UNION ALL SELECT title FROM books", True),
    ],
)
def test_rows_that_may_differ(sql: str, volatile: bool) -> None:
    assert understand(sql, CATALOG).volatile is volatile
