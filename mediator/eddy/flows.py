"""What went where: per signature and destination the rows that were sent there, and what came of those visits."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Visit
from mediator.flow.batch import Signature

_UNLIKE = 4.0  # times as many rows or as few
_FEW = 30  # rows that are no surprise


@dataclass(slots=True)
class Flow:
    """Between one signature and one destination. What a probe met where nothing had arrived shows in `rows` alone."""

    batches: int = 0
    rows: int = 0
    visits: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    unheard: int = 0  # of the visits to come, so many are of no interest to the policy
    untold: int = 0  # visits since the policy was last told of one

    @property
    def fan_out(self) -> float | None:
        """Rows that came of each; none where nothing was measured."""
        return self.rows_out / self.rows_in if self.rows_in else None

    def like(self, visit: Visit) -> bool:
        """Whether as many rows came of a visit as of those before, give or take some times as many."""
        if not self.rows_in:
            return False
        usual = visit.rows_in * self.rows_out / self.rows_in
        return usual / _UNLIKE - _FEW <= visit.rows_out <= usual * _UNLIKE + _FEW

    @property
    def cost(self) -> float | None:
        """Seconds a row."""
        return self.seconds / self.rows_in if self.rows_in else None


class Flows:
    """They outlive what is legal: a destination that no batch may go to any more keeps what it was sent."""

    def __init__(self) -> None:
        self._flows: dict[Signature, dict[Destination, Flow]] = {}

    def of(self, signature: Signature) -> dict[Destination, Flow]:
        found = self._flows.get(signature)
        if found is None:
            found = self._flows[signature] = {}
        return found

    def sent(self, signature: Signature, destination: Destination, rows: int) -> None:
        """A batch of so many rows goes there."""
        flow = self._flow(signature, destination)
        flow.batches += 1
        flow.rows += rows

    def recalled(self, signature: Signature, destination: Destination, rows: int) -> None:
        """So many rows of a batch that was sent there go elsewhere after all."""
        self._flow(signature, destination).rows -= rows

    def learn(self, visit: Visit) -> tuple[Flow, bool]:
        """Count it; say where, and whether it was like those before."""
        flow = self._flow(visit.signature, visit.destination)
        like = flow.like(visit)
        flow.visits += 1
        flow.rows_in += visit.rows_in
        flow.rows_out += visit.rows_out
        flow.seconds += visit.seconds
        return flow, like

    def signatures(self) -> list[Signature]:
        """In the order in which they came up."""
        return list(self._flows)

    def _flow(self, signature: Signature, destination: Destination) -> Flow:
        flows = self.of(signature)
        flow = flows.get(destination)
        if flow is None:
            flow = flows[destination] = Flow()
        return flow
