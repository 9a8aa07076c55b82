"""What a policy is told about the moment at which it chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mediator.binding.model import Provider
from mediator.eddy.asking import Asking
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policy import Situation
from mediator.eddy.probing import Probing
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Batch


class Situating:
    def __init__(
        self,
        probing: Probing,
        asking: Asking,
        unbuilt: Unbuilt,
        relations: Sequence[str],
        worth: Callable[[], Mapping[str, float]],
    ) -> None:
        """`relations` are the names of the aliases' relations; `worth` says which of those the user prefers."""
        self._probing = probing
        self._asking = asking
        self._unbuilt = unbuilt
        self._relations = relations
        self._worth = worth
        self._chosen: Sequence[Provider] = ()
        self._remote: tuple[int, ...] = ()

    def of(self, batch: Batch, legal: Sequence[Destination]) -> Situation:
        seen, spanned = self._unbuilt.meets(batch), batch.signature.spanned
        behind = [0] * len(seen)
        for where in legal:
            if isinstance(where, Probe):
                behind[where.alias] = self._probing.behind(spanned, where.alias)
        situation = Situation(len(batch), seen, tuple(behind), worth=self._preferred())
        return self._looked_up(situation) if self._aliases() else situation

    def remote(self, where: Destination) -> bool:
        """Whether what is sent there may have to be looked up: how long that takes may change at any time."""
        return isinstance(where, Probe) and where.alias in self._aliases()

    def _aliases(self) -> tuple[int, ...]:
        """Those whose rows are looked up, as things stand: another provider may have come to bring them."""
        chosen = self._asking.chosen
        if self._chosen is not chosen:
            self._chosen = chosen
            self._remote = tuple([provider.alias for provider in chosen if provider.depends])
        return self._remote

    def _looked_up(self, situation: Situation) -> Situation:
        waits, finds = [0.0] * len(situation.seen), [1.0] * len(situation.seen)
        for alias in self._remote:
            pace = self._asking.pace.of(self._relations[alias])
            waits[alias], finds[alias] = pace.lookup, pace.finds
        return situation._replace(remote=self._remote, waits=tuple(waits), finds=tuple(finds))

    def _preferred(self) -> tuple[float, ...]:
        worth = self._worth()
        return tuple([worth.get(name, 1.0) for name in self._relations]) if worth else ()
