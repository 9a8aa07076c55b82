"""What is found simple is what DuckDB finds sound, and its columns are called as DuckDB calls them."""

from __future__ import annotations

import re
from random import Random

import duckdb
import pyarrow as pa
import pytest

from mediator.catalog.model import AccessMethod, Catalog, Field, Relation
from mediator.errors import QueryError
from mediator.query import duck
from mediator.query.parse import parse
from mediator.query.refuse import refuse
from mediator.query.scope import unique
from mediator.query.simple import column_names
from mediator.query.understand import understand

_SCAN = AccessMethod("scan", "scan", (), None)


def _relation(name: str, **fields: pa.DataType) -> Relation:
    found = tuple(Field(f, t) for f, t in fields.items())
    return Relation(
        name,
        found,
        (_SCAN,),
        literal=pa.RecordBatch.from_pylist([], pa.schema([(f.name, f.type) for f in found])),
    )


CATALOG = Catalog(
    {
        r.name: r
        for r in (
            _relation("books", isbn=pa.string(), title=pa.large_string(), year=pa.int32(), Price=pa.float64()),
            _relation("Offers", isbn=pa.string(), price=pa.decimal128(9, 2), day=pa.date32(), year=pa.int64()),
            _relation("order", user=pa.string(), value=pa.uint64(), select=pa.int8(), tags=pa.list_(pa.string())),
        )
    }
)  # fmt: skip
SCHEMAS = {name: relation.schema for name, relation in CATALOG.relations.items()}
_WORDS = [
    "isbn",
    "title",
    "year",
    "price",
    "Price",
    "day",
    "value",
    "select",
    "ISBN",
    "Title",
    "nope",
    "rowid",
    "user",
    "date",
    "type",
    "books",
    "b",
]


def _quoted(r: Random, word: str) -> str:
    """As a rule where it has to be."""
    needs = word in ("order", "select", "user")
    return f'"{word}"' if needs != (r.random() < 0.05) else word


class _Drawing:
    """A statement, mostly of what there is: each thing is now and then another."""

    def __init__(self, r: Random) -> None:
        self.r = r
        self.sources: list[tuple[str, list[str]]] = []

    def seldom(self, share: float = 0.03) -> bool:
        return self.r.random() < share

    def column(self) -> str:
        alias, fields = self.r.choice(self.sources)
        name = self.r.choice(_WORDS if self.seldom() else fields)
        shared = sum(name in others for _, others in self.sources) > 1
        return f"{alias}.{_quoted(self.r, name)}" if shared != self.seldom(0.1) else _quoted(self.r, name)

    def literal(self) -> str:
        if self.seldom(0.7):
            return self.r.choice(["1", "0", "1990", "'a'", "''", "'it''s'", "9" * 18])
        return self.r.choice(["'2020-01-01'", "9" * 19, "9" * 40, "1.5", "1e3", "-1", "NULL", "true", "x"])

    def comparison(self) -> str:
        left = self.column()
        kind = left.split(".")[-1].strip('"')
        if self.seldom(0.1):
            right = self.column()
        elif self.seldom(0.2):
            right = self.literal()
        else:
            right = "'a'" if kind in ("isbn", "title", "user") else "1990"
        sides = [left, right]
        self.r.shuffle(sides)
        sign = "LIKE" if self.seldom() else self.r.choice(["=", "<>", "<", "<=", ">", ">=", "!=", "=="])
        return f"{sides[0]} {sign} {sides[1]}"

    def condition(self) -> str:
        several = [self.comparison() for _ in range(self.r.choice([1, 1, 2, 3]))]
        return (" OR " if self.seldom() else " AND ").join(several)

    def source(self, n: int) -> str:
        relation = self.r.choice(["books", "books", "Offers", "order"])
        fields = list(SCHEMAS[relation].names)
        alias = self.r.choice(["year", "select", "b"]) if self.seldom() else self.r.choice(["", f"t{n}"])
        written = (
            self.r.choice(["offers", "nowhere", "order"]) if self.seldom() else _quoted(self.r, relation)
        )
        self.sources.append((_quoted(self.r, alias or relation), fields))
        return f"{written} {self.r.choice(['', 'AS '])}{_quoted(self.r, alias)}" if alias else written

    def item(self) -> str:
        if self.seldom():
            return self.r.choice(["*", "1"])
        alias = self.r.choice(_WORDS if self.seldom(0.3) else ["one", "two", "THREE"])
        return self.column() + (
            f" {self.r.choice(['', 'AS '])}{_quoted(self.r, alias)}" if self.seldom(0.2) else ""
        )

    def statement(self) -> str:
        written = self.source(0)
        for n in range(1, self.r.choice([1, 1, 2, 2, 3])):
            if self.seldom(0.3):
                written += f", {self.source(n)}"
            else:
                how = self.r.choice(["LEFT JOIN", "CROSS JOIN"]) if self.seldom() else "JOIN"
                written += f" {how} {self.source(n)}" + ("" if self.seldom() else f" ON {self.condition()}")
        items = ", ".join(self.item() for _ in range(self.r.randint(1, 3)))
        where = f" WHERE {self.condition()}" if self.seldom(0.6) else ""
        rest = (
            self.r.choice([" LIMIT 5 OFFSET 2", " ORDER BY 1", " LIMIT year", " LIMIT 10%"])
            if self.seldom()
            else ""
        )
        limit = rest or self.r.choice(["", "", " LIMIT 5", " LIMIT 0"])
        return f"SELECT {'DISTINCT ' if self.seldom() else ''}{items} FROM {written}{where}{limit}"


def statement(r: Random) -> str:
    return _Drawing(r).statement()


def simple(sql: str) -> list[str] | None:
    try:
        parsed = parse(sql, ())
        refuse(parsed, sql)
    except QueryError:
        return None
    return column_names(parsed, sql, CATALOG)


def check_named_alike(sql: str, names: list[str]) -> None:
    """DuckDB takes the statement, and calls its columns the same."""
    try:
        assert unique(names) == unique(duck.names(sql, SCHEMAS)), sql
    except duckdb.Error as error:
        raise AssertionError(f"{sql}: {error}") from None


def test_what_is_simple_is_sound_and_named_alike() -> None:
    random, found = Random(11), 0
    for _ in range(20_000):
        sql = statement(random)
        names = simple(sql)
        if names is not None:
            found += 1
            check_named_alike(sql, names)
    assert found > 4_000


_TOKEN = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[\w$]+|[^\w\s]""")
_STRAY = [
    ",",
    "AS",
    ".",
    "AND",
    "FROM",
    "WHERE",
    "JOIN",
    "ON",
    "=",
    "SELECT",
    "LIMIT",
    "isbn",
    "1",
    "'a'",
    "INNER",
]
_STRAY += ["NULL", "$1", "<", ">", "year", "LEFT", "NATURAL", "SEMI", "USING", "ASOF", "OUTER"]


def _out_of_place(random: Random, sql: str) -> str:
    """The statement with a word or two too many, too few, or elsewhere."""
    words = _TOKEN.findall(sql)
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(words))
        match random.choice(("lost", "twice", "stray", "moved")):
            case "lost":
                del words[at]
            case "twice":
                words.insert(at, words[at])
            case "stray":
                words.insert(at, random.choice(_STRAY))
            case "moved":
                words.insert(random.randrange(len(words)), words.pop(at))
    return " ".join(words).replace(" . ", ".")


def test_a_word_out_of_place_is_not_passed_over() -> None:
    random, found = Random(3), 0
    sound = [sql for _ in range(1_500) if simple(sql := statement(random)) is not None]
    for _ in range(15_000):
        sql = _out_of_place(random, random.choice(sound))
        names = simple(sql)
        if names is not None:
            found += 1
            check_named_alike(sql, names)
    assert found > 500


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT isbn, title FROM books WHERE isbn = 'x'",
        "SELECT b.title, o.price AS p FROM books b JOIN Offers AS o ON o.isbn = b.isbn AND o.day = o.day "
        "WHERE b.year > 1990",
        'SELECT "Price" FROM books, "order" WHERE "select" < 7 LIMIT 3',
    ],
)
def test_what_is_simple(sql: str) -> None:
    names = simple(sql)
    assert names is not None
    assert names == duck.names(sql, SCHEMAS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title FROM books WHERE year = 'a'", "SELECT title FROM books WHERE title = 3",
        "SELECT title FROM books WHERE Price = 3", "SELECT TITLE FROM books", "SELECT title FROM Books",
        "SELECT year FROM books, Offers", "SELECT title AS year FROM books WHERE year > 3", "SELECT books FROM books",
        "SELECT title FROM books WHERE year > -1", "SELECT title FROM books -- a comment", "SELECT 1 FROM books",
        "SELECT title FROM books LIMIT 3 OFFSET 1", "SELECT DISTINCT title FROM books",
        "SELECT title FROM books ORDER BY 1", "SELECT isbn FROM books JOIN Offers",
        "SELECT (SELECT title) FROM books", "WITH a AS (SELECT 1) SELECT title FROM books",
        "SELECT title", "SELECT FROM books",
        "SELECT b.title FROM books b JOIN Offers o ON p.isbn = b.isbn JOIN Offers p ON true",
        "SELECT title FROM `books`",
        "SELECT title FROM books UNION SELECT title FROM books", "SELECT isbn FROM books JOIN Offers USING (isbn)",
        "SELECT tags FROM \"order\" WHERE tags = tags",
        "SELECT title,, year FROM books", "SELECT ,title FROM books", "SELECT title, FROM books",
        "SELECT title FROM books AS", "SELECT AS title FROM books", "SELECT title FROM.books",
        "SELECT title FROM books 'a'", "SELECT title FROM books 'a' WHERE year = 3", "SELECT title FROM books AS 0",
        "FROM books SELECT title",
    ],
)  # fmt: skip
def test_what_is_not(sql: str) -> None:
    assert simple(sql) is None


def test_the_plan_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random, same = Random(5), 0
    while same < 300:
        sql = statement(random)
        if simple(sql) is None:
            continue
        same += 1
        quick = understand(sql, CATALOG)
        with monkeypatch.context() as patch:
            patch.setattr("mediator.query.check.column_names", lambda *_: None)
            asked = understand(sql, CATALOG)
        assert quick.schema == asked.schema, sql
        assert [type(s) for s in quick.stages] == [type(s) for s in asked.stages]
