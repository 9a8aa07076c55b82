"""Lookups that are sent for the sake of partial answers alone.

A row that waits at a stalled source goes nowhere else in the eddy, so nobody asks the other sources on its account.
Here they are asked: for the same bindings, in the same way, as the query would ask if the stalled source had a match.
It is an account of its own: what comes of a lookup is nothing to the query until it asks for it too, and then it is
there, or under way and the query's own from then on. Such lookups stand behind all others in a queue and are few at a
time, and what is under way is called back when the stall is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mediator.binding.model import Provider
from mediator.eddy.asking import Asking
from mediator.eddy.feeding import fed
from mediator.eddy.run import Run
from mediator.flow.batch import Batch
from mediator.flow.events import Ask, Cancel, Command
from mediator.state.coverage import Entry, Known

URGENCY = -1.0  # less than that of any lookup of a query
_AT_ONCE = 4  # lookups of one relation
_WAITING = 1 << 16  # rows


class OwnAccount(Asking):
    """What was asked for partial answers. It gives nothing up that the query relies on."""

    def _replace(self, ask: Ask, relying: Sequence[int]) -> bool:
        return False

    def stop(self) -> None:
        """Nothing more is wanted for now. What is called back may be asked for once more."""
        for opened in self._open.values():
            coverage = self._run.views[opened.ask.relation].coverage
            for binding in opened.left:
                coverage.note(opened.ask.bind_set, binding, Entry(Known.NOTHING))
        super().stop()

    def leave(self, ask: Ask) -> None:
        """The query asks for this itself: then it is not under way on this account any more."""
        wanted = set(ask.bindings)
        for opened in list(self._open.values()):
            over = tuple(b for b in opened.left if b in wanted)
            if over and (opened.ask.relation, opened.ask.bind_set) == (ask.relation, ask.bind_set):
                self.commands.append(Cancel(opened.ask.number, over))
                self._ended(opened, over)
                coverage = self._run.views[ask.relation].coverage
                for binding in over:
                    coverage.note(ask.bind_set, binding, Entry(Known.NOTHING))

    def commanded(self) -> list[Command]:
        """What is to be sent now."""
        commands, self.commands = self.commands, []
        return [replace(c, urgency=URGENCY) if isinstance(c, Ask) else c for c in commands]


class Ahead:
    def __init__(self, run: Run, account: OwnAccount, main: Run, asking: Asking) -> None:
        self._run = run
        self._account = account
        self._main = main
        self._asking = asking
        self._waiting: list[tuple[Batch, Provider]] = []
        self._rows = 0

    def consider(self, batch: Batch, alias: int) -> None:
        """The batch has met what is there of an alias. What else there may be is asked for when it can be."""
        provider = self._asking.chosen[alias]
        if not provider.depends or provider.depends & ~batch.signature.spanned or self._rows >= _WAITING:
            return
        wanted = self._unasked(batch, provider)
        if len(wanted):
            self._waiting.append((batch.take(wanted), provider))
            self._rows += len(wanted)

    def send(self) -> None:
        """Ask for as much as may be under way."""
        under_way = self._account.under_way
        kept: list[tuple[Batch, Provider]] = []
        for batch, provider in self._waiting:
            name = self._run.block.aliases[provider.alias].relation.name
            rest: Batch | None = batch
            while rest is not None and (room := _AT_ONCE - under_way.get(name, 0)) > 0:
                some, rest = rest.take(slice(0, room)), _after(rest, room)
                wanted = self._unasked(some, provider)
                if len(wanted):
                    self._account.look_up(some.take(wanted), provider)
                    under_way = self._account.under_way
            if rest is not None:
                kept.append((rest, provider))
        self._waiting = kept
        self._rows = sum(len(batch) for batch, _ in kept)

    def forget(self) -> None:
        """Nothing more is wanted."""
        self._waiting.clear()
        self._rows = 0

    @property
    def can_send(self) -> bool:
        under_way = self._account.under_way if self._waiting else {}
        names = {self._run.block.aliases[p.alias].relation.name for _, p in self._waiting}
        return any(under_way.get(name, 0) < _AT_ONCE for name in names)

    def _unasked(self, batch: Batch, provider: Provider) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Which rows bind what neither the query nor anybody here has asked for."""
        keys = fed(self._run, batch, provider)
        wanted = keys.whole().copy()  # it may be the column's own
        for run in (self._main, self._run):
            coverage = run.view(provider.alias).coverage
            if coverage.whole:
                wanted = np.zeros(len(batch), np.bool_)
            wanted &= coverage.states(provider.bind_set, keys) == Known.NOTHING
        return np.flatnonzero(wanted)


def _after(batch: Batch, count: int) -> Batch | None:
    return batch.take(slice(count, None)) if len(batch) > count else None
