"""Bad input: one clear message that names the thing and the way out, with the place in the SQL where there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures import Behaviour, Fault, Fixed, Web, book_trade_web
from mediator.answering import answer, answering, explain
from mediator.assembly import Settings
from mediator.catalog.model import Catalog
from mediator.errors import (
    MediatorError,
    QueryError,
    TypeMismatch,
    Unanswerable,
    UnknownColumn,
    UnknownRelation,
    Unparsable,
    Unsupported,
)
from tests.answering.kit import ask, failures, in_virtual_time, mediating

# What is wrong, the error, what its text says, and where it points to.
BAD: list[tuple[str, type[QueryError], tuple[str, ...], str | None]] = [
    ("SELECT title FROM books WHERE", Unparsable, (), None),
    ("SELECT (title FROM books", Unparsable, (), None),
    ("", Unparsable, (), None),
    ("SELECT 1; SELECT 2", Unsupported, (), None),
    ("DROP TABLE books", Unsupported, ("SELECT",), None),
    ("INSERT INTO books VALUES (1)", Unsupported, ("SELECT",), None),
    ("SELECT title FROM boks", UnknownRelation, ("boks", "books"), "boks"),
    ("SELECT title\nFROM books\nJOIN autors ON 1 = 1", UnknownRelation, ("autors", "authors"), "autors"),
    ("SELECT titel FROM books", UnknownColumn, ("titel", "title"), "titel"),
    ("SELECT b.titel FROM books b", UnknownColumn, ("titel", "title"), "b.titel"),
    ("SELECT isbn FROM books, prizes", UnknownColumn, ("isbn",), "isbn"),
    ("SELECT x.title FROM books b", QueryError, ("x",), "x.title"),
    ("SELECT nosuch(title) FROM books", QueryError, ("nosuch",), "nosuch"),
    ("SELECT title FROM books WHERE year = 'many'", TypeMismatch, ("many",), None),
    ("SELECT title + 1 FROM books WHERE title > DATE '2020-01-01'", TypeMismatch, (), None),
    ("SELECT name FROM authors", Unanswerable, ("authors", "id"), "authors"),
    ("SELECT name FROM authors WHERE id > 1000", Unanswerable, ("authors", "id"), "authors"),
    ("SELECT * FROM libraries", Unanswerable, ("libraries", "city", "zip"), "libraries"),
    ("SELECT * FROM holdings WHERE isbn = '1'", Unanswerable, ("holdings", "library_id"), "holdings"),
    ("SELECT a.name FROM authors a, reviews r WHERE a.name = r.reviewer", Unanswerable, ("authors",), None),
    ("SELECT * FROM read_csv('/etc/passwd')", QueryError, (), None),
    ("SELECT * FROM '/etc/passwd'", QueryError, (), None),
]


@pytest.fixture(scope="module")
def web() -> Web:
    return book_trade_web(20)


@pytest.mark.parametrize(("sql", "kind", "said", "place"), BAD, ids=[b[0] or "nothing" for b in BAD])
def test_a_bad_statement(
    web: Web, sql: str, kind: type[QueryError], said: tuple[str, ...], place: str | None
) -> None:
    with pytest.raises(kind) as caught:
        answer(sql, web.catalog)
    error = caught.value
    text = str(error)
    assert all(word in text for word in said), text
    assert "Traceback" not in text
    assert "duckdb" not in text.lower()
    assert "sqlglot" not in text.lower()
    assert len(error.message.splitlines()) == 1, error.message
    if place is not None:
        assert error.position == sql.index(place), (error.position, text)
        line = sql.count("\n", 0, sql.index(place)) + 1
        assert f"line {line}: " in text
        assert "^" in text
    assert web.requests == 0


@pytest.mark.parametrize(("sql", "kind"), [(b[0], b[1]) for b in BAD[:1] + BAD[6:10] + BAD[15:17]])
def test_the_same_by_every_door(web: Web, sql: str, kind: type[QueryError]) -> None:
    with pytest.raises(kind) as first:
        answer(sql, web.catalog)
    with pytest.raises(kind) as second:
        explain(sql, web.catalog)

    async def main() -> str:
        async with mediating(web) as mediator:
            with pytest.raises(kind) as third:
                mediator.answering(sql)
            with pytest.raises(kind):
                async with answering(sql, web.catalog):
                    pass
            return str(third.value)

    assert in_virtual_time(main()) == str(first.value) == str(second.value)
    assert web.requests == 0


def test_a_misspelt_first_word(web: Web) -> None:
    with pytest.raises(Unparsable, match="SELEC") as caught:
        answer("SELEC title FROM books", web.catalog)
    assert caught.value.position == 0


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT name FROM authors", "books.author_id"),
        ("SELECT copies FROM holdings WHERE isbn = '1'", "library_id"),
        ("SELECT shop FROM offers", "isbn"),
    ],
)
def test_advice(web: Web, sql: str, hint: str) -> None:
    with pytest.raises(Unanswerable) as caught:
        answer(sql, web.catalog)
    assert hint in caught.value.hint, caught.value.hint


def test_missing_parameters(web: Web) -> None:
    with pytest.raises(QueryError, match=r"\$1|parameter"):
        answer("SELECT title FROM books WHERE year > $1", web.catalog)


def test_a_policy_that_is_not_there(web: Web) -> None:
    async def main() -> None:
        async with mediating(web) as mediator:
            with pytest.raises(MediatorError, match="no policy 'best'"):
                await ask(mediator, "SELECT title FROM books", policy="best")
        async with mediating(web, Settings(policy="worst")) as mediator:
            with pytest.raises(MediatorError, match="no policy 'worst'"):
                await ask(mediator, "SELECT title FROM books")

    in_virtual_time(main())


def test_a_setting_that_is_not_there(web: Web) -> None:
    async def main() -> None:
        async with mediating(web) as mediator:
            with pytest.raises(TypeError, match="speed"):
                mediator.answering("SELECT title FROM books", speed=11)

    in_virtual_time(main())


def _of_few_pages(catalog: Catalog) -> Catalog:
    relations = {
        name: replace(r, methods=tuple(replace(m, max_pages=50) for m in r.methods))
        for name, r in catalog.relations.items()
    }
    return replace(catalog, relations=relations)


@pytest.mark.parametrize(
    ("endpoint", "fault", "kind", "said"),
    [
        ("books", "garbage", "unreadable", "JSON"),
        ("books", "schema", "schema changed", "title"),
        ("prizes", "schema", "schema changed", "prize"),
        ("authors", "schema", "schema changed", "name"),
        ("reviews", "endless", "endless", "page"),
    ],
)
def test_a_bad_source_is_named(endpoint: str, fault: str, kind: str, said: str) -> None:
    web = book_trade_web(20)
    web.behave(endpoint, Behaviour(latency=Fixed(0.01), faults=(Fault(fault, probability=1.0),)))  # type: ignore[arg-type]
    sql = {
        "books": "SELECT title FROM books",
        "prizes": "SELECT prize FROM prizes",
        "authors": "SELECT name FROM authors WHERE id = 1001",
        "reviews": "SELECT stars FROM books JOIN reviews USING (isbn)",
    }[endpoint]

    async def main() -> None:
        async with mediating(web, catalog=_of_few_pages(web.catalog)) as mediator:
            _, report = await ask(mediator, sql)
            assert not report.complete
            causes = [f.cause for r, f in failures(report) if r == endpoint]
            assert {c.kind for c in causes} == {kind}
            assert all(said in c.message and endpoint in c.message for c in causes), causes

    in_virtual_time(main())
