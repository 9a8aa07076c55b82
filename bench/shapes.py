"""What the local bench joins: seeded tables, and the query over them.

int     R(k, a) S(a, b) T(b, c): each key once in each table, in another order; as many answers as rows
str     the same, with strings for a and b
star    F(k, d1..d4) and four tables D(d, x) of a tenth of its rows, which have 100, 50, 20 and 80 % of F's keys
skew    R.a is Zipf(1) over S.a, where each key is once; S.b and T.b are both Zipf(0.5), so that hot meets hot
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_CHAIN = "select r.k, r.a, s.b, t.c from r join s on r.a = s.a join t on s.b = t.b"
_STAR = (
    "select f.k, d1.x as x1, d2.x as x2, d3.x as x3, d4.x as x4 from f"
    " join d1 on f.d1 = d1.d join d2 on f.d2 = d2.d join d3 on f.d3 = d3.d join d4 on f.d4 = d4.d"
)
_KEPT = (1.0, 0.5, 0.2, 0.8)  # of F's keys, in each table of the star


@dataclass(frozen=True)
class Shape:
    """A query, and the tables of its FROM list in their order there."""

    name: str
    sql: str
    tables: dict[str, pa.Table]

    @property
    def rows(self) -> int:
        """In all tables together."""
        return sum(table.num_rows for table in self.tables.values())


def shape(name: str, rows: int, seed: int = 1) -> Shape:
    """The same one for the same arguments."""
    random = np.random.default_rng(seed)
    if name == "star":
        return Shape(name, _STAR, _star(rows, random))
    return Shape(name, _CHAIN, _CHAINS[name](rows, random))


def _ints(rows: int, random: np.random.Generator) -> dict[str, pa.Table]:
    return _chain(rows, *(pa.array(random.permutation(rows)) for _ in range(4)))


def _strings(rows: int, random: np.random.Generator) -> dict[str, pa.Table]:
    def keys() -> pa.Array:
        return pa.array(np.char.add("key-", random.permutation(rows).astype(str)).tolist(), pa.string())

    return _chain(rows, *(keys() for _ in range(4)))


def _skewed(rows: int, random: np.random.Generator) -> dict[str, pa.Table]:
    values = random.permutation(rows)  # the first of them is the hottest
    ra, sa = values[_zipf(rows, 1.0, random)], random.permutation(rows)
    sb, tb = (values[_zipf(rows, 0.5, random)] for _ in range(2))
    return _chain(rows, *(pa.array(v) for v in (ra, sa, sb, tb)))


_CHAINS: dict[str, Callable[[int, np.random.Generator], dict[str, pa.Table]]] = {
    "int": _ints,
    "str": _strings,
    "skew": _skewed,
}
NAMES = (*_CHAINS, "star")


def _chain(rows: int, ra: pa.Array, sa: pa.Array, sb: pa.Array, tb: pa.Array) -> dict[str, pa.Table]:
    count = pa.array(np.arange(rows))
    return {
        "r": pa.table({"k": count, "a": ra}),
        "s": pa.table({"a": sa, "b": sb}),
        "t": pa.table({"b": tb, "c": count}),
    }


def _star(rows: int, random: np.random.Generator) -> dict[str, pa.Table]:
    size = max(1, rows // 10)
    fact: dict[str, Ints] = {"k": np.arange(rows)}
    tables: dict[str, pa.Table] = {"f": pa.table({})}
    for number, kept in enumerate(_KEPT, 1):
        fact[f"d{number}"] = random.integers(0, round(size / kept), rows)
        tables[f"d{number}"] = pa.table({"d": random.permutation(size), "x": random.integers(0, 1_000, size)})
    tables["f"] = pa.table(fact)
    return tables


def _zipf(rows: int, exponent: float, random: np.random.Generator) -> Ints:
    """Draws of as many places as rows, the v-th (from 1) in proportion to 1 / v ** exponent."""
    shares = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -exponent)
    drawn = np.searchsorted(shares, random.random(rows) * shares[-1])
    return np.asarray(np.minimum(drawn, rows - 1))
