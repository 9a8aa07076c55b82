"""Where a query can run: here, or where somebody else's engine runs it.

An engine that is not this package's own announces itself through the entry point group `mediator.engines`: it is built
on top of this one, so nothing of it is imported until somebody asks for it by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from mediator.access import Statistics
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.binding.model import Verdict
from mediator.catalog.model import Catalog
from mediator.driver import Answers
from mediator.errors import MediatorError
from mediator.live import Live
from mediator.output.records import Records
from mediator.output.report import Paused, Report
from mediator.query.model import Query
from mediator.state.stem import SteM
from mediator.steering import Steering

GROUP = "mediator.engines"
LOCAL = "local"


class AnswerStream(Protocol):
    """The answers of one query, whichever engine finds them: as `driver.Answers` has it."""

    schema: pa.Schema
    warnings: tuple[str, ...]

    @property
    def report(self) -> Report: ...

    @property
    def untraced(self) -> str: ...

    @property
    def steering(self) -> Steering: ...

    @property
    def paused(self) -> tuple[Paused, ...]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> pa.RecordBatch: ...

    def records(self) -> Records: ...

    def live(self) -> Live: ...

    def statistics(self) -> Statistics: ...

    def steer(
        self,
        *,
        prefer: Mapping[str, float] | None = None,
        pause: Collection[str] = (),
        resume: Collection[str] = (),
        boost: Mapping[str, float] = ...,
    ) -> Steering: ...

    def stop(self, why: str) -> None: ...

    async def stopped(self, why: str) -> None: ...

    async def snapshot(self) -> pa.Table | None: ...

    def since(self, moment: float) -> None: ...


@dataclass(frozen=True)
class Stock:
    """What the SteMs of this process hold, by its clock."""

    stems: Mapping[str, SteM]
    now: float


@dataclass(frozen=True)
class Understood:
    """A query that has been understood, and what is known for it."""

    catalog: Catalog
    query: Query
    verdicts: Mapping[str, Verdict]
    settings: Settings
    known: Known


@dataclass(frozen=True)
class Job(Understood):
    """One that is to be answered. `known` is what was measured so far, `stock` what is held, for as long as nobody else
    touches it; `here` answers it in this process."""

    stock: Callable[[], AbstractAsyncContextManager[Stock]]
    here: Callable[[], Answers]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explained:
    """How an engine would run a query: lines for people, those below a heading indented, and the same as `data`.
    `warnings` are about this machine, and for whoever it belongs to."""

    lines: tuple[str, ...]
    data: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


class Engine(Protocol):
    def answering(self, job: Job) -> AnswerStream:
        """Raises a `MediatorError` where it cannot run here, before anything is asked."""
        ...

    def explained(self, query: Understood) -> Explained:
        """By all that is known, also by what is held. Asks nothing, and starts nothing. Raises as `answering` does."""
        ...


def engine_called(name: str) -> Engine:
    """Raises a `MediatorError` that says which engines there are."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        names = [LOCAL, *sorted(found)]
        near = difflib.get_close_matches(name, names, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        raise MediatorError(f"there is no engine {name!r}: {fix}")
    made: Engine = found[name].load()()
    return made
