"""What went where: per signature and destination the rows that were sent there, and what came of those visits."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Visit
from mediator.flow.batch import Signature


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

    @property
    def fan_out(self) -> float | None:
        """Rows that came of each; none where nothing was measured."""
        return self.rows_out / self.rows_in if self.rows_in else None

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

    def learn(self, visit: Visit) -> Flow:
        """Count it, and say where."""
        flow = self._flow(visit.signature, visit.destination)
        flow.visits += 1
        flow.rows_in += visit.rows_in
        flow.rows_out += visit.rows_out
        flow.seconds += visit.seconds
        return flow

    def signatures(self) -> list[Signature]:
        """In the order in which they came up."""
        return list(self._flows)

    def _flow(self, signature: Signature, destination: Destination) -> Flow:
        flows = self.of(signature)
        flow = flows.get(destination)
        if flow is None:
            flow = flows[destination] = Flow()
        return flow
