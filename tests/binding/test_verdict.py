"""Who provides what: chains, cycles, several inputs, constants, lists, and what comes of sub-queries."""

from __future__ import annotations

import pytest

from mediator.binding import choose, verdict
from mediator.errors import Unanswerable
from mediator.query import understand
from mediator.query.model import BlockStage
from tests.binding.trade import SCAN, TRADE, block_of, catalog, method, relation, told, verdict_of


def chosen(sql: str) -> dict[str, str]:
    block = block_of(sql)
    return told(verdict(block, sql, TRADE), block)


def test_scan() -> None:
    assert chosen("SELECT * FROM books") == {"books": "scan"}


def test_join_column_feeds_an_index() -> None:
    assert chosen("SELECT * FROM books b JOIN offers o USING (isbn)") == {
        "b": "scan",
        "o": "by_isbn isbn<b.isbn",
    }


def test_chain() -> None:
    sql = "SELECT * FROM prizes p JOIN reviews r ON r.isbn = p.isbn JOIN offers o ON o.isbn = r.isbn"
    found = chosen(sql)
    assert found["p"] == "scan"
    assert found["r"].startswith("by_isbn isbn<p.isbn")
    # Equal columns are one class: offers can be fed by either, and both are offered.
    block = block_of(sql)
    feeds = {p.inputs[0].column.alias for p in verdict(block).providers[2] if p.inputs[0].column}
    assert feeds == {0, 1}


def test_each_alias_comes_after_those_it_needs() -> None:
    found = verdict_of(
        "SELECT * FROM authors a, books b, offers o WHERE a.id = b.author_id AND o.isbn = b.isbn"
    )
    place = {alias: n for n, alias in enumerate(found.order)}
    for provider in found.chosen:
        for other in place:
            if provider.depends >> other & 1:
                assert place[other] < place[provider.alias]


def test_constant_binds() -> None:
    assert chosen("SELECT * FROM offers WHERE isbn = 'i1'") == {"offers": "by_isbn isbn='i1'"}


def test_constant_of_an_equal_column_binds() -> None:
    sql = "SELECT * FROM offers o JOIN reviews r ON r.isbn = o.isbn WHERE r.isbn = 'i1'"
    assert chosen(sql) == {"o": "by_isbn isbn='i1'", "r": "by_isbn isbn='i1'"}


def test_constant_comes_in_the_fields_own_type() -> None:
    (provider,) = verdict_of("SELECT * FROM prizes WHERE year = '1999'").chosen
    assert provider.inputs[0].constant == 1999


def test_constants_come_before_a_scan_and_a_scan_before_what_waits() -> None:
    found = verdict_of("SELECT * FROM prizes WHERE year = 1999")
    assert [p.method.name for p in found.providers[0]] == ["by_year", "scan"]
    found = verdict_of("SELECT * FROM prizes p JOIN books b ON b.year = p.year")
    assert [p.method.name for p in found.providers[0]] == ["scan", "by_year"]


def test_list_binds() -> None:
    found = chosen("SELECT * FROM offers WHERE isbn IN ('i1', 'i2', NULL)")
    assert found == {"offers": "by_isbn isbn<offers.isbn in list.value", "offers.isbn in list": "literal"}


def test_list_on_an_equal_column_binds() -> None:
    found = chosen("SELECT * FROM offers o, reviews r WHERE o.isbn = r.isbn AND o.isbn IN ('i1', 'i2')")
    assert {v.split("<")[1] for k, v in found.items() if k in "or"} == {"o.isbn in list.value"}


def test_list_that_binds_nothing_is_a_condition() -> None:
    block = block_of("SELECT * FROM books WHERE year IN (1, 2)")
    assert [a.name for a in block.aliases] == ["books"]
    assert len(block.predicates) == 1


def test_ors_are_a_list() -> None:
    assert "offers.isbn in list" in chosen("SELECT * FROM offers WHERE isbn = 'a' OR isbn = 'b'")


@pytest.mark.parametrize("where", ["l.city = 'Oslo'", "l.zip = '0150'"])
def test_any_of(where: str) -> None:
    field = where[2:6].strip(" =")
    value = where.split("= ")[1]
    assert chosen(f"SELECT * FROM libraries l WHERE {where}") == {"l": f"search {field}={value}"}


def test_two_inputs_from_two_tables() -> None:
    sql = """SELECT * FROM holdings h, books b, libraries l
             WHERE h.isbn = b.isbn AND h.library_id = l.library_id AND l.city = 'Oslo'"""
    found = chosen(sql)
    assert found["h"] == "lookup isbn<b.isbn library_id<l.library_id"
    found_verdict = verdict_of(sql)
    assert found_verdict.chosen[0].depends == 0b110


def test_every_combination_of_inputs_is_a_provider() -> None:
    sql = """SELECT * FROM holdings h, books b, prizes p, libraries l
             WHERE h.isbn = b.isbn AND b.isbn = p.isbn
             AND h.library_id = l.library_id AND l.city = 'Oslo'"""
    assert len(verdict_of(sql).providers[0]) == 2


def test_fewer_waits_are_preferred() -> None:
    trade = catalog(
        relation("a", "x:i y:i", SCAN),
        relation("b", "y:i", SCAN),
        relation("c", "x:i y:i", method("both", required="x y")),
    )
    sql = "SELECT * FROM a, b, c WHERE c.x = a.x AND c.y = a.y AND c.y = b.y"
    ranked = verdict_of(sql, trade).providers[2]
    assert [p.depends.bit_count() for p in ranked] == [1, 2]


def test_larger_batches_are_preferred() -> None:
    trade = catalog(
        relation("a", "x:i", SCAN),
        relation("b", "x:i", method("one", required="x"), method("many", required="x", batch_size=50)),
    )
    assert verdict_of("SELECT * FROM a JOIN b USING (x)", trade).chosen[1].method.name == "many"


def test_optional_field_is_bound_by_a_constant_only() -> None:
    sql = "SELECT * FROM books b JOIN reviews r USING (isbn) WHERE r.stars = 5"
    assert chosen(sql)["r"] == "by_isbn isbn<b.isbn stars=5"
    sql = "SELECT * FROM books b JOIN reviews r ON r.isbn = b.isbn AND r.stars = b.year"
    assert {p.bind_set for p in verdict_of(sql).providers[1]} == {("isbn",)}


def test_every_width_of_integer_binds_every_other() -> None:
    assert chosen("SELECT * FROM books b JOIN authors a ON a.id = b.author_id")["a"] == "by_id id<b.author_id"


def test_expression_binds() -> None:
    found = chosen("SELECT * FROM books b JOIN authors a ON a.id = b.author_id + 1")
    assert found["a"] == 'by_id id<b."author_id" + 1'


def test_lossless_cast_binds() -> None:
    trade = catalog(
        relation("a", "f:f", SCAN),
        relation("b", "n:n", method("by_n", required="n")),
        relation("c", "f:f", method("by_f", required="f")),
    )
    block = block_of("SELECT * FROM a JOIN b ON b.n = a.f", trade)
    (_, provider) = verdict(block).chosen
    assert provider.inputs[0].column is not None
    # The index is asked in its own type, and only for values that are of it.
    assert block.type_of(provider.inputs[0].column) == block.type_of(block.classes[0].columns[-1])
    block = block_of("SELECT * FROM a JOIN b ON b.n = a.f JOIN c ON c.f = b.n WHERE b.n = 3", trade)
    assert len(verdict(block).chosen) == 3


def test_cycle_with_a_way_in() -> None:
    sql = """SELECT * FROM reviews r, offers o, books b
             WHERE r.isbn = o.isbn AND o.isbn = b.isbn AND b.isbn = r.isbn"""
    assert verdict_of(sql).order[0] == 2


def test_cycle_without_a_way_in() -> None:
    with pytest.raises(Unanswerable):
        verdict_of("SELECT * FROM reviews r JOIN offers o USING (isbn)")


def test_provider_that_waits_for_its_own_alias_is_not_usable() -> None:
    trade = catalog(
        relation("a", "x:i", SCAN, method("by_x", required="x")),
        relation("b", "x:i", method("by_x", required="x")),
    )
    found = verdict_of("SELECT * FROM a JOIN b USING (x)", trade)
    # b can be asked only with what a brings, so b cannot feed a.
    assert [p.method.name for p in found.providers[0]] == ["scan"]


def test_self_join_of_an_index() -> None:
    sql = "SELECT * FROM offers x JOIN offers y ON x.isbn = y.isbn WHERE x.isbn = 'i1' AND x.price < y.price"
    assert chosen(sql) == {"x": "by_isbn isbn='i1'", "y": "by_isbn isbn='i1'"}


def test_result_of_a_subquery_binds() -> None:
    sql = "SELECT * FROM offers WHERE isbn IN (SELECT isbn FROM books WHERE year > 2000)"
    assert chosen(sql) == {"offers": "by_isbn isbn<found.v0", "found": "stage"}


def test_what_a_subquery_needs_is_bound_by_the_query_around_it() -> None:
    sql = "SELECT * FROM books b WHERE b.isbn IN (SELECT r.isbn FROM reviews r WHERE r.stars > 3)"
    found = chosen(sql)
    assert found["r"] == "by_isbn isbn<frame.b.isbn"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM books b LEFT JOIN offers o ON o.isbn = b.isbn",
        "SELECT * FROM offers o RIGHT JOIN books b ON o.isbn = b.isbn",
        "SELECT *, (SELECT max(price) FROM offers o WHERE o.isbn = b.isbn) AS m FROM books b",
        "SELECT * FROM books b WHERE NOT EXISTS (SELECT 1 FROM offers o WHERE o.isbn = b.isbn)",
        "SELECT * FROM books b JOIN (SELECT isbn, max(price) AS m FROM offers GROUP BY isbn) o USING (isbn)",
        "SELECT * FROM books b LEFT JOIN (SELECT isbn, max(price) FROM offers GROUP BY 1) o USING (isbn)",
        "SELECT * FROM books b, LATERAL (SELECT max(price) AS m FROM offers o WHERE o.isbn = b.isbn) x",
        "WITH o AS (SELECT isbn, count(*) FROM offers GROUP BY 1) SELECT * FROM books JOIN o USING (isbn)",
        "SELECT * FROM books JOIN (SELECT isbn FROM offers UNION SELECT isbn FROM reviews) u USING (isbn)",
        "SELECT * FROM (SELECT isbn, count(*) AS n FROM offers GROUP BY isbn) x WHERE x.isbn = 'i1'",
        "SELECT * FROM authors a WHERE EXISTS (SELECT 1 FROM books b WHERE b.author_id = a.id)",
    ],
)
def test_bindings_reach_into_every_kind_of_query(sql: str) -> None:
    for stage in understand(sql, TRADE).stages:
        if isinstance(stage, BlockStage):
            found = verdict(stage.block, sql, TRADE)
            assert [p.alias for p in found.chosen] == [a.number for a in stage.block.aliases]


def test_nothing_is_needed_where_nothing_can_match() -> None:
    found = verdict_of("SELECT * FROM reviews WHERE 1 = 2")
    assert found.chosen == ()


def test_choose_again_without_what_failed() -> None:
    found = verdict_of("SELECT * FROM prizes WHERE year = 1999")
    again = choose(found.providers, without={(0, "by_year")})
    assert again is not None
    assert again[0][0].method.name == "scan"
    assert choose(found.providers, without={(0, "by_year"), (0, "scan")}) is None


def test_choose_again_can_turn_the_order_round() -> None:
    trade = catalog(
        relation("a", "x:i", SCAN, method("by_x", required="x")),
        relation("b", "x:i", SCAN, method("by_x", required="x")),
    )
    found = verdict_of("SELECT * FROM a JOIN b USING (x)", trade)
    assert [p.method.name for p in found.chosen] == ["scan", "scan"]
    without_a = choose(found.providers, without=[(0, "scan")])
    assert without_a is not None
    assert [p.method.name for p in without_a[0]] == ["by_x", "scan"]
    assert without_a[1] == (1, 0)
    assert choose(found.providers, without=[(0, "scan"), (1, "scan")]) is None
