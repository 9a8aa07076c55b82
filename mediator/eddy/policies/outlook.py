"""What lies ahead of a batch: the work from here to the answer, by every step that it could take.

Of a signature it is worked out once what a row and what a visit of it cost to the end, by the cheapest way; that holds
for the next few choices, since statistics seldom move far between two of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mediator.eddy.policies.expectation import Expectation
from mediator.eddy.policies.lattice import Lattice, Node, Step
from mediator.eddy.policy import Situation

_FRESH = 16  # choices for which what was worked out holds
_NEVER = -1_000
_FAR = 16.0  # times as many rows: not what it was worked out for
_SHORT = 1  # aliases still missing up to which there is no more to it than looking
_DEEP, _WIDE = 6, 3  # aliases still missing above which only the best step, or two, are followed
_HORIZON = (
    6  # aliases that are looked ahead where nothing is known: each more is looked for among all that are left
)
_UNKNOWN = 1.0  # matches of a row, where nothing was seen of them
_BETWEEN = 5e-5  # seconds that go by between two visits
_EARLY, _SELDOM = 8, 8  # choices: what is usual is found out by the first ones, and changes slowly then
_ROW = 5e-9  # seconds that a row takes, before any has been probed with
_FEWER = 0.05  # rows that are expected: none, most likely
_INDEXED = 4.0  # times what a row usually takes: to take it into an index


class Outlook:
    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        self._remote: Sequence[int] = ()  # aliases whose rows are looked up
        self._plain = not lattice.selects
        self._choice = 0
        self._seen: Sequence[int] = ()
        self._behind: Sequence[int] = ()
        self._waits: Sequence[float] = ()
        self._finds: Sequence[float] = ()
        # Seconds that a visit usually takes, and each row in or out.
        self._fixed, self.hop, self.row = 0.0, _BETWEEN, _ROW

    def begin(self, usual: Expectation, situation: Situation) -> None:
        """Another choice is to be made."""
        self._choice += 1
        self._seen = situation.seen
        self._remote = situation.remote
        self._plain = not self._remote and not self._lattice.selects
        self._behind, self._waits, self._finds = situation.behind, situation.waits, situation.finds
        self._fixed, self.row = usual.fixed, usual.slope or _ROW
        self.hop = self._fixed + _BETWEEN
        if self._choice < _EARLY or not self._choice % _SELDOM:
            self._lattice.settle(self._fixed, self.row)

    def moved(self) -> None:
        """Something is not what it was: nothing that was worked out holds."""
        self._choice += _FRESH + 1

    def cheapest(self, steps: Sequence[Step], rows: float, came: float) -> tuple[Step, float]:
        """By which of these so many rows get to the end in the fewest seconds, and in how many."""
        best, least = steps[0], float("inf")
        for step in steps:
            if self.first(step, rows) < least:
                seconds = self.through(step, rows, came)
                if seconds < least:
                    best, least = step, seconds
        return best, least

    def through(self, step: Step, rows: float, came: float) -> float:
        """Seconds from here to the end that so many rows take by way of this step, `came` having come by before."""
        each, visit = self._by(step, rows)
        return rows * each + visit + self.indexing(step) * rows / (rows + came)

    def first(self, step: Step, rows: float) -> float:
        """Seconds of this step alone, should nothing come of it."""
        return self.hop + rows * self.row * step.cost.times

    def indexing(self, step: Step) -> float:
        """Seconds until the rows there can be probed. Worth it for as many rows as there have been, it is supposed."""
        return self.taking_in(step.alias)

    def taking_in(self, alias: int) -> float:
        """Seconds until what has come of an alias can be probed; no alias is a predicate's."""
        return self._behind[alias] * _INDEXED * self.row if alias >= 0 and self._behind else 0.0

    def fan_out(self, step: Step) -> float | None:
        """Rows that come of one, where that is known; where there is nobody to meet it is."""
        share, alias = step.share, step.alias
        if alias >= 0:
            seen = self._seen[alias]
            return (None if share is None else share * seen) if seen else 0.0
        return None if share is None else min(1.0, share)

    def remote(self, step: Step) -> bool:
        return step.alias in self._remote

    def nearest(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Those for which nothing is asked of a site, where there are any."""
        if not self._remote:
            return steps
        return [s for s in steps if s.alias not in self._remote] or steps

    def _by(self, step: Step, rows: float) -> tuple[float, float]:
        """Seconds to the end by way of this step: of each row, and of the visits, however many rows."""
        if step.alias in self._remote:
            each, visit = self._ahead(step.after, rows)
            known = step.alias < len(self._waits)
            finds = min(1.0, self._finds[step.alias]) if known else 1.0
            return (self._waits[step.alias] if known else 0.0) + finds * each, self.hop + visit
        fan_out = self.fan_out(step)
        if fan_out is None:
            fan_out = _UNKNOWN
        cost = self.row * step.cost.times * (1.0 + fan_out)
        found = rows * fan_out
        if found < _FEWER:
            return cost, self.hop
        each, visit = self._ahead(step.after, found)
        return cost + fan_out * each, self.hop + min(1.0, found) * visit

    def _ahead(self, node: Node, rows: float) -> tuple[float, float]:
        """The same from a signature on, by the cheapest way."""
        fresh = self._choice - node.choice <= _FRESH
        if fresh and rows <= _FAR * node.rows and node.rows <= _FAR * rows:
            return node.each, node.visit
        node.choice, node.rows, node.each, node.visit = self._choice, rows, 0.0, 0.0
        if not (node.taken or node.steps) and self._plain and node.missing > _SHORT:
            node.each, node.visit = self._unseen(node, rows)
            return node.each, node.visit
        least = float("inf")
        steps = self.nearest(list(self._lattice.steps(node).values()))
        if self._remote and steps and self.remote(steps[0]):
            node.choice = _NEVER  # what a lookup takes may be another the next time
        for step in self._worth(node, steps):
            if self.first(step, rows) >= least:
                continue
            each, visit = self._by(step, rows)
            if rows * each + visit < least:
                least, node.each, node.visit = rows * each + visit, each, visit
        return node.each, node.visit

    def _unseen(self, node: Node, rows: float) -> tuple[float, float]:
        """The same from a signature that no batch has had: nothing is known of what predicates do together there, so
        the destinations are taken in the order of their ranks."""
        spanned, left = node.signature.spanned, list(self._lattice.missing(node))
        each = visit = 0.0
        there = weight = 1.0  # rows of each that sets out, and the chance that there is any
        nearer = max(0, len(left) - _HORIZON)
        while len(left) > nearer and rows * there >= _FEWER:
            best, fewest, cost = left[0], float("inf"), 1.0
            matches = _UNKNOWN
            for alias in left:
                link = self._lattice.link(spanned, alias)
                if link is not None:
                    share = link.share
                    fan_out = _UNKNOWN if share is None else share * self._seen[alias]
                    rank = (fan_out - 1.0) / link.cost.times
                    if rank < fewest:
                        best, fewest, cost, matches = alias, rank, link.cost.times, fan_out
            each += there * self.row * cost * (1.0 + matches)
            visit += weight * self.hop
            there *= matches
            weight = min(weight, rows * there)
            spanned |= 1 << best
            left.remove(best)
        return each, visit

    def _worth(self, node: Node, steps: Sequence[Step]) -> Sequence[Step]:
        """The steps worth following where there are too many to follow all: those of the least rank."""
        ahead = max(node.missing, len(steps))  # costly predicates are steps as well
        if ahead <= _WIDE or len(steps) < 3:
            return steps
        return sorted(steps, key=self._rank)[: 1 if ahead > _DEEP else 2]

    def _rank(self, step: Step) -> float:
        fan_out = self.fan_out(step)
        return ((_UNKNOWN if fan_out is None else fan_out) - 1.0) / step.cost.times
