"""`spark.read.format("mediator")`, in a real session, over a book trade that is served."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from fixtures import Behaviour, Fault, Fixed, Web
from pipeline.session import PUSHDOWN
from tests.pipeline.kit import BOOK_TRADE, SHARED, isbns, read, refused, rows, said, truth

pytestmark = SHARED


def test_a_relation_is_a_data_frame(spark: SparkSession, calm: Web) -> None:
    books = read(spark, calm, relation="books")
    assert books.dtypes == [
        ("isbn", "string"), ("title", "string"), ("author_id", "bigint"), ("year", "int"), ("publisher", "string"),
    ]  # fmt: skip
    assert rows(books) == truth(calm, "books")


def test_a_query_is_one_too_with_parameters(spark: SparkSession, calm: Web) -> None:
    sql = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn WHERE o.price < $most"
    found = read(
        spark, calm, query=sql, parameters=json.dumps({"most": 12}), goal="fewest_calls", max_age="1h"
    )
    titles = {book["isbn"]: book["title"] for book in truth(calm, "books")}
    cheap = [o for o in truth(calm, "offers") if o["price"] < 12 and o["isbn"] in titles]
    assert sorted(row["price"] for row in rows(found)) == sorted(o["price"] for o in cheap)


def test_in_sql(spark: SparkSession, calm: Web) -> None:
    given = ", ".join(f"{name} '{value}'" for name, value in said(calm, relation="prizes").items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW prizes_there USING mediator OPTIONS ({given})")
    (row,) = spark.sql("SELECT count(*) AS n FROM prizes_there WHERE year > 1900").collect()
    assert row["n"] == sum(p["year"] > 1900 for p in truth(calm, "prizes"))


def test_bindings_are_asked_and_divided(spark: SparkSession, trade: Web) -> None:
    wanted = isbns(trade, 6)
    several = read(
        spark, trade, relation="reviews", bindings=json.dumps({"isbn": [*wanted, None, wanted[0]]})
    )
    assert several.rdd.getNumPartitions() == 2
    assert rows(several.where("stars >= 3")) == [
        r for r in truth(trade, "reviews", isbn=wanted) if r["stars"] >= 3
    ]
    # One DataFrame may be used for what one likes.
    assert rows(several) == truth(trade, "reviews", isbn=wanted)
    assert {name.split(" ")[0] for name in trade.counters["reviews"].lookups} == set(wanted)


def test_filters_give_bind_fields_their_values_where_that_is_asked_for(
    spark: SparkSession, trade: Web
) -> None:
    wanted = isbns(trade, 6)
    one = read(spark, trade, relation="reviews", pushdown="true").where(functions.col("isbn") == wanted[0])
    one = one.where("stars >= 3").where("upper(text) IS NOT NULL")
    assert rows(one) == [r for r in truth(trade, "reviews", isbn=[wanted[0]]) if r["stars"] >= 3]
    assert {name.split(" ")[0] for name in trade.counters["reviews"].lookups} == {wanted[0]}
    several = read(spark, trade, relation="reviews", pushdown="true").where(
        functions.col("isbn").isin(wanted)
    )
    assert several.rdd.getNumPartitions() == 2
    assert rows(several) == truth(trade, "reviews", isbn=wanted)
    assert {name.split(" ")[0] for name in trade.counters["reviews"].lookups} == set(wanted)


def test_filters_that_spark_would_mix_up_are_refused(spark: SparkSession, calm: Web) -> None:
    first, second = isbns(calm, 2)
    books = read(spark, calm, relation="books", pushdown="true")
    assert books.where(functions.col("isbn") == first).count() == 1
    assert books.where(functions.col("isbn") == first).count() == 1
    assert "make another with load()" in refused(books.where(functions.col("isbn") == second))
    anew = read(spark, calm, relation="books", pushdown="true")
    halves = [anew.where(functions.col("isbn") == isbn) for isbn in (first, second)]
    assert "make another with load()" in refused(halves[0].union(halves[1]))
    # Without it they are not mixed up.
    safe = read(spark, calm, relation="books")
    assert (
        safe.where(functions.col("isbn") == first).union(safe.where(functions.col("isbn") == second)).count()
        == 2
    )
    assert safe.count() == 60


def test_a_request_that_carries_many_bindings_is_not_divided(spark: SparkSession, trade: Web) -> None:
    offers = read(spark, trade, relation="offers", bindings=json.dumps({"isbn": isbns(trade, 20)}))
    assert offers.rdd.getNumPartitions() == 1
    assert rows(offers) == truth(trade, "offers", isbn=isbns(trade, 20))
    assert trade.counters["offers_north"].requests + trade.counters["offers_south"].requests <= 2


def test_a_list_of_nulls_asks_nobody(spark: SparkSession, trade: Web) -> None:
    nothing = read(spark, trade, relation="reviews", bindings='{"isbn": [null, null]}')
    assert nothing.collect() == []
    assert trade.requests == 0


@pytest.mark.parametrize("tasks", [1, 2, 5, 50])
def test_tasks_together_keep_within_a_site_s_limits(spark: SparkSession, trade: Web, tasks: int) -> None:
    """Eight at once are what the site is declared to bear, by however many tasks it is asked."""
    trade.behave("reviews", Behaviour(latency=Fixed(0.04)))
    wanted = isbns(trade, 40)
    reviews = read(spark, trade, relation="reviews", partitions=tasks, bindings=json.dumps({"isbn": wanted}))
    assert reviews.rdd.getNumPartitions() == min(tasks, 8)
    assert rows(reviews) == truth(trade, "reviews", isbn=wanted)
    assert 1 < trade.counters["reviews"].peak <= 8 if tasks < 5 else trade.counters["reviews"].peak <= 8


def test_what_a_read_may_spend_is_divided_too(spark: SparkSession, trade: Web) -> None:
    given = json.dumps({"isbn": isbns(trade, 20)})
    reviews = read(spark, trade, relation="reviews", bindings=given, max_calls=5, incomplete="allow")
    assert reviews.rdd.getNumPartitions() == 2
    reviews.collect()
    assert trade.counters["reviews"].requests <= 5


def test_a_missing_bind_field_is_told_in_the_engine_s_words(spark: SparkSession, trade: Web) -> None:
    message = refused(read(spark, trade, relation="holdings", bindings='{"isbn": "1"}'))
    assert """.option('bindings', '{"FIELD": ["VALUE", ...]}') says it""" in message
    assert "holdings needs isbn and library_id (access method by_book_and_library)" in message
    assert "add WHERE holdings.library_id = ..., or holdings.library_id IN (...)" in message
    assert "File " not in message
    assert trade.requests == 0


def test_without_push_down_spark_says_what_to_set(spark: SparkSession, calm: Web) -> None:
    spark.conf.set(PUSHDOWN, "false")
    try:
        message = refused(read(spark, calm, relation="books", pushdown="true"))
        assert PUSHDOWN in message
        assert "Set it to true" in message
        # All else does without.
        assert len(read(spark, calm, relation="books").collect()) == 60
        assert len(read(spark, calm, query="SELECT isbn FROM books").collect()) == 60
    finally:
        spark.conf.set(PUSHDOWN, "true")


def test_an_incomplete_answer_fails_unless_it_will_do(spark: SparkSession, trade: Web) -> None:
    wanted = isbns(trade, 4)
    trade.behave("reviews", Behaviour(faults=(Fault("error", lookups=(wanted[1],), status=410),)))
    asked = {"relation": "reviews", "bindings": json.dumps({"isbn": wanted})}
    message = refused(read(spark, trade, **asked))
    assert "the answer is not complete" in message
    assert "partial: not all of reviews was answered" in message
    assert f"missing: by_isbn(isbn) for '{wanted[1]}': refused" in message
    allowed = read(spark, trade, **asked, incomplete="allow")
    assert rows(allowed) == truth(trade, "reviews", isbn=[i for i in wanted if i != wanted[1]])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"relation": "bookz"}, "bookz"),
        ({"query": "SELECT nix FROM books"}, "nix"),
        ({"query": "SELEC"}, "line 1"),
        ({}, "say what to read"),
        ({"relation": "books", "query": "SELECT 1"}, "say what to read"),
        ({"relation": "books", "gaol": "all_rows"}, "did you mean 'goal'?"),
        ({"relation": "books", "goal": "soon"}, "option goal: expected one of first_rows, all_rows, fewest_calls"),
        ({"relation": "books", "max_age": "long"}, "option max_age: expected a length of time"),
        ({"relation": "books", "incomplete": "maybe"}, "option incomplete: expected one of fail, allow"),
        ({"query": "SELECT 1", "parameters": "{"}, "option parameters: expected JSON"),
        ({"query": "SELECT 1", "bindings": "{}"}, "bindings and pushdown are those of a relation"),
        ({"relation": "books", "bindings": "[1]"}, "option bindings: expected a JSON object"),
        ({"relation": "books", "partitions": "0"}, "option partitions: expected a number, 1 or more"),
        ({"relation": "books", "catalog": "/no/such/folder"}, "every executor"),
        ({"relation": "books", "catalog": "plugin:no_such"}, "no_such"),
        ({"query": "SELECT INTERVAL '1 month' AS i FROM books"}, "the column i is of type month_day_nano_interval"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_told_at_once(
    spark: SparkSession, calm: Web, options: dict[str, str], expected: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        read(spark, calm, **options)
    assert expected in str(caught.value)


def test_a_schema_that_is_given_has_to_be_the_one_there_is(spark: SparkSession, calm: Web) -> None:
    reader = spark.read.format("mediator").options(**said(calm, relation="books"))
    assert "leave .schema(...) out" in refused(reader.schema("isbn long").load())


def test_types_become_spark_s(spark: SparkSession, calm: Web) -> None:
    sql = """
        SELECT 18446744073709551615::UBIGINT AS u, 200::UTINYINT AS t, 1.5::DECIMAL(10, 2) AS d, 7::HUGEINT AS h,
            TIMESTAMP '2020-01-02 03:04:05.678901' AS ts, TIMESTAMP_NS '2020-01-02 03:04:05.678901000' AS ns,
            TIMESTAMPTZ '2020-01-02 03:04:05+00' AS tz, DATE '2020-02-29' AS day, 'x'::BLOB AS b,
            [1, NULL] AS l, {'a': 'é', 'b': [1.5::DOUBLE]} AS s, 'on'::ENUM('on', 'off') AS e, NULL::INT AS n
        FROM books LIMIT 1
    """
    found = read(spark, calm, query=sql)
    assert dict(found.dtypes) == {
        "u": "decimal(20,0)", "t": "smallint", "d": "decimal(10,2)", "h": "decimal(38,0)", "ts": "timestamp_ntz",
        "ns": "timestamp_ntz", "tz": "timestamp", "day": "date", "b": "binary", "l": "array<int>",
        "s": "struct<a:string,b:array<double>>", "e": "string", "n": "int",
    }  # fmt: skip
    (row,) = found.withColumn("tz", functions.unix_micros("tz")).collect()
    assert (int(row["u"]), row["t"], str(row["d"]), int(row["h"])) == (2**64 - 1, 200, "1.50", 7)
    assert row["ts"].isoformat() == row["ns"].isoformat() == "2020-01-02T03:04:05.678901"
    assert row["tz"] == 1_577_934_245_000_000
    assert (row["day"].isoformat(), bytes(row["b"]), row["l"], row["e"], row["n"]) == (
        "2020-02-29",
        b"x",
        [1, None],
        "on",
        None,
    )
    assert row["s"].asDict() == {"a": "é", "b": [1.5]}


def test_a_value_that_spark_cannot_hold_is_refused(spark: SparkSession, calm: Web) -> None:
    sql = "SELECT TIMESTAMP_NS '2020-01-02 03:04:05.678901234' AS ns FROM books LIMIT 1"
    message = refused(read(spark, calm, query=sql))
    assert "the column ns has a value that Spark's timestamp[us] does not hold" in message


def test_no_secret_travels_or_is_told(spark: SparkSession, trade: Web, tmp_path: Path) -> None:
    """The key is in a file, which each task reads for itself; the site's refusal is told without it."""
    secret = tmp_path / "key"
    secret.write_text("s3cr3t-value-of-the-key", encoding="utf-8")
    declared = (BOOK_TRADE / "reviews.yaml").read_text(encoding="utf-8")
    auth = f"    auth:\n      kind: bearer\n      token_file: {secret}\n    allow_private: true"
    catalog = tmp_path / "reviews.yaml"
    catalog.write_text(declared.replace("    allow_private: true", auth), encoding="utf-8")
    trade.behave("reviews", Behaviour(faults=(Fault("error", probability=1.0, status=403),)))
    frame = read(spark, trade, relation="reviews", catalog=catalog, bindings='{"isbn": "9781415926536"}')
    plan = frame._jdf.queryExecution().toString()
    message = refused(frame)
    assert "refused" in message
    assert "s3cr3t" not in plan + message
