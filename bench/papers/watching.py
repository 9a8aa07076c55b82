"""What a run's batches did, step by step: how many rows went where, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import thread_time
from typing import NamedTuple

from mediator.eddy.decisions import Watch
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policy import Coming, Policy, Situation, Visit
from mediator.flow.batch import Signature


class Step(NamedTuple):
    """A visit, and in which round of arrivals it was."""

    now: int
    signature: Signature
    destination: Destination
    rows_in: int
    rows_out: int
    seconds: float


class Eyes:
    """Looks over the shoulder of a block's policy. `now` is the round of arrivals, as the feeder says it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.now = 0
        self.deciding = 0.0  # seconds that the policy took for itself

    def watch(self, block: str) -> Watch:
        """For `Stages`."""
        return Watch(block, lambda decision: None, lambda policy: Watched(policy, self))

    def saw(self, visit: Visit) -> None:
        """A batch has been somewhere."""
        step = Step(
            self.now, visit.signature, visit.destination, visit.rows_in, visit.rows_out, visit.seconds
        )
        self.steps.append(step)


class Watched:
    """A policy whose every visit is seen, and which is otherwise the one that it was made of."""

    def __init__(self, policy: Policy, eyes: Eyes) -> None:
        self._policy = policy
        self._eyes = eyes
        self._unheard: dict[tuple[Signature, Destination], int] = defaultdict(int)

    @property
    def glances(self) -> bool:
        """As its policy does."""
        return self._policy.glances

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        with self._timed():
            return self._policy.choose(signature, legal, situation)

    def learn(self, visit: Visit) -> int | None:
        """Every visit is seen, and those that the policy did not want to be told of are kept from it here."""
        self._eyes.saw(visit)
        there = visit.signature, visit.destination
        if self._unheard[there]:
            self._unheard[there] -= 1
            return 0
        with self._timed():
            said = self._policy.learn(visit)
        self._unheard[there] = max(0, said or 0)
        return min(0, said or 0)

    def sample(self, signature: Signature, destination: Destination) -> int:
        with self._timed():
            return self._policy.sample(signature, destination)

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        with self._timed():
            return self._policy.survey(signature, legal, rows)

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        return self._policy.why(signature, legal, situation)

    def builds(self, coming: Coming) -> bool:
        return self._policy.builds(coming)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = thread_time()
        try:
            yield
        finally:
            self._eyes.deciding += thread_time() - began


def work(steps: Iterable[Step]) -> int:
    """Rows probed with, and rows found: a measure of routes alone, which no clock has a part in."""
    return sum(s.rows_in + s.rows_out for s in steps if isinstance(s.destination, Probe))


def shares(
    steps: Iterable[Step], rounds: int, parts: int = 4, most: int | None = None
) -> dict[str, list[str]]:
    """Per signature where its rows went, part by part of the run: `2 80 % x0.5 of 100` is 80 rows to alias 2, where
    each found half a row. Only the signatures with the `most` rows, if that is said."""
    rows: dict[Signature, list[dict[Destination, list[int]]]] = defaultdict(
        lambda: [defaultdict(lambda: [0, 0]) for _ in range(parts)]
    )
    for step in steps:
        if isinstance(step.destination, Probe):
            there = rows[step.signature][min(parts - 1, step.now * parts // max(1, rounds))][step.destination]
            there[0] += step.rows_in
            there[1] += step.rows_out
    largest = sorted(rows.items(), key=lambda item: -_moved(item[1]))[:most]
    return {named(signature): [_said(part) for part in of] for signature, of in sorted(largest, key=_width)}


def _moved(parts: Iterable[Mapping[Destination, Sequence[int]]]) -> int:
    return sum(sum(there) for part in parts for there in part.values())


def _width(item: tuple[Signature, object]) -> tuple[int, Signature]:
    return item[0].spanned.bit_count(), item[0]


def _said(part: Mapping[Destination, Sequence[int]]) -> str:
    all_rows = sum(r for r, _ in part.values()) or 1
    said = [
        f"{d.alias} {100 * r / all_rows:.0f} % x{out / r if r else 0:.2f} of {all_rows}"
        for d, (r, out) in sorted(part.items())
        if isinstance(d, Probe)
    ]
    return ", ".join(said) or "-"


def named(signature: Signature) -> str:
    """The aliases it spans."""
    spanned = "".join(str(a) for a in range(signature.spanned.bit_length()) if signature.spanned >> a & 1)
    return f"{spanned}/{signature.part}" if signature.part else spanned
