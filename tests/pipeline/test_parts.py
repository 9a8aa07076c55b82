"""What needs no Spark session: how limits are shared, what filters become, what options say."""

from __future__ import annotations

import datetime
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, Not, StringStartsWith

import sources
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.model import Catalog
from mediator.query.understand import understand
from pipeline.dividing import divided, most_tasks
from pipeline.errors import BadOption
from pipeline.filling import Given, steady
from pipeline.filters import Condition, Pushing, Statement
from pipeline.limits import portion_of, settings_for
from pipeline.options import wanted
from pipeline.reading import RelationReader
from pipeline.spread.errors import SpreadError
from pipeline.spread.parquet import prepared, put_batch

ANSWER = pa.schema([("a", pa.int64())])


@pytest.fixture
def catalog() -> Catalog:
    return sources.load_book_trade("http://site.test")


def test_a_folder_of_answers_is_of_one_query(tmp_path: Path) -> None:
    """What somebody else has put there is never taken for answers, and never removed."""
    folder = tmp_path / "answers"
    prepared(folder, "one", ANSWER)
    put_batch(folder, pa.record_batch({"a": [1]}))
    with pytest.raises(SpreadError, match=r"there is part-00000000\.parquet already: name a folder"):
        prepared(folder, "another", ANSWER)
    assert len(list(folder.glob("part-*.parquet"))) == 1
    prepared(folder, "one", ANSWER)  # goes on, and gives all of it once more
    assert not list(folder.glob("part-*.parquet"))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(SpreadError, match=r"there is .+ already"):
        prepared(tmp_path, "one", ANSWER)
    with pytest.raises(SpreadError, match="answers cannot be written there: Not a directory"):
        prepared(tmp_path / "notes.txt" / "below", "one", ANSWER)
    assert (tmp_path / "notes.txt").exists()
    spans = pa.schema([("a", pa.int64()), ("spans", pa.list_(pa.month_day_nano_interval()))])
    with pytest.raises(SpreadError, match=r"Parquet has no type for spans \(list.+\): cast it in the query"):
        prepared(tmp_path / "spans", "one", spans)


@pytest.mark.parametrize("tasks", range(1, 8))
def test_portions_add_up_to_the_whole(catalog: Catalog, tasks: int) -> None:
    limits = Ceilings(calls=11, bytes=1_000, seconds=3.0)
    readers = replace(catalog.sources["readers"], rate=10.0, concurrency=7, daily=100, per_query=limits)
    whole = replace(catalog, sources={**catalog.sources, "readers": readers})
    portions = [portion_of(whole, task, tasks).sources["readers"] for task in range(tasks)]
    assert sum(s.concurrency for s in portions) == 7
    assert sum(s.rate or 0.0 for s in portions) == pytest.approx(10.0)
    assert sum(s.daily or 0 for s in portions) == 100
    assert sum(s.per_query.calls or 0 for s in portions) == 11
    assert all(s.concurrency >= 1 and s.per_query.seconds == 3.0 for s in portions)
    said = {"max_calls": 9, "max_seconds": 2.0, "per_source": {"readers": Ceilings(calls=8)}}
    spent = [settings_for(said, task, tasks) for task in range(tasks)]
    assert sum(s["max_calls"] for s in spent) == 9
    assert sum(s["per_source"]["readers"].calls for s in spent) == 8


def test_no_task_is_left_without_a_share(catalog: Catalog) -> None:
    readers = catalog.sources["readers"]
    assert most_tasks([readers], {}) == 8
    assert most_tasks([readers, replace(readers, concurrency=3)], {}) == 3
    assert most_tasks([readers], {"max_calls": 2}) == 2
    assert most_tasks([readers], {"max_calls": 0}) == 1
    assert most_tasks([readers], {"per_source": {"readers": Ceilings(calls=4)}}) == 4


def _divided(
    catalog: Catalog, relation: str, *conditions: Condition, said: int | None = 4
) -> list[Statement]:
    statement = Statement(relation, catalog.relations[relation].schema, conditions)
    query = understand(statement.sql, catalog, statement.parameters)
    return divided(statement, query, catalog, {}, said)


def test_only_a_list_that_every_way_of_asking_goes_by_is_divided(catalog: Catalog) -> None:
    letters = tuple("abcdefg")
    parts = _divided(catalog, "reviews", Condition("isbn", "IN", letters))
    assert sorted(v for part in parts for v in part.conditions[0].values) == list(letters)
    assert len(parts) == 4
    # Each task would read the whole catalogue of books, and each would look up all libraries of the city.
    assert len(_divided(catalog, "books", Condition("isbn", "IN", letters))) == 1
    assert (
        len(_divided(catalog, "libraries", Condition("city", "=", ("x",)), Condition("name", "IN", letters)))
        == 1
    )
    assert len(_divided(catalog, "reviews", Condition("isbn", "=", ("a",)))) == 1


SCHEMA = pa.schema(
    {
        "s": pa.string(),
        "i": pa.int32(),
        "u": pa.uint64(),
        "f": pa.float64(),
        "d": pa.date32(),
        "ns": pa.timestamp("ns"),
    }
)


def test_what_is_pushed_and_what_is_not() -> None:
    day = datetime.date(2020, 1, 1)
    pushed: list[Filter] = [
        EqualTo(("s",), "a"),
        In(("i",), (1, 2, 2)),
        GreaterThan(("d",), day),
        IsNotNull(("u",)),
        StringStartsWith(("s",), "50%"),
    ]
    pushed.append(GreaterThan(("f",), 0.5))
    kept: list[Filter] = [
        Not(EqualTo(("s",), "a")),
        EqualTo(("s", "t"), "a"),
        EqualTo(("i",), "1"),
        EqualTo(("i",), True),
        GreaterThan(("ns",), datetime.datetime(2020, 1, 1)),
    ]
    pushing = Pushing(SCHEMA)
    assert list(pushing.push([*pushed, *kept])) == [*pushed, *kept]
    assert [(c.column, c.operator, c.values) for c in pushing.conditions] == [
        ("s", "=", ("a",)),
        ("i", "IN", (1, 2)),
        ("d", ">", (day,)),
        ("u", "IS NOT NULL", ()),
        ("s", "^=", ("50%",)),
        ("f", ">", (0.5,)),
    ]


def test_values_never_become_sql(catalog: Catalog) -> None:
    value = 'x\'; SELECT "?parameter c0_0" -- $c0_0'
    statement = Statement("books", catalog.relations["books"].schema, (Condition("title", "=", (value,)),))
    assert value not in statement.sql
    assert understand(statement.sql, catalog, statement.parameters).schema.names == statement.schema.names


def test_options_are_read_and_travel() -> None:
    asked = wanted(
        {
            "Relation": "books",
            "catalog": "plugin:a/b:c.yaml",
            "max_bytes": "1MB",
            "per_source": '{"readers": {"calls": 3}}',
            "prefer": '{"year > 2000": 5}',
        }
    )
    assert asked.catalog == ("plugin:a/b", "c.yaml")
    assert asked.settings == {
        "max_bytes": 1_000_000,
        "per_source": {"readers": Ceilings(calls=3)},
        "prefer": {"year > 2000": 5.0},
    }
    assert pickle.loads(pickle.dumps(RelationReader(asked)))._wanted == asked
    with pytest.raises(BadOption, match="per_source: expected calls, bytes or seconds of readers"):
        wanted({"relation": "books", "per_source": '{"readers": 3}'})
    with pytest.raises(BadOption, match="parameters are those of a query"):
        wanted({"relation": "books", "parameters": "{}"})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM books", True),
        (
            "SELECT b.title || '!' AS t FROM books b JOIN prizes p ON p.isbn = b.isbn WHERE b.year > 2000",
            True,
        ),
        ("SELECT DISTINCT year FROM books", True),
        ("SELECT * FROM books LIMIT 3", False),
        ("SELECT year, count(*) FROM books GROUP BY year", False),
        ("SELECT * FROM books ORDER BY year", False),
        ("SELECT *, now() FROM books", False),
        ("SELECT *, random() FROM books", False),
    ],
)
def test_what_may_be_told_before_it_is_whole(catalog: Catalog, sql: str, expected: bool) -> None:
    assert steady(understand(sql, catalog)) is expected


def test_rows_that_were_given_are_left_out_as_often_as_they_were() -> None:
    given = Given()
    given.add(pa.record_batch({"x": [1, 1, 2], "y": ["a", "a", None]}))
    again = pa.record_batch({"x": [1, 2, 1, 1, 3], "y": ["a", None, "a", "a", "b"]})
    assert given.rest(again).to_pydict() == {"x": [1, 3], "y": ["a", "b"]}
    assert given.rest(again).num_rows == 5
