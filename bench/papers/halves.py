"""The tables of the partitioned join: a row of S joins with a few rows of R, or else with a few of T."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.papers.racing import Case

SQL = "select r.k as rk, s.k as sk, t.k as tk from r, s, t where r.a = s.a and s.b = t.b"
FANOUT = 5
_WORDS = np.array(("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"))
_BYTES = 100  # of a row in the paper
_MOSTLY = 0.9

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kind:
    """A case: how S's halves come, what tells them apart, and what a row has."""

    says: str
    halves: Literal["apart", "shuffled", "in step"] = "shuffled"
    told: Literal["", "column", "threshold", "word", "mostly"] = ""
    fanout: int = FANOUT
    wide: bool = False  # whether a row has the paper's 100 bytes


KINDS: Mapping[str, Kind] = {
    "by_arrival": Kind("the first half of S comes before the second", "apart"),
    "by_column": Kind("the halves are shuffled, a column of S has one of two values", told="column"),
    "by_threshold": Kind("a number in S is above or below 50", told="threshold"),
    "by_word": Kind("a text in S is one of five, or one of five others", told="word"),
    "by_mostly": Kind("a column of S tells right for nine rows in ten", told="mostly"),
    "indistinct": Kind("nothing tells the halves apart"),
    "in_step": Kind("R, S and T come in step; by arrival", "in step"),
    "hundred_bytes": Kind("by arrival, a row has the paper's 100 bytes", "apart", wide=True),
    "fifty_by_arrival": Kind("by arrival, with 50 matches instead of 5", "apart", fanout=50),
    "fifty_by_column": Kind("by a column, with 50 matches instead of 5", told="column", fanout=50),
}


def tables_of(kind: Kind, rows: int, seed: int = 1) -> dict[str, pa.Table]:
    """The tables, their rows in the order in which they come."""
    random = np.random.default_rng(seed)
    number = np.arange(rows)
    early = number < rows // 2
    first = random.permutation(early) if kind.halves == "shuffled" else early
    columns: dict[str, dict[str, Any]] = {
        "r": {"a": _keys(random, early, kind.fanout, 1), "k": number},
        "s": {
            "a": _keys(random, first, kind.fanout, 2),
            "b": _keys(random, ~first, kind.fanout, 2),
            "k": number,
        },
        "t": {"b": _keys(random, ~early, kind.fanout, 1), "k": number},
    }
    columns["s"] |= _told(kind, first, random)
    if kind.wide:
        for of in columns.values():
            of["rest"] = np.full(rows, "x" * (_BYTES - 8 * len(of)))
    return {name: pa.table(of) for name, of in columns.items()}


def case_of(kind: Kind, rows: int, batch: int) -> Case:
    """Ready to be run. R and T have come when S begins, unless all come in step."""
    return _fed(kind, tables_of(kind, rows), batch)


def right_at_once(kind: Kind, rows: int, batch: int) -> Case:
    """The same, but no row of S finds anything in T. A plan that goes there first does then what a plan that is right
    for every row would do with the others."""
    tables = tables_of(kind, rows)
    nowhere = _keys(np.random.default_rng(2), np.zeros(rows, np.bool_), kind.fanout, 2)
    s = tables["s"]
    tables["s"] = s.set_column(s.schema.get_field_index("b"), "b", pa.array(nowhere))
    return _fed(kind, tables, batch)


def _fed(kind: Kind, tables: dict[str, pa.Table], batch: int) -> Case:
    batches = {n: [(n, b) for b in t.to_batches(max_chunksize=batch)] for n, t in tables.items()}
    if kind.halves == "in step":
        return Case(SQL, tables, [list(landed) for landed in zip(*batches.values(), strict=True)])
    return Case(SQL, tables, [[landed] for name in "rts" for landed in batches[name]])


def _keys(random: np.random.Generator, matching: Mask, fanout: int, apart: int) -> Ints:
    """Each key that matches so many times, in any order. The others are this table's own, and lie among them, so that
    no key tells by its size what it matches."""
    count = int(matching.sum())
    keys: Ints = 3 * random.integers(0, max(1, len(matching) // 2 // fanout), len(matching)) + apart
    keys[matching] = 3 * random.permutation(np.arange(count) // fanout)
    return keys


def _told(kind: Kind, first: Mask, random: np.random.Generator) -> dict[str, Any]:
    """What tells the halves apart, after columns that do not."""
    rows = len(first)
    if kind.halves != "shuffled":
        return {}
    columns: dict[str, Any] = {
        "lot": random.integers(0, 4, rows),
        "size": random.random(rows),
        "wood": _WORDS[random.integers(0, len(_WORDS), rows)],
    }
    match kind.told:
        case "column":
            columns["c"] = np.where(first, 1, 2)
        case "threshold":
            columns["c"] = np.where(first, random.uniform(0, 50, rows), random.uniform(50, 100, rows))
        case "word":
            half = len(_WORDS) // 2
            columns["c"] = _WORDS[random.integers(0, half, rows) + np.where(first, 0, half)]
        case "mostly":
            columns["c"] = np.where(first == (random.random(rows) < _MOSTLY), 1, 2)
        case "":
            pass
    return columns
