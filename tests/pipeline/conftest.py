"""One Spark session for all tests of a process, and book trades for it to ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fixtures import Web, book_trade
from pipeline.session import BRIEF, local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Three tasks at once, on any machine: one asks, and rows have two cells to go to."""
    with local_session(cores=3, flags=BRIEF) as session:
        yield session


@pytest.fixture(scope="session")
def calm() -> Iterator[Web]:
    """A book trade that is well; nobody changes how it behaves, or counts what it was asked."""
    with book_trade(60, book_page=20) as web:
        yield web


@pytest.fixture
def trade() -> Iterator[Web]:
    """A book trade that a test may spoil."""
    with book_trade(60, book_page=20) as web:
        yield web
