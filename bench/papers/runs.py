"""One run of a query by one policy: how long it took, what it found, and where its rows went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from mediator import assembly
from mediator.assembly import House, Settings
from mediator.binding.model import Verdict
from mediator.eddy.destinations import Destination
from mediator.eddy.eddy import Eddy
from mediator.eddy.flows import Flows
from mediator.eddy.policy import Policy
from mediator.flow.batch import Signature
from mediator.query.model import Query
from mediator.stages import Stages

Look = Callable[[Eddy], None]


@dataclass(slots=True)
class Run:
    """What one contestant did in one round."""

    seconds: float
    answers: int
    total: int  # over all answers, in whatever order they came
    flows: Flows = field(repr=False)
    curve: list[tuple[float, int]] = field(repr=False)  # (seconds, answers that came)
    asked: dict[str, int] = field(default_factory=dict)  # lookups, by relation
    rounds: list[float] = field(default_factory=list, repr=False)  # when each round came, in seconds
    served: list[tuple[float, float]] = field(
        default_factory=list, repr=False
    )  # those answered so far, over seconds

    @classmethod
    def of(
        cls,
        seconds: float,
        answers: Sequence[pa.RecordBatch],
        eddy: Eddy,
        curve: list[tuple[float, int]],
        asked: dict[str, int],
    ) -> Run:
        count = sum(b.num_rows for b in answers)
        return cls(seconds, count, checksum(answers), eddy.routing.flows, curve, asked)

    def share(self, signature: Signature, destination: Destination) -> float:
        """Of the rows of a signature, how many were sent to one destination."""
        here, there = sent(self.flows, signature, destination)
        return there / here if here else 0.0

    def results(self) -> list[tuple[float, float]]:
        """Answers so far, over seconds."""
        points, total = [(0.0, 0.0)], 0
        for at, rows in self.curve:
            total += rows
            points.append((at, float(total)))
        return [*points, (self.seconds, float(total))]


class Runs(Protocol):
    """A query that can be run again and again, by any policy.

    A policy may stand `instead` of the one that the settings name; `after` each batch or round that came somebody may
    have a look.
    """

    def run(self, settings: Settings, instead: Policy | None = None, after: Look | None = None) -> Run: ...


def sent(flows: Flows, signature: Signature, destination: Destination) -> tuple[int, int]:
    """How many rows of a signature, in whatever part, were sent anywhere; and how many to one destination."""
    here = there = 0
    for known in flows.signatures():
        if known._replace(part=0) == signature:
            for where, flow in flows.of(known).items():
                here += flow.rows
                there += flow.rows if where == destination else 0
    return here, there


def stages_of(
    query: Query, verdicts: Mapping[str, Verdict], house: House, settings: Settings, instead: Policy | None
) -> Stages:
    """A query of one block that has asked nothing yet, routed as the settings say or by another policy `instead`."""
    if instead is None:
        return Stages(query, verdicts, house, settings)
    # Not by way of a watch: the engine would put its decisions into words, which takes time that a rival has to pay.
    with patch.object(assembly, "policy_of", lambda *_: instead):
        return Stages(query, verdicts, house, settings)


def checksum(answers: Sequence[pa.RecordBatch]) -> int:
    """Over all values, each weighed by those beside it in its row, so that the order of rows plays no part."""
    total = 0
    for batch in answers:
        mixed = np.zeros(batch.num_rows, np.uint64)
        for column in batch.columns:
            mixed = mixed * np.uint64(1_000_003) + column.to_numpy(zero_copy_only=False).astype(np.uint64)
        mixed ^= mixed >> np.uint64(17)
        total += int(mixed.sum(dtype=np.uint64))
    return total % (1 << 64)
