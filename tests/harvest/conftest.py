from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures import Web, book_trade


@pytest.fixture
def trade() -> Iterator[Web]:
    """A book trade that a test may spoil."""
    with book_trade(60, book_page=10) as web:
        yield web
