"""What is said to a database: names are quoted, values are parameters, pages follow the key."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from mediator.catalog.model import Field
from mediator.catalog.statement import Result, Row, Statement
from mediator.catalog.wrapper import Page
from mediator.errors import Refused, SchemaChanged, Unreadable
from tests.wrappers.replies import reply
from wrappers.sql import DIALECTS, SqlWrapper, Table
from wrappers.sql import wrapper as sql_wrapper

EVIL = "x'); DROP TABLE books; --"
POSTGRESQL, SQLITE = DIALECTS["postgresql"], DIALECTS["sqlite"]


def _wrapper(key: bool = True, dialect: str = "postgresql", page: int = 3) -> SqlWrapper:
    fields = (Field("isbn", pa.string()), Field("year", pa.int32()))
    columns = {"isbn": "ISBN", "year": 'the "year"'}
    paged = ("ISBN",) if key else ()
    table = Table(DIALECTS[dialect], ("shop", "books"), (*columns.values(), *paged), paged)
    return SqlWrapper("books", fields, table, columns, page)


def _read(wrapper: SqlWrapper, request: Statement, *rows: Row) -> Page:
    return wrapper.read(request, (), ((),), Result(200, {}, b"", tuple(rows)))


def _then(page: Page) -> Statement:
    (request,) = page.then
    assert isinstance(request, Statement)
    return request


def test_a_lookup_sends_names_quoted_and_values_apart() -> None:
    request = _wrapper().request(("isbn",), ((EVIL,), ("2",)))
    assert request.sql == (
        'SELECT r."ISBN", r."the ""year""", r."ISBN" FROM "shop"."books" AS r '
        'WHERE r."ISBN" IN ($1, $2) ORDER BY r."ISBN" LIMIT 3'
    )
    assert request.parameters == (EVIL, "2")


def test_several_bind_fields_are_alternatives() -> None:
    request = _wrapper(key=False, dialect="sqlite").request(("isbn", "year"), (("a", 1), ("b", 2)))
    assert (
        'WHERE ((r."ISBN" = ?1 AND r."the ""year""" = ?2) OR (r."ISBN" = ?3 AND r."the ""year""" = ?4))'
        in request.sql
    )
    assert request.parameters == ("a", 1, "b", 2)


def test_sqlite_is_given_dates_as_it_keeps_them() -> None:
    day = date(2026, 1, 2)
    assert SQLITE.value(day) == "2026-01-02"
    assert POSTGRESQL.value(day) is day


def test_a_short_first_page_is_the_only_one() -> None:
    wrapper = _wrapper()
    page = _read(wrapper, wrapper.request((), ((),)), ("a", 1, "a"), ("b", None, "b"))
    assert page.rows.to_pylist() == [{"isbn": "a", "year": 1}, {"isbn": "b", "year": None}]
    assert page.then == ()


def test_pages_go_on_after_the_last_key_and_end_with_those_that_have_none() -> None:
    wrapper = _wrapper()
    first = _read(wrapper, wrapper.request((), ((),)), (None, 0, None), ("a", 1, "a"), ("b", 2, "b"))
    assert [row["isbn"] for row in first.rows.to_pylist()] == ["a", "b"]
    second = _then(first)
    assert '(r."ISBN") >= ($1)' in second.sql
    assert second.parameters == ("b",)
    page = _read(wrapper, second, ("b", 2, "b"), ("c", 3, "c"))
    assert [row["isbn"] for row in page.rows.to_pylist()] == ["c"]
    last = _then(page)
    assert 'WHERE (r."ISBN" IS NULL)' in last.sql
    end = _read(wrapper, last, (None, 0, None))
    assert end.rows.to_pylist() == [{"isbn": None, "year": 0}]
    assert end.then == ()


def test_a_page_of_nothing_but_rows_without_a_key_goes_on_with_those_that_have_one() -> None:
    wrapper = _wrapper()
    page = _read(wrapper, wrapper.request((), ((),)), *[(None, n, None) for n in range(3)])
    assert page.rows.num_rows == 0
    assert 'WHERE r."ISBN" IS NOT NULL ORDER' in _then(page).sql


def test_a_value_that_was_asked_for_is_not_taken_for_the_key_of_the_page_before() -> None:
    wrapper = _wrapper()
    asked = ("year",), ((7,),)
    nothing = Result(200, {}, b"", ((None, 7, None),) * 3)
    page = wrapper.read(wrapper.request(*asked), *asked, nothing)
    page = wrapper.read(_then(page), *asked, Result(200, {}, b"", (("7", 7, 7), ("8", 7, 8))))
    assert page.rows.num_rows == 2


def test_a_key_of_two_rows_is_told() -> None:
    wrapper = _wrapper()
    second = _then(_read(wrapper, wrapper.request((), ((),)), ("a", 1, "a"), ("b", 2, "b"), ("c", 3, "c")))
    with pytest.raises(SchemaChanged, match=r"books: two rows have the key \('c',\): declare a 'key'"):
        _read(wrapper, second, ("c", 3, "c"), ("c", 4, "c"))


def test_without_a_key_there_is_an_end_to_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_wrapper, "UNPAGED", 2)
    wrapper = _wrapper(key=False)
    request = wrapper.request((), ((),))
    assert request.sql.endswith("LIMIT 3")
    assert _read(wrapper, request, ("a", 1), ("a", 1)).rows.num_rows == 2
    with pytest.raises(Unreadable, match="more than 2 rows and no key to read them in pages by: declare"):
        _read(wrapper, request, ("a", 1), ("b", 1), ("c", 1))


def test_a_reply_of_a_web_site_is_refused() -> None:
    wrapper = _wrapper()
    with pytest.raises(Refused, match="not the rows of a database"):
        wrapper.read(wrapper.request((), ((),)), (), ((),), reply("[]"))
