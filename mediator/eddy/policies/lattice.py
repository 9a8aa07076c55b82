"""The signatures that batches of a block can come to have, and the steps from one to the next, with what was seen of
each.

Made as they are needed. A step from a signature that no batch took there is judged by what the same predicates brought
elsewhere, as if predicates had nothing to do with each other; once it was taken, by itself: what is correlated shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mediator.eddy.constraints import Graph
from mediator.eddy.destinations import Destination, Probe, Select
from mediator.eddy.policies.prior import NO_PRIOR, Prior
from mediator.eddy.policies.ratio import Ratio
from mediator.eddy.policy import Situation
from mediator.flow.batch import Signature

_SURVEY = 2_000  # rows: fewer are not worth a look at what tells them apart

_LIKE = 4.0  # times as many rows or as few
_BEHIND = 2_048  # rows that an index has to take in: worth a thought

Legal = Callable[[Signature], Sequence[Destination]]


class Link:
    """What the predicates between some aliases and one more bring, from wherever they lead there."""

    __slots__ = ("cost", "shared", "singles")

    def __init__(self, shared: Ratio, singles: tuple[tuple[Ratio, ...], ...]) -> None:
        self.shared = shared  # rows found for each pair of rows, or rows that pass for each
        # Of each of the predicates alone; where that is unknown, what comes near it: in a class of equal columns what
        # each other column by itself brought.
        self.singles = singles
        self.cost = Cost()

    @property
    def share(self) -> float | None:
        """Rows for each pair, by the best that is known; none where nothing is."""
        if self.shared.known:
            return self.shared.value
        together = 1.0
        for near in self.singles:
            for ratio in near:
                if ratio.known:
                    together *= ratio.value
                    break
            else:
                return None
        return together if self.singles else None


class Step:
    """From one signature by way of one destination."""

    __slots__ = (
        "after", "alias", "at", "before", "calm", "cost", "destination", "link", "own", "parent", "shared",
        "tries",
    )  # fmt: skip

    def __init__(
        self, before: Node, destination: Destination, after: Node, link: Link, parent: Step | None
    ) -> None:
        self.before = before
        self.destination = destination
        self.alias = destination.alias if isinstance(destination, Probe) else -1
        self.after = after
        self.own = Ratio()  # rows found for each pair of rows, or rows that pass for each
        self.link = link
        self.shared = link.shared
        self.cost = link.cost
        self.parent = parent  # the same step of all parts together
        self.tries = 0
        self.calm = 0  # visits since it last brought something new
        self.at = float("-inf")  # seconds of work that had been done when it was last looked at

    @property
    def share(self) -> float | None:
        """Rows for each pair, by the best that is known; none where nothing is."""
        if self.own.known:
            return self.own.value
        if self.parent is not None and self.parent.own.known:
            return self.parent.own.value
        return self.link.share


class Cost:
    """What a destination costs by some predicates, compared with what is usual for so many rows; 1 until there is
    reason to think otherwise."""

    __slots__ = ("_rows", "_seconds", "_visits", "times")

    _KEEP = 0.9
    _DOUBT = 5e-4  # seconds of work that are believed half: a few rows cost more each than many do

    def __init__(self) -> None:
        self._visits = self._rows = self._seconds = 0.0
        self.times = 1.0

    def add(self, rows: int, seconds: float) -> None:
        """A visit by which so many rows went in and came out."""
        self._visits = self._KEEP * self._visits + 1.0
        self._rows = self._KEEP * self._rows + rows
        self._seconds = self._KEEP * self._seconds + seconds

    def settle(self, fixed: float, row: float) -> None:
        """A visit usually takes so long, and each row."""
        if self._visits:
            usual = self._visits * fixed + self._rows * row
            believed = self._seconds / (self._seconds + self._DOUBT)
            self.times = 1.0 + believed * (self._seconds / usual - 1.0)


class Held(NamedTuple):
    """A choice that holds until so much work has been done: for about so many rows, when so many aliases had none."""

    alias: int
    destination: Destination
    until: float
    rows: float
    bare: int

    def still(self, work: float, situation: Situation) -> bool:
        """Whether nothing to speak of has changed."""
        return (
            work < self.until
            and situation.rows <= _LIKE * self.rows <= _LIKE**2 * situation.rows
            and situation.seen.count(0) == self.bare  # else there is somebody to be met where nobody was
            and (self.alias < 0 or not situation.behind or situation.behind[self.alias] < _BEHIND)
        )


class Node:
    """A signature, and the steps that lead on from it. A visit of it costs `visit` seconds from here to the end, and
    each row `each`: worked out at some choice, for about so many rows."""

    __slots__ = (
        "came", "choice", "each", "held", "missing", "rows", "signature", "steps", "survey_at", "taken", "visit",
    )  # fmt: skip

    def __init__(self, signature: Signature, missing: int) -> None:
        self.signature = signature
        self.missing = missing  # aliases that it does not span
        self.steps: dict[Destination, Step] | None = None
        self.choice = -1_000
        self.rows = self.each = self.visit = 0.0
        self.held: Held | None = None
        self.came = 0  # rows that have come by
        self.taken = False  # whether a batch has been on any of its steps
        self.survey_at = (
            _SURVEY  # when so many have, it may be looked whether they should all go the same way
        )


class Lattice:
    def __init__(self, graph: Graph, legal: Legal, prior: Prior = NO_PRIOR) -> None:
        self._graph = graph
        self._prior = prior
        self._legal = legal
        self._nodes: dict[Signature, Node] = {}
        self._made: dict[tuple[Signature, Destination], Step] = {}
        self._shared: dict[tuple[int, int], Ratio] = {}
        self._selected: dict[Destination, Link] = {}
        self._links: dict[tuple[int, int], Link | None] = {}
        self._near = [_near(graph, alias) for alias in range(graph.size)]

    @property
    def selects(self) -> bool:
        """Whether there are predicates to be tested beside the probes."""
        return bool(self._graph.costly)

    def missing(self, node: Node) -> Sequence[int]:
        """The aliases that a signature does not span."""
        spanned = node.signature.spanned
        return [alias for alias in range(self._graph.size) if not spanned >> alias & 1]

    def node(self, signature: Signature) -> Node:
        node = self._nodes.get(signature)
        if node is None:
            missing = self._graph.size - signature.spanned.bit_count()
            node = self._nodes[signature] = Node(signature, missing)
        return node

    def steps(self, node: Node) -> dict[Destination, Step]:
        if node.steps is None:
            node.steps = {}
            for destination in self._legal(node.signature):
                if isinstance(destination, Probe | Select):
                    node.steps[destination] = self.step(node, destination)
        return node.steps

    def step(self, node: Node, destination: Destination) -> Step:
        """One step, also where it was not thought to be legal: which steps are may change while a query runs."""
        signature = node.signature
        step = self._made.get((signature, destination))
        if step is None:
            if isinstance(destination, Probe):
                link = self.link(signature.spanned, destination.alias) or Link(Ratio(), ())
            else:
                link = self._selected.setdefault(destination, Link(Ratio(), ()))
            whole = self.node(signature._replace(part=0)) if signature.part else None
            step = self._made[signature, destination] = Step(
                node,
                destination,
                self.node(_after(signature, destination)),
                link,
                None if whole is None else self.step(whole, destination),
            )
            if node.steps is not None:
                node.steps[destination] = step
        return step

    def settle(self, fixed: float, row: float) -> None:
        """What is usual is known better now."""
        for link in (*self._links.values(), *self._selected.values()):
            if link is not None:
                link.cost.settle(fixed, row)

    def known(self, node: Node, destination: Destination) -> Step | Link | None:
        """What tells best what comes of going there, without making anything; none where nothing does."""
        step = self._made.get((node.signature, destination))
        if step is not None or not isinstance(destination, Probe):
            return step
        return self.link(node.signature.spanned, destination.alias)

    def taken(self, signature: Signature, destination: Destination) -> Step | None:
        """The step that a visit was; none where it led nowhere."""
        step = self._made.get((signature, destination))
        if step is None and isinstance(destination, Probe | Select):
            step = self.step(self.node(signature), destination)
        if step is not None:
            step.before.taken = True
        return step

    def link(self, spanned: int, alias: int) -> Link | None:
        """What ties these aliases to one more; none where nothing does. Those that it is not tied to don't count."""
        key = spanned & self._near[alias], alias
        if key in self._links:
            return self._links[key]
        found = self._links[key] = self._linked(*key)
        return found

    def _linked(self, spanned: int, alias: int) -> Link | None:
        bit, found, all_ends = 1 << alias, 0, 0
        singles = []
        for number, (mask, pairwise) in enumerate(zip(self._graph.ties, self._graph.pairwise, strict=True)):
            if mask & bit and mask & spanned and (pairwise or not mask & ~(spanned | bit)):
                ends = mask & (spanned | bit)
                tie = 1 << number
                others = [1 << a for a in range(self._graph.size) if spanned & mask & 1 << a]
                pairs = [self._ratio(tie, bit | other) for other in others] if len(others) > 1 else []
                singles.append((self._ratio(tie, ends), *pairs))
                found |= 1 << number
                all_ends |= ends
        return Link(self._ratio(found, all_ends), tuple(singles)) if found else None

    def _ratio(self, ties: int, ends: int) -> Ratio:
        """Of these predicates between these aliases. Of how many pairs they are true does not depend on which alias it
        is that probes the other."""
        ratio = self._shared.get((ties, ends))
        if ratio is None:
            ratio = self._shared[ties, ends] = Ratio()
            if (share := self._prior.get((ties, ends))) is not None:
                ratio.believe(share)
        return ratio


def _after(signature: Signature, destination: Destination) -> Signature:
    if isinstance(destination, Select):
        return signature._replace(passed=signature.passed | 1 << destination.predicate)
    assert isinstance(destination, Probe)
    return signature._replace(spanned=signature.spanned | 1 << destination.alias)


def _near(graph: Graph, alias: int) -> int:
    """The aliases that it is tied to."""
    near = 0
    for mask in graph.ties:
        if mask >> alias & 1:
            near |= mask
    return near & ~(1 << alias)
