"""Decisions that change, and why: what a policy's figures were when it last decided, and which of them has moved.

A policy is asked for its figures when its decision has changed and somebody looks on, and at no other time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mediator.clock import Clock
from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Policy, Situation
from mediator.eddy.wording import Wording, number, said
from mediator.flow.batch import Signature

LAST = 32  # decisions that are kept for a look at a running query
# Figures that are made of others: they say that something moved, not what.
_SCORES = ("rank", "ms to the end", "benefit by cost", "odds")
_MOVED = 0.01  # of a figure, below which it has not

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Decision:
    """From now on batches of a signature go elsewhere than before."""

    number: int  # of the block's, from 1
    at: float  # seconds after the query began
    block: str
    signature: str  # in words; so are the destinations
    spanned: tuple[str, ...]
    passed: tuple[str, ...]
    completing: str
    part: int
    rows: int  # of the batch that it was made for
    before: str | None  # none where there was nothing to decide by
    now: str
    figures: Mapping[str, Figures]  # what the choice rests on, by destination
    earlier: Mapping[str, Figures]  # what the last one did
    why: str

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "number": self.number,
            "at": self.at,
            "block": self.block,
            "signature": self.signature,
            "spanned": list(self.spanned),
            "passed": list(self.passed),
            "completing": self.completing or None,
            "part": self.part,
            "rows": self.rows,
            "before": self.before,
            "now": self.now,
            "figures": {d: plain(f) for d, f in self.figures.items()},
            "earlier": {d: plain(f) for d, f in self.earlier.items()},
            "why": self.why,
        }

    def line(self) -> str:
        """`R: T before S, since S.b = T.b brings 4.1 rows for each (was 0.3)`."""
        return f"{self.signature}: {self.why}"


@dataclass(frozen=True)
class Watch:
    """Who looks on while a block is routed. `decided` is called in the middle of a turn: it must not take long, nor
    raise. What `around` makes of the policy stands in its place."""

    block: str
    decided: Callable[[Decision], None]
    around: Callable[[Policy], Policy] = field(default=lambda policy: policy)


@dataclass(slots=True)
class _Last:
    """What was decided last for a signature, and what it rested on."""

    chosen: Destination
    figures: Mapping[Destination, Figures]


class Decisions:
    """A block's, as its policy makes them."""

    def __init__(self, watch: Watch, policy: Policy, wording: Wording, clock: Clock) -> None:
        self.recent: deque[Decision] = deque(maxlen=LAST)
        self.count = 0
        self._watch = watch
        self._policy = policy
        self._wording = wording
        self._clock = clock
        self._began = clock()
        self._last: dict[Signature, _Last] = {}

    def chose(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation, chosen: Destination
    ) -> None:
        """The policy has just said so. That is news where it said something else before."""
        last = self._last.get(signature)
        if last is not None and last.chosen == chosen:
            return
        figures = {d: dict(f) for d, f in self._policy.why(signature, legal, situation).items()}
        reason = Reason(self._wording, signature, legal, chosen, figures, last)
        self._last[signature] = _Last(chosen, figures)
        self.count += 1
        words = self._wording
        decision = Decision(
            number=self.count,
            at=self._clock() - self._began,
            block=self._watch.block,
            signature=words.signature(signature),
            spanned=words.aliases(signature.spanned),
            passed=words.predicates(signature.passed),
            completing=words.completing(signature),
            part=signature.part,
            rows=situation.rows,
            before=None if last is None else words.destination(last.chosen),
            now=words.destination(chosen),
            figures={words.destination(d): f for d, f in figures.items()},
            earlier={} if last is None else {words.destination(d): f for d, f in last.figures.items()},
            why=reason.sentence(),
        )
        self.recent.append(decision)
        self._watch.decided(decision)

    def figures(self, signature: Signature) -> Mapping[Destination, Figures]:
        """What the last decision for it went by."""
        last = self._last.get(signature)
        return last.figures if last is not None else {}


class Reason:
    """One sentence that names the figure which has moved a decision."""

    def __init__(
        self,
        wording: Wording,
        signature: Signature,
        legal: Sequence[Destination],
        chosen: Destination,
        figures: Mapping[Destination, Figures],
        last: _Last | None = None,
    ) -> None:
        self._words = wording
        self._signature = signature
        self._legal = legal
        self._chosen = chosen
        self._figures = figures
        self._last = last

    def sentence(self) -> str:
        now = self._words.destination(self._chosen)
        if self._last is None:
            return self._first(now)
        what = f"{now} before {self._words.destination(self._last.chosen)}"
        if self._last.chosen not in self._legal:
            return f"{what}, where nothing may go any more"
        if not self._figures:
            return f"{what}; the policy goes by no figures"
        if self._chosen not in self._figures:
            return f"{now} is tried: nothing is known of it yet"
        moved = self._moved(self._last)
        return f"{what} since {moved}" if moved else f"{what}; no figure has moved"

    def _first(self, now: str) -> str:
        others = [d for d in self._legal if d != self._chosen]
        rivals = " and ".join(map(self._words.destination, others))
        if not self._figures:
            return f"{now} before {rivals}, at first"
        if self._chosen not in self._figures:
            return f"{now} is tried before {rivals}: nothing is known of it yet"
        telling = self._telling()
        return f"{now} before {rivals} since {telling}" if telling else f"{now} before {rivals}, at first"

    def _telling(self) -> str:
        """The figure that sets the chosen one most apart from the others, for a first decision."""
        mine = self._figures[self._chosen]
        for primary in (True, False):
            apart = [
                (abs(_change(mine[name], other[name])), name, d)
                for d, other in self._figures.items()
                if d != self._chosen
                for name in mine
                if name in other and (name not in _SCORES) == primary
            ]
            if apart and max(apart, key=_first)[0] > _MOVED:
                _, name, other = max(apart, key=_first)
                return f"{self._say(self._chosen, name)}, and {self._say(other, name)}"
        return ""

    def _moved(self, last: _Last) -> str:
        """Of the figures of the two destinations that the decision is about the one that has changed most; failing
        that, of any."""
        about = [d for d in (self._chosen, last.chosen) if d in self._figures]
        others = [d for d in self._figures if d not in about]
        for some in (about, others):
            for primary in (True, False):
                found = list(self._changes(some, last, primary))
                if found:
                    _, destination, name, was = max(found, key=lambda change: change[0])
                    old = "not known" if was is None else number(was)
                    return f"{self._say(destination, name)} (was {old})"
        return ""

    def _changes(
        self, destinations: Sequence[Destination], last: _Last, primary: bool
    ) -> Iterator[tuple[float, Destination, str, float | None]]:
        for destination in destinations:
            before = last.figures.get(destination, {})
            for name, value in self._figures[destination].items():
                was = before.get(name)
                change = math.inf if was is None else abs(_change(value, was))
                if change > _MOVED and (name not in _SCORES) == primary:
                    yield change, destination, name, was

    def _say(self, destination: Destination, name: str) -> str:
        subject = self._words.subject(self._signature, destination)
        return f"{subject} {said(name, self._figures[destination][name])}"


def plain(figures: Figures) -> dict[str, float | None]:
    """Figures as JSON has numbers: what is infinite or none is null."""
    return {name: value if math.isfinite(value) else None for name, value in figures.items()}


def _first(found: tuple[float, str, Destination]) -> float:
    return found[0]


def _change(now: float, was: float) -> float:
    """How many times as much it is, as a logarithm. Figures that change sign have moved far."""
    if now == was:
        return 0.0
    if now * was <= 0.0 or not (math.isfinite(now) and math.isfinite(was)):
        return 1.0 + abs(now - was) if math.isfinite(now - was) else math.inf
    return math.log(abs(now) / abs(was))
