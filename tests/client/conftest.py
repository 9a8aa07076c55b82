"""The book trade, a mediator's server in front of it, and clients of that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from api.client import AsyncClient, Client, connect, connect_async
from fixtures import Web, book_trade
from tests.http.serving import Served, serving

PAGE = 20
# A session of its own, which `test_sqlalchemy.py` starts.
collect_ignore = ["suite"]


@dataclass(frozen=True)
class House:
    """Sites, and the server that asks them."""

    web: Web
    served: Served

    @property
    def url(self) -> str:
        return self.served.url


@pytest.fixture(scope="module")
def calm() -> Iterator[House]:
    """All is well; nobody changes how the sites behave."""
    with book_trade(300, book_page=100) as web, serving(web.catalog) as served:
        yield House(web, served)


@pytest.fixture
def house() -> Iterator[House]:
    """One that a test may spoil, and that nothing has been asked of."""
    with book_trade(60, book_page=PAGE) as web, serving(web.catalog) as served:
        yield House(web, served)


@pytest.fixture
async def client(calm: House) -> AsyncIterator[AsyncClient]:
    async with connect_async(calm.url) as found:
        yield found


@pytest.fixture
def blocking(calm: House) -> Iterator[Client]:
    with connect(calm.url) as found:
        yield found
