"""What a demo is, and where it is found.

A demo needs a web to ask, and the scripted one is built on top of this package. So it is not imported: it
announces itself through the entry point group `mediator.demo`, as any other package may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from api.exits import Mistake
from mediator.catalog.model import Catalog

GROUP = "mediator.demo"


class Served(Protocol):
    """Sites that can be asked now, and that know what they did."""

    @property
    def url(self) -> str: ...

    @property
    def catalog(self) -> Catalog: ...

    def faults(self, source: str) -> Mapping[str, int]:
        """How often a source failed so far, by kind of fault."""
        ...


@dataclass(frozen=True)
class Demo:
    """A query worth watching, and the sites that it asks."""

    title: str
    sites: Sequence[tuple[str, str]]  # relation, and what is hard about it
    sql: str
    catalog: Catalog  # at an address where nothing is, to be looked at
    serve: Callable[[], AbstractContextManager[Served]]
    rehearse: Callable[[], AbstractContextManager[Served]]  # the same sites, with little in them, and well
    built_in: Callable[[], AbstractContextManager[Catalog]]  # all that is built in, on a good day


def found_demo() -> Demo:
    """The demo that is installed."""
    for entry in entry_points(group=GROUP):
        demo: Demo = entry.load()()
        return demo
    raise Mistake(f"no demo is installed (nothing announces itself as {GROUP}): run `make setup`")
