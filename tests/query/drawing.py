"""Random statements over three small tables: joins of every kind, sub-queries everywhere, groups, sets,
limits.

Only statements whose answer SQL fixes are drawn: LIMIT comes with an ORDER BY over all columns.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

from tests.query.naive import catalog_of, index, scan


def tables(seed: int) -> dict[str, pa.Table]:
    """Few rows of few values, so that they meet; NULLs and equal rows among them."""
    draw = random.Random(seed)

    def column(rows: int, kind: pa.DataType) -> pa.Array:
        return pa.array([draw.choice([None, 0, 1, 1, 2, 3]) for _ in range(rows)], kind)

    sizes = [draw.randint(0, 7) for _ in range(3)]
    return {
        "r": pa.table({"a": column(sizes[0], pa.int32()), "b": column(sizes[0], pa.int64())}),
        "s": pa.table({"x": column(sizes[1], pa.int64()), "y": column(sizes[1], pa.int16())}),
        "t": pa.table({"b": column(sizes[2], pa.int32()), "c": column(sizes[2], pa.float64())}),
    }


CATALOG = catalog_of(tables(0), s=(index("x"),), t=(index("b"), scan()))
_COLUMNS = {"r": ("a", "b"), "s": ("x", "y"), "t": ("b", "c")}


@dataclass
class Drawing:
    """Draws one statement. Aliases are numbered, so that each is its own in the whole statement."""

    draw: random.Random
    manner: (
        random.Random
    )  # of writing it: apart, so that what a seed asks for stays when there are more manners
    aliases: int = 0
    depth: int = 0
    scopes: list[list[tuple[str, str]]] = field(default_factory=list)  # of columns that can be read

    def statement(self) -> str:
        if self.draw.random() < 0.12:
            operator = self.draw.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
            return f"{self.select(2)} {operator} {self.select(2)}"
        width = self.draw.randint(1, 3)
        sql = self.select(width)
        if self.draw.random() < 0.15:
            places = ", ".join(str(n + 1) for n in range(width))
            if self.sometimes(0.4):
                places = f"-{'v0' if ' AS v0' in sql else 'b'}, {places}"
            sql += f" ORDER BY {places} LIMIT {self.draw.randint(0, 4)} OFFSET {self.draw.randint(0, 1)}"
        return sql

    def select(self, width: int) -> str:
        self.scopes.append([])
        source = self.source()
        where = self.where()
        body = self.grouped(width) if self.draw.random() < 0.2 else self.listed(width)
        self.scopes.pop()
        return body.format(source=source, where=where)

    def listed(self, width: int) -> str:
        items = [f"{self.value()} AS {name}" for name in self.names(width)]
        distinct = "DISTINCT " if self.draw.random() < 0.15 else ""
        return self.written(f"SELECT {distinct}{', '.join(items)}")

    def grouped(self, width: int) -> str:
        key = self.column()
        calls = [f"count({self.column()})", "count(*)", f"sum({self.column()})", f"max({self.column()})"]
        items = [f"{key} AS v0", *(f"{self.draw.choice(calls)} AS v{n}" for n in range(1, width))]
        having = " HAVING count(*) > 1" if self.draw.random() < 0.3 else ""
        if having and self.sometimes(0.5):
            having = f" HAVING v{width - 1} > 0"
        return self.written(f"SELECT {', '.join(items)}") + f" GROUP BY {key}{having}"

    def names(self, width: int) -> list[str]:
        """Of the columns of a select list; those of the whole statement may be others' names as well."""
        if self.depth == 0 and len(self.scopes) == 1 and self.sometimes(0.2):
            return ["b", "a", "x"][:width]
        return [f"v{n}" for n in range(width)]

    def written(self, select: str) -> str:
        if self.sometimes(0.15):
            return f"FROM {{source}} {select}{{where}}"
        return f"{select} FROM {{source}}{{where}}"

    def sometimes(self, share: float) -> bool:
        return self.manner.random() < share

    # FROM

    def source(self) -> str:
        sql, since = self.item(), 0
        for _ in range(self.draw.choice([0, 1, 1, 1, 2, 2, 3])):
            sql, since = self.joined(sql, since)
        return sql

    def joined(self, left: str, since: int) -> tuple[str, int]:
        """`since` a comma, ON reads what stands after it."""
        before = len(self.scopes[-1])
        right = self.item()
        kind = self.draw.choice(
            ["JOIN", "JOIN", "JOIN", ",", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
        )
        if kind == ",":
            return (
                (f"{left}, {right}", before) if self.sometimes(0.3) else (f"{left} CROSS JOIN {right}", since)
            )
        mine = self.draw.choice(self.scopes[-1][since:before])
        theirs = self.draw.choice(self.scopes[-1][before:])
        on = f"{'.'.join(mine)} = {'.'.join(theirs)}"
        if kind != "FULL JOIN" and self.draw.random() < 0.3 and since == 0:
            on += f" AND {self.comparison()}"
        sides = self.scopes[-1][since:before], self.scopes[-1][before:]
        both = [sum(c == "b" for _, c in side) for side in sides]
        if both == [1, 1] and self.sometimes(0.5):
            return f"{left} {kind} {right} USING (b)", since  # where both have it, once each
        whole = f"{left} {kind} {right} ON {on}"
        return (f"({whole})" if since == 0 and self.sometimes(0.2) else whole), since

    def item(self) -> str:
        self.aliases += 1
        alias = f"q{self.aliases}"
        if self.depth < 2 and self.draw.random() < 0.2:
            self.depth += 1
            visible, self.scopes = self.scopes, []
            width = self.draw.randint(1, 2)
            inner = self.select(width)
            self.scopes = visible
            self.depth -= 1
            self.scopes[-1] += [(alias, f"v{n}") for n in range(width)]
            return f"({inner}) AS {alias}"
        table = self.draw.choice("rst")
        self.scopes[-1] += [(alias, c) for c in _COLUMNS[table]]
        return f"{table} AS {alias}"

    # WHERE

    def where(self) -> str:
        conjuncts = [self.condition() for _ in range(self.draw.choice([0, 0, 1, 1, 2, 3]))]
        return f" WHERE {' AND '.join(conjuncts)}" if conjuncts else ""

    def condition(self) -> str:
        roll = self.draw.random()
        if roll < 0.25 and self.depth < 2:
            return self.subquery()
        if roll < 0.35:
            return f"({self.comparison()} OR {self.comparison()})"
        if roll < 0.42:
            return f"{self.column()} IS {self.draw.choice(['NULL', 'NOT NULL'])}"
        if roll < 0.52:
            listed = ", ".join(self.draw.choice(["0", "1", "2", "NULL", "7"]) for _ in range(3))
            return f"{self.column()} {self.draw.choice(['IN', 'NOT IN'])} ({listed})"
        if self.sometimes(0.08):
            return f"({self.local()}, {self.local()}) = ({self.local()}, {self.column()})"
        if roll < 0.57:
            return f"NOT ({self.comparison()} OR {self.comparison()})"
        return self.comparison()

    def comparison(self) -> str:
        operator = self.draw.choice(["=", "=", "=", "<", "<=", ">", "<>", "IS NOT DISTINCT FROM"])
        other = self.draw.choice([self.column, self.value, self.number])()
        return f"{self.column()} {operator} {other}"

    def subquery(self) -> str:
        self.depth += 1
        self.scopes.append([])
        source = self.source()
        value = self.local()
        where = self.where()
        tie = f"{self.local()} = {self.outer()}" if self.draw.random() < 0.6 else ""
        self.scopes.pop()
        self.depth -= 1
        if tie:
            where = f"{where} AND {tie}" if where else f" WHERE {tie}"
        left = self.column()
        return self.draw.choice(
            [
                f"EXISTS (SELECT 1 FROM {source}{where})",
                f"NOT EXISTS (SELECT 1 FROM {source}{where})",
                f"{left} IN (SELECT {value} FROM {source}{where})",
                f"{left} NOT IN (SELECT {value} FROM {source}{where})",
                f"{left} >= (SELECT max({value}) FROM {source}{where})",
                f"(SELECT count(*) FROM {source}{where}) > {self.number()}",
            ]
        )

    # Values

    def value(self) -> str:
        roll = self.draw.random()
        if roll < 0.7:
            return self.column()
        other = self.draw.choice([self.column, self.number])
        operator = self.draw.choice(["+", "-", "*"])
        if self.sometimes(0.3):
            return self.manner.choice([f"{self.column()} // 2", f"coalesce({self.column()}, 0.5)"])
        return f"{self.column()} {operator} {other()}"

    def column(self) -> str:
        """Of the innermost scope, mostly."""
        if len(self.scopes) > 1 and self.draw.random() < 0.15:
            return self.outer()
        return self.local()

    def local(self) -> str:
        return ".".join(self.draw.choice(self.scopes[-1]))

    def outer(self) -> str:
        return ".".join(self.draw.choice([c for scope in self.scopes[:-1] for c in scope]))

    def number(self) -> str:
        return str(self.draw.randint(0, 3))


def statement(seed: int) -> str:
    return Drawing(random.Random(seed), random.Random(f"manner {seed}")).statement()
