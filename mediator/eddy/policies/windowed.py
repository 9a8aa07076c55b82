"""Windowed lottery (Eddies, 2000): tickets that were earned in one window are drawn by in the next, and then forgotten.

What a destination earns goes into escrow. When a window ends, escrow becomes the bank, which draws are made by, and
starts again with nothing: whoever was rich long ago has to show it anew. A window is so many rows taken, by all
destinations together. A short one follows changes soon, and takes chance for a change; how long it should be is the
caller's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.tickets import Account, drawn, told
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.errors import MediatorError
from mediator.flow.batch import Signature

WINDOW = 4_096  # rows


class WindowedLottery(Usual):
    def __init__(self, random: Random, window: int = WINDOW, kept: float = float("inf")) -> None:
        if window < 1:
            raise MediatorError(f"A window of {window} rows never ends: it takes 1 or more")
        super().__init__(kept)
        self._random = random
        self._window = window
        self._left = window  # rows until it ends
        self._bank: dict[Destination, Account] = {}
        self._escrow: dict[Destination, Account] = {}

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return drawn(self._random, legal, self._accounts, situation)

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        return told(legal, self._accounts, situation)

    def learn(self, visit: Visit) -> None:
        self._escrow.setdefault(visit.destination, Account()).add(visit)
        self._left -= visit.rows_in
        if self._left <= 0:
            self._roll()

    @property
    def _accounts(self) -> dict[Destination, Account]:
        """The bank; in the first window, which has none, what is in escrow so far."""
        return self._bank or self._escrow

    def _roll(self) -> None:
        """The window ends. Those that took nothing in it are known, and have nothing."""
        idle = {d: Account() for d in self._bank if d not in self._escrow}
        self._bank, self._escrow = {**idle, **self._escrow}, {}
        self._left = self._window
