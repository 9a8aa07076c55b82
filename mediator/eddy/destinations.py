"""Where a batch can go next.

They are tuples, for the sake of speed, and tuples of one number are equal whatever they are called: `kind` tells apart
those that have no more than that.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Probe(NamedTuple):
    """To the SteM of an alias, to be widened by its matches."""

    alias: int
    kind: Literal["probe"] = "probe"


class Select(NamedTuple):
    """To a costly predicate."""

    predicate: int
    kind: Literal["select"] = "select"


class LookUp(NamedTuple):
    """To an access module of the batch's probe-completion alias: by the number of one of its providers."""

    alias: int
    provider: int


class Park(NamedTuple):
    """Nowhere: its rows stay built, and what arrives for this alias later will find them."""

    alias: int
    kind: Literal["park"] = "park"


class Hold(NamedTuple):
    """Nowhere yet: its rows stay built, and what they need of this alias is asked when nothing else can move."""

    alias: int
    kind: Literal["hold"] = "hold"


class Leave(NamedTuple):
    """Out: it is an answer."""


Destination = Probe | Select | LookUp | Park | Hold | Leave
