"""Random federated queries: 2 to 6 tables in paths, stars, cycles and trees, some scanned, some behind indexes on one
column or several, some both; joined on columns of random sizes, overlaps and skews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source

SHAPES = ("path", "star", "cycle", "tree")
SELECTED = "f"  # the column that selections read
_STYLES = ("scan", "index", "indexes", "pair", "both")
_LIKELY = (0.24, 0.34, 0.22, 0.1, 0.1)
_AT = (Mirror("site", ""),)
_SCAN = AccessMethod("scan", "scan", _AT, None)
_SHARES = 1_000  # values of the selected column

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Join:
    left: str
    left_column: str
    right: str
    right_column: str


@dataclass(frozen=True)
class Federation:
    seed: int
    shape: str
    tables: Mapping[str, pa.Table]  # what the sites really hold
    joins: tuple[Join, ...]
    limits: Mapping[str, int]  # by table: its selected column is less than this
    constants: Mapping[str, int]  # by table: its first column equals this
    catalog: Catalog

    @property
    def conditions(self) -> list[str]:
        """Of the query, as SQL."""
        found = [f"{j.left}.{j.left_column} = {j.right}.{j.right_column}" for j in self.joins]
        found += [f"{name}.{SELECTED} < {limit}" for name, limit in self.limits.items()]
        return found + [f"{name}.c = {value}" for name, value in self.constants.items()]

    @property
    def sql(self) -> str:
        outputs = ", ".join(f"{name}.id AS {name}" for name in self.tables)
        return f"SELECT {outputs} FROM {', '.join(self.tables)} WHERE {' AND '.join(self.conditions)}"


def drawn(seed: int, attempt: int = 0) -> Federation:
    """The federation of a seed; a further one for each attempt."""
    random = np.random.default_rng((seed, attempt))
    shape = str(random.choice(SHAPES))
    count = int(random.integers(3 if shape == "cycle" else 2, 7))
    names = [f"t{n}" for n in range(count)]
    sizes = [int(10 ** random.uniform(1.7, 3.3)) for _ in names]
    columns: list[dict[str, Ints]] = [{"id": np.arange(size)} for size in sizes]
    joins = []
    for number, (a, b) in enumerate(_pairs(random, shape, count)):
        left, right = f"k{number}", f"k{number}"
        shared = [c for c in columns[a] if c.startswith("k")]
        if shared and random.random() < 0.2:  # a column that another join uses too
            left = str(random.choice(shared))
            domain = columns[a][left]
        else:
            domain = columns[a][left] = _values(random, sizes[a], None)
        columns[b][right] = _values(random, sizes[b], domain)
        joins.append(Join(names[a], left, names[b], right))
    limits, constants, relations, tables = {}, {}, {}, {}
    for name, size, own in zip(names, sizes, columns, strict=True):
        own[SELECTED] = random.integers(0, _SHARES, size)
        own["c"] = random.integers(0, max(2, size // 40), size)
        if random.random() < 0.3:
            limits[name] = int(_SHARES * random.uniform(0.1, 0.9))
        methods = _methods(random, [c for c in own if c.startswith("k")], first=name == "t0")
        if any("c" in m.required for m in methods):
            constants[name] = int(own["c"][0])
        tables[name] = pa.table({c: pa.array(v, pa.int64()) for c, v in own.items()})
        relations[name] = Relation(name, tuple(Field(c, pa.int64()) for c in own), methods, ("id",))
    catalog = Catalog(relations, {"site": Source("site")})
    return Federation(seed, shape, tables, tuple(joins), limits, constants, catalog)


def _pairs(random: np.random.Generator, shape: str, count: int) -> list[tuple[int, int]]:
    order = [int(n) for n in random.permutation(count)]
    match shape:
        case "star":
            places = [(0, n) for n in range(1, count)]
        case "tree":
            places = [(int(random.integers(n)), n) for n in range(1, count)]
        case _:
            places = [(n - 1, n) for n in range(1, count)]
    if shape == "cycle":
        places.append((count - 1, 0))
    return [(order[a], order[b]) for a, b in places]


def _values(random: np.random.Generator, size: int, other: Ints | None) -> Ints:
    """Values of a join column: as many different ones as chance has it, some of them among the other side's."""
    different = max(2, int(size * 10 ** random.uniform(-1.3, 0.1)))
    if other is None:
        domain = random.integers(0, 1 << 30, different)
    else:
        theirs = np.unique(other)
        shared = max(1, int(min(different, len(theirs)) * random.uniform(0.1, 1.0)))
        domain = np.concatenate(
            [
                random.choice(theirs, shared, replace=False),
                random.integers(1 << 31, 1 << 32, different - shared),
            ]
        )
    weights = np.arange(1, len(domain) + 1, dtype=np.float64) ** -random.choice((0.0, 0.0, 0.7))
    return random.choice(random.permutation(domain), size, p=weights / weights.sum()).astype(np.int64)


def _methods(random: np.random.Generator, keys: list[str], first: bool) -> tuple[AccessMethod, ...]:
    style = "scan" if first else str(random.choice(_STYLES, p=_LIKELY))
    keys = [str(k) for k in random.permutation(keys)]
    constant = random.random() < 0.06
    match style:
        case "scan":
            return (_SCAN,)
        case "both":
            return (_SCAN, _index("by", keys[:1]))
        case "pair":
            return (_index("by", keys[:2]),)
        case "indexes":
            return tuple(_index(f"by_{k}", [k]) for k in keys)
        case _:
            return (_index("by", ["c"] if constant else keys[:1]),)


def _index(name: str, fields: list[str]) -> AccessMethod:
    return AccessMethod(name, "index", _AT, None, required=tuple(sorted(fields)))
