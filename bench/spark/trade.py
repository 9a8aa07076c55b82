"""What is joined: the lines of orders with what belongs to them. Seeded, and laid down as Parquet.

lines(order_no, book, copies)   orders(order_no, customer)   parcels(order_no, grams)
customers(customer, city)       books(book, price)

uniform      each order has as many lines on average; every line has an answer
skewed       orders of lines are Zipf(0.8), and so are the books of lines and the customers of orders
correlated   of the lower half of the orders one in twenty has a parcel; of the lines of the others one in twenty has a
             book that is known. Rows lie in the order of their numbers, so that it changes in the middle
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shapes import Ints, Shape

NAMES = ("uniform", "skewed", "correlated")
_SHARES = {"lines": 0.6, "orders": 0.15, "parcels": 0.15, "customers": 0.05, "books": 0.05}
_PARTS = 12  # row groups of a relation
_LEAST = 1_000  # rows of one
SQL = (
    "SELECT l.order_no, l.copies, c.city, b.price, p.grams FROM lines l JOIN orders o ON o.order_no = l.order_no "
    "JOIN parcels p ON p.order_no = l.order_no JOIN customers c ON c.customer = o.customer "
    "JOIN books b ON b.book = l.book"
)
PAIR = "SELECT l.order_no, l.copies, o.customer FROM lines l JOIN orders o ON o.order_no = l.order_no"


@dataclass(frozen=True)
class Laid:
    """A query, and the file of each relation that it reads."""

    name: str
    sql: str
    files: Mapping[str, str]
    sizes: Mapping[str, int]

    @property
    def rows(self) -> int:
        return sum(self.sizes.values())

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "sql": self.sql, "files": dict(self.files), "sizes": dict(self.sizes)}

    def pair(self) -> Laid:
        """Two of the relations only."""
        two = ("lines", "orders")
        return replace(
            self,
            name=f"{self.name} pair",
            sql=PAIR,
            files={n: self.files[n] for n in two},
            sizes={n: self.sizes[n] for n in two},
        )


def tables(name: str, rows: int, seed: int = 1) -> dict[str, pa.Table]:
    """The same ones for the same arguments."""
    random = np.random.default_rng(seed)
    count = {relation: max(20, int(rows * share)) for relation, share in _SHARES.items()}
    skewed = name == "skewed"
    order = np.arange(count["orders"])
    of_line = _drawn(count["orders"], count["lines"], random, skewed)
    book = _drawn(count["books"], count["lines"], random, skewed)
    customer = _drawn(count["customers"], count["orders"], random, skewed)
    parcel = random.permutation(order)
    if name == "correlated":
        of_line, parcel = np.sort(of_line), order.copy()
        half = count["orders"] // 2
        parcel[(order < half) & (random.random(len(order)) > 0.05)] += count[
            "orders"
        ]  # of orders that nobody has
        book[(of_line >= half) & (random.random(len(book)) > 0.05)] += count["books"]
    else:
        order = random.permutation(order)
    return {
        "lines": pa.table({"order_no": of_line, "book": book, "copies": random.integers(1, 9, len(book))}),
        "orders": pa.table({"order_no": order, "customer": customer}),
        "parcels": pa.table({"order_no": parcel, "grams": random.integers(100, 5_000, len(parcel))}),
        "customers": pa.table(
            {
                "customer": random.permutation(count["customers"]),
                "city": random.integers(0, 1_000, count["customers"]),
            }
        ),
        "books": pa.table(
            {
                "book": random.permutation(count["books"]),
                "price": random.integers(1, 100, count["books"]),
            }
        ),
    }


def lay(name: str, rows: int, folder: Path) -> Laid:
    return laid(Shape(name, SQL, tables(name, rows)), folder)


def laid(shape: Shape, folder: Path) -> Laid:
    """Any shape's tables, in files."""
    folder.mkdir(parents=True)
    files = {}
    for relation, table in shape.tables.items():
        files[relation] = str(folder / f"{relation}.parquet")
        pq.write_table(table, files[relation], row_group_size=max(_LEAST, table.num_rows // _PARTS + 1))
    return Laid(shape.name, shape.sql, files, {n: t.num_rows for n, t in shape.tables.items()})


def _drawn(values: int, count: int, random: np.random.Generator, skewed: bool) -> Ints:
    if not skewed:
        return random.integers(0, values, count)
    shares = np.cumsum(np.arange(1, values + 1, dtype=np.float64) ** -0.8)
    ranks = np.minimum(np.searchsorted(shares, random.random(count) * shares[-1]), values - 1)
    return np.asarray(random.permutation(values)[ranks])
