"""The book trade, served: sites on loopback, and the mediator's server in front of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures import book_trade
from fixtures.web import Web
from tests.http.serving import Served, serving


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with book_trade(300) as found:
        yield found


@pytest.fixture(scope="module")
def served(web: Web) -> Iterator[Served]:
    with serving(web.catalog) as found:
        yield found
