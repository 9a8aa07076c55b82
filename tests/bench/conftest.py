"""What other tests of the same process have left is no concern of the benches."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _nothing_else_to_collect() -> Iterator[None]:
    """Races collect garbage before each run: that of all tests before would take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
