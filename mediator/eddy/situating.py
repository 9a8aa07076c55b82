"""What a policy is told about the moment at which it chooses."""

from __future__ import annotations

from collections.abc import Sequence

from mediator.eddy.asking import Asking
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policy import Situation
from mediator.eddy.probing import Probing
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Batch


class Situating:
    def __init__(self, probing: Probing, asking: Asking, unbuilt: Unbuilt, relations: Sequence[str]) -> None:
        """`relations` are the names of the aliases' relations."""
        self._probing = probing
        self._asking = asking
        self._unbuilt = unbuilt
        self._relations = relations

    def of(self, batch: Batch, legal: Sequence[Destination]) -> Situation:
        seen, spanned = self._unbuilt.meets(batch), batch.signature.spanned
        aliases = [where.alias for where in legal if isinstance(where, Probe)]
        behind = [0] * len(seen)
        for alias in aliases:
            behind[alias] = self._probing.behind(spanned, alias)
        chosen = self._asking.chosen
        remote = [alias for alias in aliases if chosen[alias].depends]
        if not remote:
            return Situation(len(batch), seen, tuple(behind))
        waits, finds = [0.0] * len(seen), [1.0] * len(seen)
        for alias in remote:
            pace = self._asking.pace.of(self._relations[alias])
            waits[alias], finds[alias] = pace.lookup, pace.finds
        return Situation(len(batch), seen, tuple(behind), tuple(waits), tuple(finds))

    def remote(self, where: Destination) -> bool:
        """Whether what is sent there may have to be looked up: how long that takes may change at any time."""
        return isinstance(where, Probe) and bool(self._asking.chosen[where.alias].depends)
