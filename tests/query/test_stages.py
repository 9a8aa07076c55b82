"""Which stages a statement becomes, and which of them stream."""

from __future__ import annotations

import sys
from types import FrameType

import pyarrow as pa
import pytest

from mediator.query import understand
from mediator.query.model import ROW_ID, Block, BlockStage, Query, SqlStage
from tests.query.naive import CATALOG


def stages(sql: str) -> Query:
    return understand(sql, CATALOG)


def blocks(sql: str) -> list[Block]:
    return [s.block for s in stages(sql).stages if isinstance(s, BlockStage)]


def last(sql: str) -> SqlStage:
    stage = stages(sql).stages[-1]
    assert isinstance(stage, SqlStage)
    return stage


def names(block: Block) -> list[str]:
    return [a.relation.name for a in block.aliases]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b.title, o.price AS p FROM books b JOIN offers o USING (isbn) WHERE b.year > 1900",
        "SELECT * FROM books",
        "SELECT t FROM (SELECT title AS t, year FROM books) x WHERE year > 1900",
        "WITH x AS (SELECT * FROM books) SELECT x.title, y.title FROM x, x y WHERE x.year < y.year",
    ],
)
def test_columns_only_need_no_stage_above_the_block(sql: str) -> None:
    (stage,) = stages(sql).stages
    assert isinstance(stage, BlockStage)


def test_outputs_are_only_what_is_needed_above() -> None:
    (block,) = blocks(
        "SELECT upper(b.title) FROM books b JOIN offers o ON o.isbn = b.isbn WHERE b.year > 1900"
    )
    assert [o.name for o in block.outputs] == ["b.title"]


def test_rows_are_counted_though_no_column_is_shown() -> None:
    (block,) = blocks("SELECT count(*) FROM books WHERE year > 1900")
    assert [o.column.field for o in block.outputs] == [ROW_ID]


@pytest.mark.parametrize(
    ("sql", "limit", "offset", "distinct"),
    [
        ("SELECT upper(title) FROM books", None, 0, False),
        ("SELECT title || '!' FROM books LIMIT 5", 5, 0, False),
        ("SELECT title FROM books LIMIT 5 OFFSET 2", 5, 2, False),
        ("SELECT DISTINCT publisher FROM books", None, 0, True),
        ("SELECT DISTINCT upper(publisher) FROM books LIMIT 3", 3, 0, True),
        ("SELECT unnest([1, 2]) FROM books", None, 0, False),
    ],
)
def test_row_by_row_streams(sql: str, limit: int | None, offset: int, distinct: bool) -> None:
    stage = last(sql)
    assert (stage.rowwise, stage.limit, stage.offset, stage.distinct) == (True, limit, offset, distinct)
    assert len(stage.reads) == 1


def test_columns_that_are_only_counted_or_told_apart_pass_through() -> None:
    assert last("SELECT title, year FROM books LIMIT 5").sql == ""
    assert last("SELECT DISTINCT title, year FROM books").sql == ""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM books",
        "SELECT geomean(year) FROM books",
        "SELECT title FROM books ORDER BY year",
        "SELECT publisher FROM books GROUP BY publisher",
        "SELECT DISTINCT ON (publisher) title FROM books",
        "SELECT row_number() OVER () FROM books",
        "SELECT title FROM books QUALIFY row_number() OVER (ORDER BY year) = 1",
        "SELECT title FROM books LIMIT 40%",
        "SELECT title FROM books UNION SELECT name FROM authors WHERE id = 1",
        "SELECT b.title FROM books b LEFT JOIN offers o USING (isbn)",
        "SELECT title FROM books WHERE isbn NOT IN (SELECT isbn FROM prizes)",
    ],
)
def test_what_needs_all_rows_does_not_stream(sql: str) -> None:
    assert not last(sql).rowwise


def test_union_all_streams() -> None:
    query = stages(
        "SELECT year FROM books UNION ALL SELECT year + 0 FROM prizes UNION ALL SELECT 1 FROM authors LIMIT 9"
    )
    stage = query.stages[-1]
    assert isinstance(stage, SqlStage)
    assert (stage.rowwise, stage.sql, len(stage.reads), stage.limit) == (True, "", 3, 9)
    schemas = {s.schema.field(0) for s in query.stages if s.name in stage.reads}
    assert schemas == {pa.field("year", pa.int64())}


def test_best_k_keeps_only_what_can_still_matter() -> None:
    stage = last(
        "SELECT upper(title) AS t FROM books WHERE year > 1900 ORDER BY t DESC, 1, year LIMIT 3 OFFSET 2"
    )
    assert stage.prune.endswith("LIMIT 5")
    assert "UPPER" in stage.prune
    assert not last("SELECT publisher, count(*) FROM books GROUP BY 1 ORDER BY 2 LIMIT 3").prune
    assert not last("SELECT DISTINCT title FROM books ORDER BY title LIMIT 3").prune
    assert not last("SELECT title FROM books ORDER BY title").prune


def test_in_subquery_is_joined_and_streams() -> None:
    query = stages("SELECT title FROM books WHERE isbn IN (SELECT isbn FROM prizes WHERE year > 1950)")
    first, found, block = query.stages
    assert isinstance(first, BlockStage)
    assert isinstance(found, SqlStage)
    assert isinstance(block, BlockStage)
    assert (found.rowwise, found.distinct) == (True, True)
    assert names(block.block) == ["books", found.name]


def test_exists_is_in() -> None:
    sql = (
        "SELECT title FROM books b WHERE EXISTS (SELECT 1 FROM prizes p WHERE p.isbn = b.isbn AND p.year > 9)"
    )
    assert [len(b.aliases) for b in blocks(sql)] == [1, 2]
    assert isinstance(stages(sql).stages[-1], BlockStage)


def test_left_join_fetches_by_what_is_there() -> None:
    query = stages(
        "SELECT b.title, o.price FROM books b LEFT JOIN offers o ON o.isbn = b.isbn AND o.price > 9"
    )
    books, frame, offers, once, answer = query.stages
    assert isinstance(books, BlockStage)
    assert isinstance(frame, SqlStage)
    assert (frame.rowwise, frame.distinct, frame.reads) == (True, True, (books.name,))
    assert isinstance(offers, BlockStage)
    assert names(offers.block) == ["offers", frame.name]
    assert [p.text for p in offers.block.predicates] == ["o.price > 9"]
    assert ROW_ID in [o.column.field for o in offers.block.outputs]
    assert isinstance(once, SqlStage)
    assert once.distinct
    assert answer.name == query.stages[-1].name


def test_left_join_with_what_can_only_be_scanned_waits_for_nothing() -> None:
    sql = "SELECT b.title, p.prize FROM books b LEFT JOIN prizes p ON p.isbn = b.isbn"
    assert [names(b) for b in blocks(sql)] == [["books"], ["prizes"]]


def test_conditions_reach_below_outer_joins_only_where_they_may() -> None:
    (books, _) = blocks(
        "SELECT b.title FROM books b LEFT JOIN prizes p ON p.isbn = b.isbn "
        "WHERE b.year > 1900 AND p.year > 1900"
    )
    assert [p.text for p in books.predicates] == ["b.year > 1900"]
    for block in blocks("SELECT 1 FROM books b FULL JOIN prizes p ON p.isbn = b.isbn WHERE b.year > 1900"):
        assert names(block) in (["books"], ["prizes"], [block.aliases[0].relation.name])
        if names(block)[0] in CATALOG.relations:
            assert not block.predicates


def test_with_entry_that_is_named_twice_is_run_once() -> None:
    query = stages(
        "WITH x AS (SELECT publisher, count(*) AS n FROM books GROUP BY 1) "
        "SELECT a.n FROM x a JOIN x b ON a.n = b.n"
    )
    assert [type(s).__name__ for s in query.stages] == ["BlockStage", "SqlStage", "BlockStage"]


def test_simple_derived_tables_are_merged() -> None:
    (block,) = blocks(
        "SELECT y.t FROM (SELECT x.title AS t, x.isbn FROM (SELECT * FROM books WHERE year > 1) x) y, "
        "offers o "
        "WHERE o.isbn = y.isbn"
    )
    assert names(block) == ["books", "offers"]


def test_stage_names_are_no_relations_names() -> None:
    from tests.query.naive import catalog_of

    tables = {"block": pa.table({"a": [1]}), "answer": pa.table({"a": [1]})}
    query = understand("SELECT count(*) FROM block JOIN answer USING (a)", catalog_of(tables))
    assert not {s.name for s in query.stages} & {"block", "answer"}


def test_a_stage_reads_only_earlier_ones() -> None:
    from tests.query.statements import PLAIN

    for sql in PLAIN:
        seen: set[str] = set()
        for stage in stages(sql).stages:
            reads = stage.reads if isinstance(stage, SqlStage) else names(stage.block)
            assert all(r in seen or r in CATALOG.relations or "in list" in r for r in reads), sql
            assert stage.name not in seen
            seen.add(stage.name)


def test_names_and_types_of_the_answer() -> None:
    schema = stages("SELECT title, year AS Title, count(*) OVER (), 1.5, year + 1 FROM books").schema
    assert schema.names == ["title", "Title_1", "count() OVER ()", "1.5", '("year" + 1)']
    assert schema.types == [pa.string(), pa.int32(), pa.int64(), pa.decimal128(2, 1), pa.int32()]


def test_position_of_each_alias_is_known() -> None:
    sql = "SELECT 1 FROM books b JOIN offers o USING (isbn)"
    (block,) = blocks(sql)
    assert [a.position for a in block.aliases] == [sql.index("books"), sql.index("offers")]


def test_ten_times_as_long_a_list_is_ten_times_as_much_work() -> None:
    def work(values: int) -> int:
        """Calls of functions, of Python's and others."""
        calls = 0

        def count(_frame: FrameType, event: str, _said: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sql = f"SELECT * FROM books WHERE isbn IN ({', '.join(repr(str(n)) for n in range(values))})"
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            stages(sql)
        finally:
            sys.setprofile(before)
        return calls

    assert work(5_000) < 15 * work(500)


@pytest.mark.parametrize(
    "clock", ["now()", "current_timestamp", "current_date", "today()", "current_time", "localtimestamp"]
)
def test_the_clock_is_read_once(clock: str) -> None:
    query = stages(f"SELECT {clock} AS moment FROM books WHERE {clock} IS NOT NULL")
    stage = query.stages[-1]
    assert isinstance(stage, SqlStage)
    assert "CAST('" in stage.sql
    assert clock.upper() not in stage.sql.upper()
