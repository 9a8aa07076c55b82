"""Where a batch can go next."""

from __future__ import annotations

from typing import NamedTuple


class Probe(NamedTuple):
    """To the SteM of an alias, to be widened by its matches."""

    alias: int


class Select(NamedTuple):
    """To a costly predicate."""

    predicate: int


class LookUp(NamedTuple):
    """To an access module of the batch's probe-completion alias: by the number of one of its providers."""

    alias: int
    provider: int


class Park(NamedTuple):
    """Nowhere: its rows stay built, and what arrives for this alias later will find them."""

    alias: int


class Leave(NamedTuple):
    """Out: it is an answer."""


Destination = Probe | Select | LookUp | Park | Leave
