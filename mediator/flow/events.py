"""What goes into the eddy and what comes out of it.

Events in: `Arrived`, `Exhausted`, `Failed`. Commands out: `Ask`, `Urge`, `Cancel`, `Emit`.
An ask is for one way into one relation and any number of bindings; a scan is an ask for the one empty binding,
the paper's seed tuple. Each binding of an ask ends exactly once: in `Exhausted` (its EOT) or in `Failed`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.errors import Cause
from mediator.flow.batch import Batch

Binding = tuple[object, ...]
SEED: tuple[Binding, ...] = ((),)
# The urgency of what needs no row's help. It brings the rows that others wait for, mostly page after page, and so
# nothing takes longer than to let it wait.
FIRST = 1e12


@dataclass(frozen=True, slots=True)
class Ask:
    """Please fetch: sent once, answered by any number of `Arrived`, ended per binding."""

    number: int
    relation: str
    method: str
    bind_set: tuple[str, ...]
    bindings: tuple[Binding, ...]
    urgency: float = 0.0  # the larger, the sooner it leaves a queue


@dataclass(frozen=True, slots=True)
class Urge:
    """How urgent bindings of an ask are from now on. It matters to those that still wait in a queue."""

    ask: int
    urgencies: Mapping[Binding, float]


@dataclass(frozen=True, slots=True)
class Cancel:
    """No longer wanted. Without bindings, all that is left of the ask."""

    ask: int
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Emit:
    """Answers: a batch that spans every alias and has passed every predicate."""

    batch: Batch


Command = Ask | Urge | Cancel | Emit


class Landing:
    """Rows that one reply brought. Several queries may be waiting for it: the first to admit it stores it.

    `place` is that of their page among those of the lookup, whichever came first; 0 comes again where it begins anew.
    `page` is the request for it, by which it is known whoever asks; of a long one, `stretch` says how many of its
    stretches have landed before this one.
    """

    __slots__ = ("ids", "kept", "lookup", "page", "place", "rows", "stem", "stretch")

    def __init__(
        self,
        rows: pa.RecordBatch,
        kept: bool = True,
        place: int = 0,
        page: Hashable = None,
        stretch: int = 0,
    ) -> None:
        self.rows = rows
        self.place = place
        self.page = page
        self.stretch = stretch
        self.lookup = 0  # the number of what brought them, in this process; none where no site did
        self.kept = kept  # may be written to the disk
        self.ids: NDArray[np.int32] | range | None = None  # where the SteM put them; none until stored
        self.stem: object = None  # which one that was


@dataclass(frozen=True, slots=True)
class Arrived:
    ask: int
    landing: Landing


@dataclass(frozen=True, slots=True)
class Exhausted:
    """EOT: every row that matches these bindings has arrived.

    For freshness: `at` is when it was asked, `until` as long as the site itself vouches for it. `landings` are all
    that the lookup brought, which may have more rows than match: others may be answered by them, and by nothing else.
    """

    ask: int
    bindings: tuple[Binding, ...]
    at: float = 0.0
    until: float = float("inf")
    landings: Sequence[Landing] = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """These bindings will not be answered."""

    ask: int
    bindings: tuple[Binding, ...]
    cause: Cause


Event = Arrived | Exhausted | Failed
