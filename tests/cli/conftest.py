from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures import Web, book_trade


@pytest.fixture(scope="module")
def calm() -> Iterator[Web]:
    """A book trade that is well; nobody changes how it behaves."""
    with book_trade(60, book_page=20) as web:
        yield web


@pytest.fixture
def trade() -> Iterator[Web]:
    """A book trade that a test may spoil."""
    with book_trade(60, book_page=20) as web:
        yield web


@pytest.fixture(autouse=True)
def _no_catalog_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEDIATOR_CATALOG", raising=False)
