"""What a block says of its conditions: classes of equal columns, constants, computed columns, comparisons."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mediator.query import understand
from mediator.query.model import Block, BlockStage, Column, Comparison
from tests.query.naive import CATALOG


def block(sql: str) -> Block:
    return next(s.block for s in reversed(understand(sql, CATALOG).stages) if isinstance(s, BlockStage))


def classes(sql: str) -> list[tuple[set[str], object]]:
    found = block(sql)
    return [
        ({f"{found.aliases[c.alias].name}.{c.field}" for c in e.columns}, e.constant) for e in found.classes
    ]


def texts(sql: str) -> list[str]:
    return [p.text for p in block(sql).predicates]


def test_equalities_form_classes() -> None:
    sql = "SELECT 1 FROM books b, offers o, reviews r WHERE b.isbn = o.isbn AND o.isbn = r.isbn"
    assert classes(sql) == [({"b.isbn", "o.isbn", "r.isbn"}, None)]
    assert texts(sql) == []


def test_equality_within_one_alias_is_a_selection() -> None:
    sql = "SELECT 1 FROM books b, offers o WHERE b.isbn = b.title AND b.isbn = o.isbn"
    assert classes(sql) == [({"b.isbn", "o.isbn"}, None)]
    assert texts(sql) == ["b.isbn = b.title"]


def test_two_columns_of_one_alias_in_a_class_are_compared_on_that_alias() -> None:
    sql = "SELECT 1 FROM books b, offers o WHERE b.isbn = o.isbn AND b.title = o.isbn"
    assert classes(sql) == [({"b.isbn", "b.title", "o.isbn"}, None)]
    assert texts(sql) == ["b.isbn = b.title"]


def test_constant_joins_its_class_and_is_checked_on_every_member() -> None:
    sql = "SELECT 1 FROM books b, offers o WHERE b.isbn = o.isbn AND b.isbn = 'i1'"
    assert classes(sql) == [({"b.isbn", "o.isbn"}, "i1")]
    assert texts(sql) == ["b.isbn = 'i1'", "o.isbn = 'i1'"]


@pytest.mark.parametrize(
    "where",
    [
        "b.year = 1 AND b.year = 2",
        "b.year = 5.5",
        "b.year = NULL",
        "b.year IN (NULL, 2.5)",
        "1 = 2",
        "NULL",
        "b.year = p.year AND b.year = 1 AND p.year = 2",
    ],
)
def test_what_can_never_match_is_seen(where: str) -> None:
    found = block(f"SELECT 1 FROM books b, prizes p WHERE {where}")
    assert found.never


def test_constant_is_of_the_fields_type() -> None:
    found = block("SELECT 1 FROM prizes WHERE awarded = '2024-01-01' AND year = 1999.0 AND prize = 'x'")
    assert {type(e.constant).__name__ for e in found.classes} == {"date", "int", "str"}


def test_integers_of_all_widths_are_one_class() -> None:
    found = block("SELECT 1 FROM books b, authors a, kinds k WHERE b.author_id = a.id AND a.id = k.i8")
    (equal,) = found.classes
    assert {found.type_of(c) for c in equal.columns} == {pa.int64(), pa.int32(), pa.int8()}
    assert not any(a.computed for a in found.aliases)


def test_other_types_are_cast_to_one() -> None:
    for condition in ("a.id = k.f", "a.id = k.d", "k.f4 = p.year", "k.u64 = a.id", "p.at = p2.awarded"):
        found = block(f"SELECT 1 FROM authors a, kinds k, prizes p, prizes p2 WHERE {condition}")
        for equal in found.classes:
            assert len({found.type_of(c) for c in equal.columns}) == 1, condition


def test_expression_of_one_alias_is_a_computed_column() -> None:
    found = block("SELECT 1 FROM books b, prizes p WHERE p.year = b.year + 1")
    (computed,) = found.aliases[0].computed
    assert (computed.name, computed.reads, computed.type) == ('"year" + 1', ("year",), pa.int32())
    batch = pa.record_batch([pa.array([1, None, 3], pa.int32())], names=["year"])
    assert computed.evaluate(batch).to_pylist() == [2, None, 4]


def test_one_expression_has_one_name_whatever_the_alias() -> None:
    one = block("SELECT 1 FROM books b, prizes p WHERE p.year = b.year + 1").aliases[0].computed
    two = block("SELECT 1 FROM books x, prizes p WHERE x.year + 1 = p.year").aliases[0].computed
    assert one[0].name == two[0].name


def test_expression_of_two_aliases_is_a_condition() -> None:
    sql = "SELECT 1 FROM books b, prizes p, reviews r WHERE b.year = p.year + r.stars"
    assert classes(sql) == []
    assert [p.aliases for p in block(sql).predicates] == [0b111]


def test_comparison_between_aliases() -> None:
    found = block("SELECT 1 FROM books b, prizes p WHERE p.year >= b.year AND b.title < p.prize")
    assert [p.comparison for p in found.predicates] == [
        Comparison(Column(0, "year"), "<=", Column(1, "year")),
        Comparison(Column(0, "title"), "<", Column(1, "prize")),
    ]


def test_between_is_two_comparisons() -> None:
    found = block("SELECT 1 FROM books b, prizes p WHERE p.year BETWEEN b.year AND b.year + 50")
    assert [p.comparison is not None for p in found.predicates] == [True, False]


@pytest.mark.parametrize(
    "where", ["b.year < p.awarded::VARCHAR::INT", "b.year < 3", "b.year < b.author_id", "b.year <> p.year"]
)
def test_what_is_no_comparison(where: str) -> None:
    assert [p.comparison for p in block(f"SELECT 1 FROM books b, prizes p WHERE {where}").predicates] == [
        None
    ]


def test_list_of_values_where_it_binds() -> None:
    found = block("SELECT 1 FROM offers WHERE isbn IN ('i1', 'i2', 'i1', NULL)")
    listed = found.aliases[1].relation
    assert listed.literal is not None
    assert listed.literal.to_pydict() == {"value": ["i1", "i2"]}
    assert listed.methods[0].wrapper is None
    assert [set(e.columns) for e in found.classes] == [{Column(0, "isbn"), Column(1, "value")}]


def test_list_of_one_is_a_constant() -> None:
    assert classes("SELECT 1 FROM offers WHERE isbn IN ('i1')") == [({"offers.isbn"}, "i1")]


def test_conditions_may_be_costly() -> None:
    found = block(
        "SELECT 1 FROM books WHERE levenshtein(title, 'x') < 3 AND regexp_matches(title, 'a') AND year > 1"
    )
    assert [p.costly for p in found.predicates] == [True, True, False]


def test_masks_and_reads_agree() -> None:
    found = block("SELECT 1 FROM books b, offers o WHERE b.isbn = o.isbn AND (b.year > 1 OR o.price > 2)")
    (predicate,) = found.predicates
    assert predicate.aliases == 0b11
    assert set(predicate.reads) == {Column(0, "year"), Column(1, "price")}


def test_unknown_is_not_true() -> None:
    found = block("SELECT 1 FROM books WHERE NOT (year > 5 AND title LIKE 'a%')")
    (predicate,) = found.predicates
    columns = {
        Column(0, "year"): pa.array([9, 9, None, None, 1], pa.int32()),
        Column(0, "title"): pa.array(["a", None, "b", "ab", None]),
    }
    assert predicate.test(columns).tolist() == [False, False, True, False, True]
    assert predicate.test(columns).dtype == np.bool_


def test_empty_batches_can_be_tested() -> None:
    for where in ("year > 5", "sqrt(year) > 5", "title LIKE 'a%'", "year IN (1, 2)"):
        (predicate,) = block(f"SELECT 1 FROM books WHERE {where}").predicates
        columns = {
            c: pa.array([], CATALOG.relations["books"].schema.field(c.field).type) for c in predicate.reads
        }
        assert predicate.test(columns).shape == (0,)


def test_a_guard_keeps_bad_values_from_a_condition_that_may_fail() -> None:
    found = block(
        "SELECT 1 FROM books WHERE regexp_full_match(title, '[0-9]+') AND CAST(title AS INTEGER) > 3"
    )
    column = {Column(0, "title"): pa.array(["x", "5", None, "2"])}
    assert found.predicates[1].test(column).tolist() == [False, True, False, False]
