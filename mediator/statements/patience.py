"""Statements that take long: whoever waits for one may lose patience, and others need not wait beside.

A query's turn runs with its `Patience` at hand. A statement over all rows of a stage is taken `aside`, where one is
provided: others turn meanwhile. When patience is lost, what runs is interrupted and nothing more is begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol, TypeVar

from mediator.errors import MediatorError

T = TypeVar("T")

_AGAIN = 0.1  # seconds

_here = threading.local()


class Interrupted(MediatorError):
    """A statement was not run to its end: patience was lost."""

    def __init__(self) -> None:
        super().__init__("the statement was interrupted")


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Aside(Protocol):
    """Has something done where nobody waits for it but who asked."""

    def __call__(self, work: Callable[[], T]) -> T: ...


class Patience:
    """One query's. May be lost from any thread."""

    def __init__(self, aside: Aside | None = None) -> None:
        self._aside = aside
        self._lock = threading.Lock()
        self._running: list[Interruptible] = []
        self.lost = False

    def lose(self) -> None:
        """Interrupt what runs, and begin nothing more."""
        with self._lock:  # else one might have begun something else meanwhile, for somebody else
            self.lost = True
            running = bool(self._running)
            for one in self._running:
                one.interrupt()
        if running:  # between two of its steps a statement does not hear it
            again = threading.Timer(_AGAIN, self.lose)
            again.daemon = True
            again.start()

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """For what this thread does within the block."""
        before = getattr(_here, "patience", None)
        _here.patience = self
        try:
            yield
        finally:
            _here.patience = before

    @contextmanager
    def running(self, one: Interruptible) -> Iterator[None]:
        """While a statement runs. Raises `Interrupted` where none is to."""
        with self._lock:
            if self.lost:
                raise Interrupted
            self._running.append(one)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(one)

    def aside(self, work: Callable[[], T]) -> T:
        """Have it done aside, with this patience at hand there."""
        if self.lost:
            raise Interrupted
        if self._aside is None or getattr(_here, "stays", False):
            return work()

        def done() -> T:
            with self.at_hand(), staying():
                return work()

        return self._aside(done)


@contextmanager
def staying() -> Iterator[None]:
    """Nothing that this thread does within the block is taken aside."""
    before = getattr(_here, "stays", False)
    _here.stays = True
    try:
        yield
    finally:
        _here.stays = before


def shared(work: Callable[[], T]) -> Callable[[], T]:
    """For several threads at once that work for the query that this one works for. None of them has anything taken
    aside: others would turn while the rest of them read."""
    patience = at_hand()

    def done() -> T:
        with staying(), nullcontext() if patience is None else patience.at_hand():
            return work()

    return done


def at_hand() -> Patience | None:
    """Of the query for which this thread works, if it works for one."""
    found: Patience | None = getattr(_here, "patience", None)
    return found


def go_on() -> None:
    """Raises `Interrupted` where nobody waits any more. For work that takes long, between two of its steps."""
    patience = at_hand()
    if patience is not None and patience.lost:
        raise Interrupted


def aside(work: Callable[[], T]) -> T:
    """Have it done where others need not wait for it; here, where there is no such place."""
    patience = at_hand()
    return work() if patience is None else patience.aside(work)
