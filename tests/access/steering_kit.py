"""What the tests of steering share: plays over a scripted network, and what was sent in which order."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from access_kit import (
    Scripted,
    asked_for,
)

from fixtures.virtual import run
from mediator.access import Access
from mediator.catalog.model import Catalog, Source
from mediator.flow.events import Urge

ONE = Source("site", concurrency=1)
NORTH, SOUTH = Source("north", concurrency=1), Source("south", concurrency=1)

Said = tuple[list[str], dict[str, float]]  # what is paused, and what is boosted


def played(network: Scripted, declared: Catalog, play: Callable[[Access], Coroutine[Any, Any, None]]) -> None:
    """Runs a play over a scripted network; nothing may be under way when it is over."""

    async def main() -> None:
        async with Access(declared, transport=network, random=Random(1)) as access:
            await play(access)
        assert not +network.inside

    run(main())


def order(network: Scripted) -> list[int]:
    return [k for _, _, request in network.sent for k in asked_for(request)]


def urge(number: int = 1, **urgencies: float) -> Urge:
    return Urge(number, {(int(k[1:]),): u for k, u in urgencies.items()})
