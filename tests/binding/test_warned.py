"""A join of text with what is no text is hardly meant, and is told before anything is asked."""

from __future__ import annotations

import pytest

from mediator.answering import verdicts_of
from mediator.binding.warned import warned
from mediator.query.understand import understand
from tests.query.naive import CATALOG


def said(sql: str) -> list[str]:
    query = understand(sql, CATALOG)
    return warned(query, verdicts_of(query, CATALOG), CATALOG)


@pytest.mark.parametrize(
    "condition", ["a.id = b.title", "b.title = a.id", "a.id = b.title AND a.id = b.title"]
)
def test_text_joined_with_a_number_is_told_once(condition: str) -> None:
    (line,) = said(f"SELECT 1 FROM books b, authors a WHERE {condition}")
    assert " compares text with BIGINT: " in line or " compares text with INTEGER: " in line
    assert "b.title" in line


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM books b JOIN authors a ON a.id = b.author_id",
        "SELECT 1 FROM books WHERE year = '1965'",
        "SELECT 1 FROM books b JOIN offers o ON o.isbn = b.isbn",
    ],
)
def test_nothing_is_said_of_what_is_meant(sql: str) -> None:
    assert said(sql) == []
