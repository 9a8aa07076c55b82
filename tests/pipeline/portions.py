"""Askers that ask scripted sources instead of sites: what comes when, and what of it is written, is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan
from pipeline.spread.portion import Portion
from tests.any_route.sources import Sources


class _Later:
    to: Portion

    def __call__(self, event: object) -> None:
        self.to.deliver(event)  # type: ignore[arg-type]


def portions_of(plan: Plan, folder: Folder, sources: Sources) -> list[Portion]:
    """One for each asker."""
    found = []
    for number in range(plan.askers):
        deliver = _Later()
        deliver.to = Portion(plan, folder, number, lambda ask, to=deliver: sources.ask(ask, to))
        found.append(deliver.to)
    return found


def moved_on(portions: Sequence[Portion], sources: Sources, random: Random) -> None:
    """They look for what is to be asked, some of it is answered, and some of that is written."""
    for portion in portions:
        portion.take(portion.look())
    for _ in range(random.choice((1, 3, 30))):
        if sources.busy:
            sources.step()
    for portion in portions:
        if not sources.busy or random.random() < 0.3:
            portion.write(portion.due())
