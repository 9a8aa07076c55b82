"""Preferences as text: what they mean, and what is wrong with those that mean nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mediator.catalog.model import AccessMethod, Catalog, Field, Relation, Source
from mediator.errors import QueryError, TypeMismatch, UnknownColumn, Unparsable, Unsupported
from mediator.query.model import BlockStage, Column, Query
from mediator.query.preferences import preferred
from mediator.query.understand import understand

SCAN = AccessMethod("scan", "scan", (), None)
BOOKS = Relation(
    "books", (Field("isbn", pa.string()), Field("year", pa.int32()), Field("title", pa.string())), (SCAN,)
)
OFFERS = Relation(
    "offers", (Field("isbn", pa.string()), Field("price", pa.float64()), Field("shop", pa.string())), (SCAN,)
)
CATALOG = Catalog({"books": BOOKS, "offers": OFFERS}, {"site": Source("site")})
SQL = "select b.title, o.price from books b join offers o on b.isbn = o.isbn where o.price < 100"


def met(text: str, sql: str = SQL, **columns: list[object]) -> list[bool]:
    """For which rows a preference holds; columns are given as `alias_field`."""
    (found,) = preferred(understand(sql, CATALOG), {text: 2.0}).values()
    (preference,) = found
    query = understand(sql, CATALOG)
    (block,) = [s.block for s in query.stages if isinstance(s, BlockStage)]
    numbers = {a.name: a.number for a in block.aliases}
    given = {}
    for name, values in columns.items():
        alias, _, field = name.partition("_")
        column = Column(numbers[alias], field)
        given[column] = pa.array(values, block.type_of(column))
    assert set(preference.reads) == set(given)
    return list(preference.test(given))


def test_one_alias_or_several() -> None:
    assert met("b.year > 2020", b_year=[2019, 2021, None]) == [False, True, False]
    assert met("o.price * 2 < b.year", o_price=[3.0, 9.0], b_year=[10, 10]) == [True, False]
    assert met("b.title like 'A%' or b.year in (1, 2)", b_title=["Ab", "B"], b_year=[5, 2]) == [True, True]


def test_a_column_without_an_alias_where_only_one_has_it() -> None:
    assert met("YEAR = 1", b_year=[1, 2]) == [True, False]
    assert met("isbn = 'x'", b_isbn=["x", "y"]) == [True, False]  # in both, and equal in every answer


def test_a_value_that_it_fails_on_does_not_meet_it() -> None:
    assert met("b.title::int > 3", b_title=["4", "four", "2"]) == [True, False, False]
    assert met("(b.year * 2)::tinyint > 0", b_year=[1, 2_000]) == [True, False]
    assert met("error(b.title) is null", b_title=["x"]) == [False]
    digits = "0.1234567890123456789012345678901234567"
    assert met(f"b.year > {digits}", b_year=[1, 2_000]) == [True, False], "too many digits for the second"
    assert met(f"b.year < {1 << 127}", b_year=[1]) == [False], "no type of DuckDB has both"


def test_several_each_with_its_weight() -> None:
    query = understand(SQL, CATALOG)
    (found,) = preferred(query, {"b.year > 2020": 10, "o.shop = 'x'": 0.5}).values()
    assert [(p.text, p.weight) for p in found] == [("b.year > 2020", 10.0), ("o.shop = 'x'", 0.5)]
    assert preferred(query, {}) == {}


def test_of_a_part_of_the_query() -> None:
    outer = "select b.title, o.price from books b left join offers o on b.isbn = o.isbn"
    query = understand(outer, CATALOG)
    blocks = {s.name: s.block for s in query.stages if isinstance(s, BlockStage)}
    found = preferred(query, {"b.year > 2020": 10.0})
    assert found
    assert all(any(a.name == "b" for a in blocks[name].aliases) for name in found)
    with pytest.raises(Unsupported, match="fetched apart from one another; write a preference for each"):
        preferred(query, {"b.year > 2020 and o.price > 3": 10.0})


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("", Unparsable, "a preference is a condition, such as b.year > 2020; this one is empty"),
        ("  ", Unparsable, "this one is empty"),
        ("b.year >", Unparsable, ""),
        ("b.year > 1) or (b.year < 5", Unparsable, "a preference is one condition"),
        ("b.year > 1) limit (3", Unparsable, "a preference is one condition"),
        ("b.year > 1) union (select 1", Unparsable, "a preference is one condition"),
        ("b.year > 1; drop table books", Unparsable, ""),
        ("b.yaer > 2020", UnknownColumn, "there is no column 'b.yaer' in the query"),
        ("x.year > 2020", UnknownColumn, "the query's aliases are b, o"),
        ("books.year > 2020", UnknownColumn, "the query's aliases are b, o"),
        ("b.year > 'soon'", TypeMismatch, "soon"),
        ("b.year", TypeMismatch, "true or false of a row; this is of type INTEGER"),
        ("b.title + 1 = 2", TypeMismatch, ""),
        ("nonsense(b.year)", TypeMismatch, "nonsense"),
        ("1 = 1", Unsupported, "speaks of a column at least"),
        ("b.year > (select 1)", Unsupported, "no sub-queries"),
        ("exists (select 1)", Unsupported, "no sub-queries"),
        ("sum(b.year) > 3", Unsupported, "no aggregates"),
        ("row_number() over (order by b.year) < 3", Unsupported, "no aggregates"),
        ("random() < b.year", Unsupported, "must say the same of a row each time"),
        ("read_text(b.title) = 'x'", Unsupported, "not allowed here"),
        ("a.b.c.d = 1", Unsupported, "write alias.column"),
        ("b.year = $year", QueryError, "year"),
    ],
)
def test_what_cannot_be_preferred(text: str, kind: type[QueryError], said: str) -> None:
    with pytest.raises(QueryError) as raised:
        preferred(understand(SQL, CATALOG), {text: 10.0})
    assert isinstance(raised.value, kind), raised.value
    assert said in str(raised.value)


def test_an_error_points_into_the_preference() -> None:
    with pytest.raises(UnknownColumn) as raised:
        preferred(understand(SQL, CATALOG), {"b.year > 1 and b.yaer > 2020": 10.0})
    assert raised.value.sql == "b.year > 1 and b.yaer > 2020"
    assert raised.value.position is not None
    assert raised.value.sql[raised.value.position :].startswith(("b.yaer", "yaer"))
    assert "year" in raised.value.hint


@pytest.mark.parametrize("weight", [0, -1, float("inf"), float("nan"), True, "10", None])
def test_a_weight_is_a_number_above_0(weight: object) -> None:
    with pytest.raises(QueryError, match="must be a number above 0"):
        preferred(understand(SQL, CATALOG), {"b.year > 1": weight})  # type: ignore[dict-item]


def test_a_name_that_two_columns_have_is_said_in_full() -> None:
    sql = "select * from books b join books c on b.isbn = c.isbn"
    query: Query = understand(sql, CATALOG)
    with pytest.raises(UnknownColumn, match=r"'year' may be b\.year or c\.year"):
        preferred(query, {"year > 1": 2.0})
    assert preferred(query, {"c.year > 1": 2.0})
