"""Which legal destination is wise? A policy sees signatures and statistics; never rows, the eddy, or the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mediator.eddy.destinations import Destination
from mediator.flow.batch import Signature


class Visit(NamedTuple):
    """What one batch's stay at a destination came to.

    `compared` says that nobody went: so many keys were compared with so many others, which tells how many rows come of
    a pair of rows and nothing of what they cost.
    """

    signature: Signature
    destination: Destination
    rows_in: int
    rows_out: int
    seconds: float
    visible: int = 0  # rows that a probe could meet
    compared: bool = False
    alike: int = 0  # visits before it that were not told of, since they came to about as much


class Situation(NamedTuple):
    """What there is to a choice beside the signature: how many rows are to go there, how many of each alias they may
    meet, and how many of each an index has to take in before that; which aliases are `remote`, as their rows are looked
    up at a site, what a lookup of each takes, in seconds (0 where none has ended), and how many rows it finds; and
    what rows of each are worth to the user beside others."""

    rows: int
    seen: tuple[int, ...]
    behind: tuple[int, ...] = ()
    remote: tuple[int, ...] = ()
    waits: tuple[float, ...] = ()
    finds: tuple[float, ...] = ()
    worth: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Coming:
    """Rows that need not be built: of which alias, how many, and how many of it have come, these included.

    `held` is how many of each alias the query has been given and has built. `shared` says that other queries would be
    served from these rows if they were built.
    """

    alias: int
    rows: int
    came: int
    held: tuple[int, ...]
    shared: bool


AGAIN = -1  # said of a visit: it is time to choose again


class Policy(Protocol):
    @property
    def glances(self) -> bool:
        """Whether it can make use of visits at which keys were only compared, in the place of samples."""
        ...

    def choose(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Destination: ...

    def learn(self, visit: Visit) -> int | None:
        """Take a visit into account. `AGAIN` if it was so unlike what was foretold that it is time to choose again;
        else of how many of the next visits of its signature there it need not be told."""
        ...

    def sample(self, signature: Signature, destination: Destination) -> int:
        """How many rows of a batch are to be tried where it was just sent, before it is sent anywhere; 0: none."""
        ...

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        """How many rows of a batch of so many are to be tried everywhere, to see whether some should go apart from the
        others; and what a row costs at each destination that comes into question. None where it is not worth a look."""
        ...

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        """The figures that a choice among these would rest on, for people; by destination, those that are known."""
        ...

    def builds(self, coming: Coming) -> bool:
        """Whether rows are built that need not be."""
        ...
