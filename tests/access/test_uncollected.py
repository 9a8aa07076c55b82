"""While a large reply is read, Python looks for no garbage; before and after that it does as it was told."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from mediator.access.uncollected import uncollected


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    if before:
        gc.enable()
    else:
        gc.disable()


def test_it_is_so_until_it_has_been_read_or_not() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="unreadable"), uncollected():
        raise ValueError("unreadable")
    assert gc.isenabled()


def test_who_does_without_it_goes_on_without_it() -> None:
    gc.disable()
    with uncollected():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_of_several_the_first_says_how_long() -> None:
    """Else replies that overlap would keep it off for ever."""
    inside, leave = threading.Event(), threading.Event()

    def second() -> None:
        with uncollected():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=second)
    with uncollected():
        thread.start()
        assert inside.wait(60)
    assert gc.isenabled(), "though the second still reads"
    leave.set()
    thread.join(60)
    assert gc.isenabled()
