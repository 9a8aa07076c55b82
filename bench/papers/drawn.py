"""Random queries: paths, stars and cycles of 3 to 7 tables that arrive at their own rates, and whose joins are not what
they were a moment ago.

Every row of a table has, for each of its joins, a chance to have a key that occurs on the other side at all. That
chance may change in the course of the table (drift), and the rows that have it in one join tend to be those that have
it in another, or tend not to be (correlation). How many rows share a key is another matter: selective joins and
expanding ones, skewed or not, and with keys that wander through the domain as the table goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS = ("path", "star", "cycle")
_SIZES = (1_000, 100_000)
_BATCHES = (500, 8_000)
_MOST_BATCHES = 100  # of one table
_KEPT_BY_SELECTION = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class Edge:
    """A join of two tables on the column `j{number}` of both; `pairs` is how many pairs of rows were aimed at."""

    number: int
    left: int
    right: int
    pairs: float
    traits: str


@dataclass(frozen=True, slots=True)
class Pacing:
    """How a table arrives: from `delay` on for `lasts`, both in fractions of the run, in batches of so many rows."""

    delay: float
    lasts: float
    batch: int


@dataclass(frozen=True)
class Drawn:
    """A query, its tables, and how they arrive. `cuts` are selections: what `v` is less than."""

    seed: int
    kind: str
    tables: tuple[pa.Table, ...]
    edges: tuple[Edge, ...]
    pacing: tuple[Pacing, ...]
    cuts: tuple[int | None, ...]

    @property
    def size(self) -> int:
        """How many tables."""
        return len(self.tables)

    @property
    def sql(self) -> str:
        """The rows' numbers in every table: no answer is like another."""
        names = [f"t{n}" for n in range(self.size)]
        tests = [f"t{e.left}.j{e.number} = t{e.right}.j{e.number}" for e in self.edges]
        tests += [f"t{n}.v < {cut}" for n, cut in enumerate(self.cuts) if cut is not None]
        columns = ", ".join(f"{n}.k as k{n[1:]}" for n in names)
        return f"select {columns} from {', '.join(names)} where {' and '.join(tests)}"

    @property
    def rounds(self) -> list[list[tuple[str, pa.RecordBatch]]]:
        """The batches in the order in which they come, each in a round of its own."""
        timed = []
        for number, (table, pacing) in enumerate(zip(self.tables, self.pacing, strict=True)):
            batches = table.to_batches(max_chunksize=pacing.batch)
            timed += [
                (pacing.delay + pacing.lasts * (i + 1) / len(batches), number, batch)
                for i, batch in enumerate(batches)
            ]
        timed.sort(key=lambda t: t[:2])
        return [[(f"t{number}", batch)] for _, number, batch in timed]

    def said(self) -> dict[str, object]:
        """What it is like, for people."""
        return {
            "kind": self.kind,
            "rows": [t.num_rows for t in self.tables],
            "edges": [
                f"{e.left}-{e.right}: {e.pairs:.0f} pairs{e.traits and ', ' + e.traits}" for e in self.edges
            ],
            "arrival": [
                f"{c.delay:.2f}-{c.delay + c.lasts:.2f}, {c.batch} rows a batch" for c in self.pacing
            ],
            "selections": {n: f"v < {cut}" for n, cut in enumerate(self.cuts) if cut is not None},
        }


def drawn(seed: int, attempt: int = 0) -> Drawn:
    """The same one for the same arguments. An `attempt` draws anew where an earlier one was of no use."""
    random = np.random.default_rng([seed, attempt])
    kind = KINDS[int(random.integers(len(KINDS)))]
    size = int(random.integers(3, 8))
    rows = [round(_log(random, *_SIZES)) for _ in range(size)]
    latent = [random.random(n) for n in rows]
    columns: list[dict[str, Ints]] = [{"k": np.arange(n)} for n in rows]
    edges = []
    for number, (left, right) in enumerate(_pairs(kind, size)):
        edge, keys = _joined(random, number, (left, right), rows, latent)
        edges.append(edge)
        for end, of in zip((left, right), keys, strict=True):
            columns[end][f"j{number}"] = of
    cuts = [_selected(random, latent[n], columns[n]) for n in range(size)]
    batch = _log(random, *_BATCHES)
    return Drawn(
        seed, kind, tuple(pa.table(c).combine_chunks() for c in columns), tuple(edges),
        tuple(_paced(random, n, batch) for n in rows), tuple(cuts),
    )  # fmt: skip


def _pairs(kind: str, size: int) -> list[tuple[int, int]]:
    if kind == "star":
        return [(0, n) for n in range(1, size)]
    path = list(pairwise(range(size)))
    return [*path, (0, size - 1)] if kind == "cycle" else path


def _joined(
    random: np.random.Generator,
    number: int,
    ends: tuple[int, int],
    rows: Sequence[int],
    latent: Sequence[Floats],
) -> tuple[Edge, list[Ints]]:
    """A join and the keys of both its tables."""
    traits: list[str] = []
    hits = [_hits(random, latent[end], traits) for end in ends]
    counts = [max(1, int(h.sum())) for h in hits]
    smaller, larger = sorted(rows[end] for end in ends)
    fanout = random.uniform(0.02, 1) if random.random() < 0.55 else random.uniform(1, 10)
    # Of a row of the larger table in some queries, of the smaller one in others.
    pairs = fanout * (larger if random.random() < 0.5 else smaller)
    domain = max(1, round(counts[0] * counts[1] / pairs))
    skew = random.uniform(0.3, 1.0) if random.random() < 0.25 else 0.0
    if skew:
        traits.append(f"skew {skew:.1f}")
    keys = []
    for place, hit in enumerate(hits):
        wander = place == 0 and random.random() < 0.2
        if wander:
            traits.append("keys wander")
        own = _keys(random, len(hit), domain, skew if place == 0 else 0.0, wander)
        # Keys that only this side has lie among the others: no value tells by its size what it matches.
        missing = 3 * random.integers(0, domain, len(hit)) + 1 + place
        keys.append(np.where(hit, 3 * own, missing))
    return Edge(number, *ends, pairs, "; ".join(traits)), keys


def _hits(random: np.random.Generator, latent: Floats, traits: list[str]) -> NDArray[np.bool_]:
    """Which rows have a key that may occur on the other side."""
    chance = _drifting(random, len(latent), traits)
    tie = random.choice(("none", "none", "with", "against"))
    if tie == "none":
        return random.random(len(latent)) < chance
    traits.append(f"correlated {tie} the table's others")
    own = random.random(len(latent)) < 0.15  # some rows go their own way
    drawn = latent if tie == "with" else 1.0 - latent
    return np.where(own, random.random(len(latent)), drawn) < chance


def _drifting(random: np.random.Generator, count: int, traits: list[str]) -> Floats:
    """The chance of each row: the same all along, another from somewhere on, sliding, or coming and going."""
    first, second = random.uniform(0.05, 1.0, 2)
    late: Floats = np.arange(count) / count
    how = random.choice(("steady", "steady", "step", "slide", "blocks"))
    match how:
        case "steady":
            return np.full(count, first)
        case "step":
            late = (late >= random.uniform(0.2, 0.8)).astype(np.float64)
        case "blocks":
            late = np.floor(late * int(random.integers(3, 7))) % 2
    traits.append(f"{how} {first:.2f} to {second:.2f}")
    return np.asarray(first + (second - first) * late)


def _keys(random: np.random.Generator, count: int, domain: int, skew: float, wander: bool) -> Ints:
    if skew:
        shares = np.cumsum(np.arange(1, domain + 1, dtype=np.float64) ** -skew)
        places: Ints = np.searchsorted(shares, random.random(count) * shares[-1]).astype(np.int64)
        return np.minimum(places, domain - 1)
    keys = random.random(count)
    if wander:  # from a window of a third of the domain, which is at its end when the table is
        keys = (keys + 2 * np.arange(count) / count) / 3
    return np.minimum(keys * domain, domain - 1).astype(np.int64)


def _selected(random: np.random.Generator, latent: Floats, columns: dict[str, Ints]) -> int | None:
    """Give the table a column `v` of 0 to 99, which tells in some tables what rows match; and where a selection on it
    cuts, if there is one."""
    told = random.random() < 0.3
    columns["v"] = ((latent if told else random.random(len(latent))) * 100).astype(np.int64)
    if random.random() < 0.2:
        return int(100 * random.uniform(*_KEPT_BY_SELECTION))
    return None


def _paced(random: np.random.Generator, rows: int, batch: float) -> Pacing:
    delay = 0.0 if random.random() < 0.6 else random.uniform(0.1, 0.8)
    return Pacing(delay, _log(random, 0.2, 1.0), max(round(batch), -(-rows // _MOST_BATCHES)))


def _log(random: np.random.Generator, low: float, high: float) -> float:
    """Evenly on a logarithmic scale."""
    return float(low * (high / low) ** random.random())
