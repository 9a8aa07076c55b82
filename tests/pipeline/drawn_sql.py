"""Tables and statements from a seed, of what Spark is said to do as DuckDB does."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

import pyarrow as pa

_DAY = datetime.date(2024, 2, 28)
_AT = datetime.datetime(2024, 2, 28, 23, 59, 59, 999_999)
_NAN, _INF = float("nan"), float("inf")
_TEXTS = (
    "", "a", "A", "b", "ab", "aB", " a ", "\u00a0a\u3000", "\ta", "é", "É", "ß", "İ", "ŉ", "ﬁ", "Σς", "日本",
    "🤦🏼‍♂️x", "%", "_", "a%b", "a_b", "\\", "a\\b", "\\%", "'", "it's", "${x}", "$1", "a\nb", "1", "-7", "true", "NaN",
    "zz", "Zz", "~", "a:b", "e\u0301",
)  # fmt: skip


def _decimals(*values: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, values))


def _days(*after: int) -> tuple[datetime.date, ...]:
    return tuple(_DAY + datetime.timedelta(n) for n in after)


def _moments(begin: datetime.datetime, *after: float) -> tuple[datetime.datetime, ...]:
    return tuple(begin + datetime.timedelta(0, n) for n in after)


# The values that columns of a type are drawn from, NULL aside.
VALUES: dict[str, tuple[pa.DataType, tuple[object, ...]]] = {
    "i8": (pa.int8(), (-128, -7, -1, 0, 1, 2, 3, 127)),
    "i16": (pa.int16(), (-32768, -9, -1, 0, 1, 2, 5, 32767)),
    "i32": (pa.int32(), (-2147483648, -1000, -2, -1, 0, 1, 2, 3, 7, 1984, 2147483647)),
    "i64": (pa.int64(), (-(1 << 63), -(1 << 53) - 1, -3, -1, 0, 1, 2, 5, (1 << 53) + 1, (1 << 63) - 1)),
    "n": (pa.int32(), (-5, -3, -2, -1, 0, 1, 2, 3, 4, 10)),
    "g": (pa.int64(), (1, 2, 3)),
    "u8": (pa.uint8(), (0, 1, 200, 255)),
    "u32": (pa.uint32(), (0, 1, 4294967295)),
    "f64": (
        pa.float64(),
        (_NAN, _INF, -_INF, -0.0, 0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.125, 1e15, 4503599627370497.5, 1e300),
    ),
    "x": (pa.float64(), (-2.25, -0.5, 0.0, 0.25, 1.0, 2.675, 1.005, 10.0, 99.5)),
    "q": (pa.float64(), (-2.25, -0.5, 0.0, 0.25, 1.0, 3.125, 99.5)),
    "f32": (pa.float32(), (_NAN, -_INF, -0.0, 0.5, 1.5, -2.5, 1e30)),
    "d5": (pa.decimal128(5, 2), _decimals("-999.99", "-0.05", "0.00", "0.05", "1.25", "2.50", "2.55", "999.99")),
    "d18": (pa.decimal128(18, 4), _decimals("-12345678901234.5678", "0.0001", "1.0000", "2.5000")),
    "d30": (pa.decimal128(30, 3), _decimals("-123456789012345678901234567.125", "0.500", "7.000")),
    "s": (pa.string(), _TEXTS),
    "t": (pa.string(), ("a", "b", "A", "", "é", "日本")),
    "b": (pa.bool_(), (True, False)),
    "c": (pa.bool_(), (True, False)),
    "d": (pa.date32(), _days(-60_000, -366, -3, -1, 0, 1, 2, 40, 307, 9999)),
    "e": (pa.date32(), _days(-1, 0, 1, 2)),
    "at": (pa.timestamp("us"), _moments(_AT, -4_000_000_000, -86_400, -1, 0, 0.000001, 1, 40_000_000)),
    "z": (pa.timestamp("us", "UTC"), _moments(_AT.replace(tzinfo=datetime.UTC), -1, 0, 86_400)),
    "bin": (pa.binary(), (b"", b"a", b"\xff\x00")),
}  # fmt: skip
ROWS = 40
_LITERALS = ("NULL", "1", "'x'")


def table(random: Random, prefix: str) -> pa.Table:
    """One column of each type, and `id`, which no two rows share. Names are like those that blocks give."""
    columns: dict[str, pa.Array] = {f"{prefix}.id": pa.array(range(ROWS), pa.int64())}
    nulls = random.choice((0.0, 0.1, 0.4))
    for name, (type_, values) in VALUES.items():
        drawn = [None if random.random() < nulls else random.choice(values) for _ in range(ROWS)]
        columns[f"{prefix}.{name}"] = pa.array(drawn, type_)
    return pa.table(columns)


def every(prefix: str) -> pa.Table:
    """Every value of every type, and NULL."""
    columns: dict[str, pa.Array] = {f"{prefix}.id": pa.array(range(ROWS), pa.int64())}
    for name, (type_, values) in VALUES.items():
        around = (*values, None)
        columns[f"{prefix}.{name}"] = pa.array([around[n % len(around)] for n in range(ROWS)], type_)
    return pa.table(columns)


@dataclass(frozen=True)
class Drawn:
    sql: str
    ordered: bool = False
    rounded: bool = False  # sums of doubles that are no short fractions of two


class Drawing:
    """Statements over two tables, `block` and `step`, whose columns begin with `b.` and `o.`."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tables: tuple[tuple[str, str], ...] = (("block", "b"),)

    def of(self, *options: str) -> str:
        return self.random.choice(options)

    # Expressions, by the kind of their value.

    def column(self, *names: str) -> str:
        table_, prefix = self.random.choice(self.tables)
        return f'"{table_}"."{prefix}.{self.random.choice(names)}"'

    def whole(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.1:
            some = self.column("n", "g", "n", "g", "i32", "i8", "i16", "i64")
            return self.random.choice((some, some, str(self.random.randint(-3, 9))))
        one, two, text = (lambda: self.whole(depth - 1)), (lambda: self.whole(depth - 1)), self.text
        small, date = self.column("n", "g", "i8"), self.date
        tried = self.column("i64", "f64", "d5", "d18", "i32")
        return self.pick(
            lambda: f"({one()} {self.random.choice('+-*')} {two()})",
            lambda: f"({small} {self.random.choice('+-*')} {self.column('n', 'i16')})",
            lambda: (
                f"({self.column('n', 'i32', 'i64', 'i8')} {self.of('//', '%')} {self.of('3', '-2', '7', '-1')})"
            ),
            lambda: f"({small} {self.of('//', '%')} NULLIF({self.column('n', 'i8')}, 0))",
            lambda: f"(- {one()})",
            lambda: f"ABS({one()})",
            lambda: f"LENGTH({text(1)})",
            lambda: f"STRPOS({text(1)}, {text(0)})",
            lambda: (
                f"{self.of('YEAR', 'MONTH', 'DAY', 'QUARTER', 'WEEK', 'DAYOFWEEK', 'DAYOFYEAR')}({self.moment()})"
            ),
            lambda: f"EXTRACT({self.of('year', 'month', 'dow', 'doy')} FROM {self.moment()})",
            lambda: f"date_part('{self.of('year', 'quarter')}', {self.moment()})",
            lambda: f"({date(1)} - {date(0)})",
            lambda: f"DATE_DIFF('day', {date(0)}, {date(1)})",
            lambda: f"CAST({self.real(0)} AS {self.of('INTEGER', 'BIGINT', 'SMALLINT')})",
            lambda: f"TRY_CAST({tried} AS {self.of('INTEGER', 'TINYINT', 'SMALLINT')})",
            lambda: f"CAST({self.exact(0)} AS BIGINT)",
            lambda: f"CAST({self.truth(0)} AS INTEGER)",
            lambda: f"ROUND({self.column('n', 'i32')})",
            lambda: self.chosen(self.whole, depth),
        )

    def real(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.1:
            return self.random.choice(
                (self.column("f64", "x", "q", "f32"), self.column("x", "q"), "0.5::DOUBLE", "'-0.0'::DOUBLE")
            )
        one, two = (lambda: self.real(depth - 1)), (lambda: self.real(depth - 1))
        return self.pick(
            lambda: f"({one()} {self.random.choice('+-*')} {two()})",
            lambda: f"({one()} / {two()})",
            lambda: f"({self.whole(0)} / {self.whole(0)})",
            lambda: f"({self.column('d5')} / {self.whole(0)})",
            lambda: f"({self.column('f64', 'f32', 'x')} + {self.whole(0)})",
            lambda: f"({self.column('d5')} * {self.column('x')})",
            lambda: f"(- {one()})",
            lambda: f"ABS({one()})",
            lambda: f"{self.of('CEIL', 'FLOOR')}({self.column('f64', 'x', 'n')})",
            lambda: f"ROUND({self.column('f64', 'x')}{self.of('', ', 1', ', 2', ', 5')})",
            lambda: f"CAST({self.whole(0)} AS DOUBLE)",
            lambda: self.chosen(self.real, depth),
        )

    def exact(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.1:
            return self.of(self.column("d5", "d18", "d30"), self.column("d5"), "1.50", "-0.05")
        one, two = (lambda: self.exact(depth - 1)), (lambda: self.exact(depth - 1))
        return self.pick(
            lambda: f"({one()} {self.random.choice('+-')} {two()})",
            lambda: f"({self.column('d5')} * {self.column('d5', 'n', 'i8')})",
            lambda: f"({self.column('d5', 'd18')} {self.random.choice('+-*')} {self.whole(0)})",
            lambda: f"(- {one()})",
            lambda: f"ABS({one()})",
            lambda: f"ROUND({self.column('d5', 'd18')}, {self.random.randint(0, 3)})",
            lambda: f"{self.of('CEIL', 'FLOOR')}({self.column('d5', 'd18')})",
            lambda: f"CAST({one()} AS DECIMAL({self.of('10,1', '20,5', '38,2')}))",
            lambda: f"CAST({self.whole(0)} AS DECIMAL(25,2))",
            lambda: f"CAST({self.column('i64')} AS HUGEINT) + {self.whole(0)}",
            lambda: self.chosen(self.exact, depth),
        )

    def text(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.1:
            return self.random.choice(
                (self.column("s", "t"), self.column("s"), _quoted(self.random.choice(_TEXTS)))
            )
        one, two = (lambda: self.text(depth - 1)), (lambda: self.text(depth - 1))
        count = self.random.randint(0, 3)
        return self.pick(
            lambda: f"({one()} || {two()})",
            lambda: f"({one()} || {self.column('n')})",
            lambda: f"CONCAT({one()}, {two()}, {self.column('i64')})",
            lambda: f"CONCAT_WS({_quoted(self.of('-', ''))}, {one()}, {two()})",
            lambda: f"{self.of('UPPER', 'LOWER')}({one()})",
            lambda: f"SUBSTRING({one()}, {count + 1}{self.of('', ', 1', ', 0')})",
            lambda: f"{self.of('LEFT', 'RIGHT')}({one()}, {count})",
            lambda: f"REPLACE({one()}, {self.text(0)}, {self.text(0)})",
            lambda: f"{self.of('TRIM', 'LTRIM', 'RTRIM')}({one()})",
            lambda: f"TRIM({self.of('BOTH', 'LEADING', 'TRAILING')} 'a%' FROM {one()})",
            lambda: f"CAST({self.of(self.whole(0), self.truth(0), self.date(0))} AS VARCHAR)",
            lambda: self.chosen(self.text, depth),
        )

    def date(self, depth: int = 1) -> str:
        if depth == 0:
            return self.of(self.column("d", "e"), "DATE '2024-02-29'")
        return self.pick(
            lambda: f"({self.column('d', 'e')} {self.random.choice('+-')} {self.of(self.column('n'), '3')})",
            lambda: f"({self.column('n')} + {self.column('d')})",
            lambda: f"CAST({self.column('at')} AS DATE)",
            lambda: self.chosen(self.date, depth),
        )

    def moment(self) -> str:
        return self.pick(
            lambda: self.column("at"),
            lambda: self.date(0),
            lambda: (
                f"DATE_TRUNC('{self.of('year', 'quarter', 'month', 'week', 'day')}', {self.column('at', 'd')})"
            ),
            lambda: f"DATE_TRUNC('{self.of('month', 'week')}', CAST({self.column('at')} AS DATE))",
            lambda: f"CAST({self.column('d')} AS TIMESTAMP)",
            lambda: "TIMESTAMP '2024-02-29 12:30:00.000001'",
        )

    def truth(self, depth: int = 2) -> str:
        if depth == 0:
            return self.column("b", "c")
        one, two = (lambda: self.truth(depth - 1)), (lambda: self.truth(depth - 1))
        kind = self.of(self.whole, self.real, self.exact, self.text, self.date)
        sign = self.random.choice(
            ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        )
        like = self.random.choice(
            (
                "%a%",
                "_",
                "a\\_b",
                "a_b",
                "%\\",
                "\\%",
                "%'%",
                "é%",
                "a%",
                "%b",
                "${x}",
                "_%_",
                "日_",
                "🤦%",
                "",
            )
        )
        return self.pick(
            lambda: f"({kind(1)} {sign} {kind(1)})",
            lambda: f"({self.whole(0)} {sign} {self.of(self.real(0), self.exact(0))})",
            lambda: f"({self.column('e')} {sign} '2024-02-28')",
            lambda: f"({self.column('at')} {sign} {self.date(0)})",
            lambda: f"({self.column('n')} {sign} '3')",
            lambda: f"({self.column('z')} {sign} {self.column('z')})",
            lambda: f"({self.column('u8', 'u32')} {sign} {self.column('u8', 'u32', 'n')})",
            lambda: f"({kind(1)} {self.of('', 'NOT ')}BETWEEN {kind(0)} AND {kind(0)})",
            lambda: f"({one()} {self.of('AND', 'OR')} {two()})",
            lambda: f"(NOT {one()})",
            lambda: f"({kind(1)} IS {self.of('', 'NOT ')}NULL)",
            lambda: f"({one()} IS {self.of('', 'NOT ')}{self.of('TRUE', 'FALSE')})",
            lambda: (
                f"({self.column('n', 'i64')} {self.of('', 'NOT ')}IN (1, -3, {self.of('NULL', '7', '2.5')}))"
            ),
            lambda: f"({self.text(1)} IN ('a', 'it''s', {self.column('t')}))",
            lambda: f"({self.column('f64')} IN (0.0, 'NaN'::DOUBLE, {self.column('x')}))",
            lambda: f"({self.text(1)} {self.of('', 'NOT ')}LIKE {_quoted(like)})",
            lambda: f"({self.column('s')} {self.of('', 'NOT ')}LIKE '%!%%' ESCAPE '!')",
            lambda: f"({self.column('s')} LIKE '%\\\\%' ESCAPE '\\')",
            lambda: (
                f"{self.of('CONTAINS', 'STARTS_WITH', 'ENDS_WITH', 'PREFIX', 'SUFFIX')}({self.text(1)}, {self.text(0)})"
            ),
            lambda: f"CAST({self.column('n')} AS BOOLEAN)",
            lambda: self.chosen(self.truth, depth),
        )

    def chosen(self, kind: Callable[..., str], depth: int) -> str:
        """One of several values of a kind."""
        one, two = kind(depth - 1), kind(depth - 1)
        return self.pick(
            lambda: f"CASE WHEN {self.truth(0)} THEN {one} WHEN {self.column('n')} > 0 THEN {two} END",
            lambda: f"CASE {self.column('n')} WHEN 1 THEN {one} WHEN 2 THEN NULL ELSE {two} END",
            lambda: f"IF({self.truth(0)}, {one}, {two})",
            lambda: f"COALESCE({one}, {two})",
            lambda: f"NULLIF({one}, {two})",
            lambda: f"{self.of('GREATEST', 'LEAST')}({one}, {two}, {kind(0)})",
        )

    def any(self, depth: int = 2) -> str:
        deep = (self.whole, self.whole, self.real, self.exact, self.text, self.text, self.truth, self.truth)
        return self.random.choice(
            (*(lambda kind=kind: kind(depth) for kind in deep), lambda: self.date(1), self.moment)
        )()

    def pick(self, *ways: Callable[[], str]) -> str:
        return self.random.choice(ways)()

    # What is made of many rows.

    def aggregate(self) -> str:
        distinct = self.of("", "", "DISTINCT ")
        call = self.pick(
            lambda: "COUNT(*)",
            lambda: f"COUNT({distinct}{self.any(1)})",
            lambda: f"COUNT_IF({self.truth(1)})",
            lambda: f"SUM({distinct}{self.column('n', 'i8', 'i32', 'i64', 'd5', 'd18', 'd30', 'q')})",
            lambda: f"SUM({self.column('n')} * {self.column('g')})",
            lambda: f"AVG({distinct}{self.column('n', 'i32', 'i64', 'd5', 'q')})",
            lambda: f"{self.of('MIN', 'MAX')}({self.column(*(n for n in VALUES if n not in ('bin',)))})",
            lambda: f"{self.of('MIN', 'MAX')}({self.text(1)})",
            lambda: f"{self.of('BOOL_AND', 'BOOL_OR')}({self.truth(1)})",
        )
        return f"{call} FILTER (WHERE {self.truth(1)})" if self.random.random() < 0.2 else call

    def windowed(self) -> str:
        partition = self.pick(lambda: "", lambda: f"PARTITION BY {self.column('g', 't', 'b')} ")
        identity = f'"{self.tables[0][0]}"."{self.tables[0][1]}.id"'
        order = f"ORDER BY {self.keys()}{identity}"
        frame = self.of(
            "", "", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        )  # fmt: skip
        some = self.column("n", "t", "d", "q", "i64", "d5")
        rank = self.of("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()")
        call = self.of("SUM", "AVG", "MIN", "MAX", "COUNT")
        return self.pick(
            lambda: (
                f"{self.of('ROW_NUMBER()', 'NTILE(3)', f'LAG({some})', f'LEAD({some}, 2)')} OVER ({partition}{order})"
            ),
            lambda: f"{rank} OVER ({partition}ORDER BY {self.keys(end='')})",
            lambda: f"{self.of('FIRST_VALUE', 'LAST_VALUE')}({some}) OVER ({partition}{order}{frame})",
            lambda: f"{call}({self.column('n', 'q', 'i32', 'd5')}) OVER ({partition}{order}{frame})",
            lambda: f"COUNT(*) OVER ({partition})",
            lambda: f"{self.of('BOOL_AND', 'BOOL_OR')}({self.column('b')}) OVER ({partition}{order})",
            lambda: (
                f"{self.of('SUM', 'COUNT')}({self.column('n')}) OVER ({partition}ORDER BY {self.keys(end='')})"
            ),
        )

    def keys(self, end: str = ", ") -> str:
        """What to sort by."""
        found = [
            self.key(self.column(*(n for n in VALUES if n not in ("bin",)))) for _ in range(self.of(1, 1, 2))
        ]
        return ", ".join(found) + end

    def key(self, what: str) -> str:
        return f"{what}{self.of('', ' ASC', ' DESC')}{self.of('', '', ' NULLS FIRST', ' NULLS LAST')}"

    # Statements.

    def statement(self) -> Drawn:
        self.tables = (("block", "b"),)
        return self.random.choice((
            self.projection, self.projection, self.grouped, self.grouped, self.grouped_all, self.joined, self.in_sets,
            self.windows, self.told_apart, self.nested, self.qualified, self.whole_table,
        ))()  # fmt: skip

    def items(self, count: int = 12) -> str:
        return ", ".join(f"{self.any()} AS v{n}" for n in range(count))

    def where(self) -> str:
        return f" WHERE {self.truth()}" if self.random.random() < 0.4 else ""

    def cut(self) -> str:
        return self.of("", "", " LIMIT 7", " LIMIT 5 OFFSET 3", " OFFSET 30")

    def projection(self) -> Drawn:
        sql = f'SELECT {self.items()}, "block"."b.id" AS i, {self.column("bin")} AS w FROM "block"{self.where()}'
        if self.random.random() < 0.5:
            return Drawn(sql)
        return Drawn(f'{sql} ORDER BY {self.keys()}{self.key("v0")}, "block"."b.id"{self.cut()}', True)

    def grouped(self) -> Drawn:
        keys = [
            self.of(self.column("g", "t", "b", "d", "f64", "d5", "at", "u8", "bin"), self.any(1))
            for _ in range(2)
        ]
        having = f" HAVING {self.of('COUNT(*) > 1', 'SUM(' + self.column('n') + ') > 0', 'a0 IS NOT NULL')}"
        aggregates = ", ".join(f"{self.aggregate()} AS a{n}" for n in range(5))
        by = self.of(", ".join(keys), "k0, k1", "1, 2")
        sql = (
            f'SELECT {keys[0]} AS k0, {keys[1]} AS k1, {aggregates} FROM "block"{self.where()} GROUP BY {by}'
        )
        sql += having if self.random.random() < 0.5 else ""
        if self.random.random() < 0.5:
            return Drawn(sql)
        return Drawn(
            f"{sql} ORDER BY {self.key('MAX(' + self.column('g') + ')')}, {self.key('k0')}, 2{self.cut()}",
            True,
        )

    def grouped_all(self) -> Drawn:
        aggregates = ", ".join(f"{self.aggregate()} AS a{n}" for n in range(4))
        return Drawn(
            f'SELECT {self.column("g")} AS k, {self.text(1)} AS l, {aggregates} FROM "block"{self.where()} GROUP BY ALL'
        )

    def whole_table(self) -> Drawn:
        aggregates = ", ".join(f"{self.aggregate()} AS a{n}" for n in range(6))
        return Drawn(f'SELECT {aggregates} FROM "block"{self.where()}')

    def joined(self) -> Drawn:
        join = self.random.choice(
            ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI JOIN", "ANTI JOIN")
        )
        one = self.of("n", "t", "d", "f64", "u8", "i32")
        on = f'"block"."b.{one}" = "step"."o.{one}"'
        self.tables = (("block", "b"), ("step", "o"))
        on += f" AND {self.truth(1)}" if self.random.random() < 0.4 else ""
        if join == "CROSS JOIN":
            return Drawn(f'SELECT {self.items(4)} FROM "block" CROSS JOIN "step" WHERE {on}')
        if join in ("SEMI JOIN", "ANTI JOIN"):
            self.tables = (("block", "b"),)
        return Drawn(f'SELECT {self.items(6)} FROM "block" {join} "step" ON {on}{self.where()}')

    def in_sets(self) -> Drawn:
        word = self.random.choice(
            ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        )
        pairs = [
            self.random.choice(
                (("t", "t"), ("b", "b"), ("f64", "x"), ("g", "n"), ("n", "d5"), ("d", "at"), ("i8", "i64"))
            )
            for _ in range(2)
        ]
        left = ", ".join(f'"block"."b.{one}" AS v{n}' for n, (one, _) in enumerate(pairs))
        right = ", ".join(f'"step"."o.{two}" AS w{n}' for n, (_, two) in enumerate(pairs))
        sql = f'SELECT {left} FROM "block" {word} SELECT {right} FROM "step"'
        if self.random.random() < 0.5:
            return Drawn(sql)
        return Drawn(f"{sql} ORDER BY {self.key('v0')}, {self.key('2')}{self.cut()}", True)

    def windows(self) -> Drawn:
        calls = ", ".join(f"{self.windowed()} AS v{n}" for n in range(5))
        last = 'SUM("block"."b.n") OVER w AS s FROM "block"'
        return Drawn(
            f'SELECT {calls}, {last}{self.where()} WINDOW w AS (PARTITION BY "block"."b.t" ORDER BY "block"."b.id")'
        )

    def qualified(self) -> Drawn:
        return Drawn(f'SELECT {self.items(3)}, "block"."b.id" AS i FROM "block" QUALIFY {self.ranked()} <= 2')

    def ranked(self) -> str:
        return (
            f'ROW_NUMBER() OVER (PARTITION BY {self.column("g", "t")} ORDER BY {self.keys()}"block"."b.id")'
        )

    def told_apart(self) -> Drawn:
        columns = ", ".join(
            f"{c} AS v{n}"
            for n, c in enumerate((self.column("g", "f64", "d5"), self.text(1), self.column("b", "d")))
        )
        sql = f'SELECT DISTINCT {columns} FROM "block"{self.where()}'
        if self.random.random() < 0.4:
            return Drawn(sql)
        return Drawn(f"{sql} ORDER BY {self.key('v0')}, {self.key('2')}, {self.key('v2')}{self.cut()}", True)

    def nested(self) -> Drawn:
        some = self.of("t", "n", "d")
        other = f'"step"."o.{some}"'
        test = self.pick(
            lambda: (
                f'"block"."b.{some}" {self.of("", "NOT ")}IN (SELECT {other} AS x FROM "step" WHERE "step"."o.g" = 1)'
            ),
            lambda: (
                f'{self.of("", "NOT ")}EXISTS (SELECT 1 AS x FROM "step" WHERE {other} = "block"."b.{some}")'
            ),
            lambda: '"block"."b.n" < (SELECT AVG("step"."o.n") AS x FROM "step")',
            lambda: (
                '"block"."b.n" >= (SELECT MIN("step"."o.n") AS x FROM "step" WHERE "step"."o.g" = "block"."b.g")'
            ),
        )
        inner = f'SELECT {other} AS k, COUNT(*) AS c, {self.of(*_LITERALS)} AS l FROM "step" GROUP BY 1'
        joined = f'"block" LEFT JOIN ({inner}) AS "x"("k", "c") ON "x"."k" = "block"."b.{some}"'
        twice = '"x" AS "y" CROSS JOIN "x" AS "z" WHERE "y"."c" <= "z"."c"'
        best = f'SELECT {self.items(2)}, "block"."b.id" AS i FROM "block" ORDER BY i LIMIT 9'
        return Drawn(
            self.of(
                f'SELECT {self.items(3)} FROM "block" WHERE {test}',
                f'SELECT "x"."k" AS k, "x"."c" AS c, "x"."l" AS l, "block"."b.id" AS i FROM {joined}',
                f'WITH "x" AS ({inner}) SELECT "y"."k" AS k, "y"."c" + 1 AS c, "z"."c" AS d FROM {twice}',
                f'SELECT (SELECT MAX("step"."o.n") AS m FROM "step") AS m, COUNT(*) AS c FROM "block"{self.where()}',
                f'SELECT "x"."v0" AS a, "x"."v1" AS b FROM ({best}) AS "x" WHERE NOT "x"."v0" IS NULL',
            )
        )


def statements(random: Random, count: int) -> Sequence[Drawn]:
    drawing = Drawing(random)
    return [drawing.statement() for _ in range(count)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
