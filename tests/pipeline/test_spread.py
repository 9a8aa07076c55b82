"""Queries on Spark, as somebody asks them: the answers and the report of the local engine, wherever they run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from fixtures import Web
from fixtures.behaviour import Behaviour, Fault, Fixed
from mediator.answering import Mediator, verdicts_of
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.catalog.model import Catalog
from mediator.engines import AnswerStream, Job
from mediator.errors import MediatorError
from mediator.output.report import Report
from mediator.query.understand import understand
from mediator.steering import CannotSteer
from pipeline.spread.auto import AutoAnswers
from pipeline.spread.engine import laid_out, slots_in
from pipeline.spread.errors import SpreadError
from pipeline.spread.folder import Folder
from tests.pipeline.kit import SHARED

pytestmark = [SHARED, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

BOOKS = "SELECT b.isbn, b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
OFFERS = "SELECT b.isbn, o.shop, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
Row = tuple[object, ...]


async def asked(
    web: Web, sql: str, engine: str = "spark", catalog: Catalog | None = None, **said: Any
) -> tuple[list[Row], Report]:
    rows: list[Row] = []
    async with (
        Mediator(catalog or web.catalog) as mediator,
        mediator.answering(sql, engine=engine, **said) as answers,
    ):
        await taken(answers, rows)
    return rows, answers.report


async def taken(answers: AnswerStream, rows: list[Row]) -> None:
    async for batch in answers:
        assert batch.schema.names == answers.schema.names
        rows += zip(*(c.to_pylist() for c in batch.columns), strict=True)


def truth(web: Web, sql: str) -> list[Row]:
    with duckdb.connect() as there:
        for name, table in web.tables.items():
            there.register(name, table)
        return there.sql(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        BOOKS,
        "SELECT upper(b.title) AS t, b.year + 1 AS y FROM books b WHERE b.year > 1990",
        "SELECT a.name, count(*) AS n FROM books b JOIN authors a ON a.id = b.author_id GROUP BY 1 HAVING n > 1",
        "SELECT title FROM books WHERE year < 2000 "
        "UNION ALL SELECT name FROM authors a JOIN books b ON b.author_id = a.id",
        "WITH t AS (SELECT author_id, max(year) AS y FROM books GROUP BY 1 ORDER BY 1 LIMIT 5) "
        "SELECT a.name, t.y FROM t JOIN authors a ON a.id = t.author_id",
        "SELECT b.title, p.prize FROM books b LEFT JOIN prizes p ON p.isbn = b.isbn",
        "WITH t AS (SELECT author_id AS a, list(year) AS y, max(year * INTERVAL 1 DAY) AS i FROM books GROUP BY 1) "
        "SELECT a, i + DATE '1970-01-01' AS d FROM t WHERE len(y) > 1",
        "SELECT 1 AS one",
        "SELECT r.stars FROM reviews r WHERE 1 = 2",
    ],
)
async def test_the_answers_are_those_of_the_local_engine(calm: Web, sql: str) -> None:
    rows, report = await asked(calm, sql)
    assert Counter(rows) == Counter(truth(calm, sql))
    assert report.complete
    if "UNION" in sql:
        return  # of whose blocks each asks here, where there they ask once
    _, here = await asked(calm, sql, "local")
    assert [(r.relation, r.asked, r.answered, r.failed) for r in report.relations] == [
        (r.relation, r.asked, r.answered, r.failed) for r in here.relations
    ]


async def test_what_is_ordered_comes_in_order(calm: Web) -> None:
    sql = "SELECT b.year, b.isbn FROM books b ORDER BY b.year DESC, b.isbn LIMIT 17"
    rows, _ = await asked(calm, sql)
    assert rows == truth(calm, sql)


async def test_a_limit_is_enough(calm: Web) -> None:
    rows, report = await asked(calm, f"{BOOKS} LIMIT 7")
    assert len(rows) == 7
    assert not Counter(rows) - Counter(truth(calm, BOOKS))
    assert report.complete
    assert report.enough


async def test_what_is_missing_is_said(trade: Web) -> None:
    down = Behaviour(faults=(Fault("error", 1.0),))
    trade.behave("authors", down)
    hasty = {name: replace(source, deadline=0.5) for name, source in trade.catalog.sources.items()}
    catalog = replace(trade.catalog, sources=hasty)
    rows, report = await asked(trade, BOOKS, catalog=catalog)
    _, here = await asked(trade, BOOKS, "local", catalog=catalog)
    assert rows == []
    assert not report.complete
    # How it is put depends on whether the site was known to be down when it would have been asked.
    missing, other = (
        {(f.method, b) for f in r.relations[1].failures for b in f.bindings} for r in (report, here)
    )
    assert missing == other


async def test_one_that_is_out_of_time_says_so(trade: Web) -> None:
    trade.behave("offers_north", Behaviour(latency=Fixed(60.0)))
    trade.behave("offers_south", Behaviour(latency=Fixed(60.0)))
    rows, report = await asked(trade, OFFERS, max_seconds=4.0)
    assert rows == []
    assert not report.complete
    assert report.stopped == "the query may take 4 s (max_seconds), and needs more"


async def test_one_that_is_stopped_gives_what_was_found(trade: Web) -> None:
    trade.behave("authors", Behaviour(latency=Fixed(600.0)))
    sql = "SELECT title FROM books UNION ALL SELECT a.name FROM books b JOIN authors a ON a.id = b.author_id"
    rows: list[Row] = []
    async with Mediator(trade.catalog) as mediator, mediator.answering(sql, engine="spark") as answers:
        async for batch in answers:
            rows += zip(*(c.to_pylist() for c in batch.columns), strict=True)
            if len(rows) == 60:
                answers.stop("seen enough")
    assert answers.report.stopped == "seen enough"
    assert Counter(rows) == Counter(truth(trade, "SELECT title FROM books"))


async def test_no_more_than_may_be_spent_is_spent(trade: Web) -> None:
    _, report = await asked(trade, BOOKS, max_calls=5)
    assert trade.requests == 5
    assert not report.complete


async def test_what_this_process_holds_is_not_asked_again(trade: Web) -> None:
    async with Mediator(trade.catalog) as mediator:
        first: list[Row] = []
        async with mediator.answering(BOOKS) as answers:
            await taken(answers, first)
        before = trade.requests
        rows: list[Row] = []
        async with mediator.answering(BOOKS, engine="spark") as answers:
            await taken(answers, rows)
    assert Counter(rows) == Counter(first) == Counter(truth(trade, BOOKS))
    assert trade.requests == before
    served = {r.relation: r.served for r in answers.report.relations}
    authors = {id_ for id_ in trade.tables["books"]["author_id"].to_pylist() if id_ is not None}
    assert served == {"books": 1, "authors": len(authors)}


async def test_it_cannot_be_steered_while_it_runs(calm: Web) -> None:
    async with Mediator(calm.catalog) as mediator:
        answers = mediator.answering(BOOKS, engine="spark")
        with pytest.raises(CannotSteer, match="say what to pause"):
            answers.steer(pause=["catalogue"])


async def test_an_engine_that_is_not_there(calm: Web) -> None:
    with pytest.raises(MediatorError, match="there is no engine 'spork': did you mean 'spark'"):
        await asked(calm, BOOKS, "spork")


# What is kept.


async def test_the_same_query_over_its_folder_goes_on(trade: Web, tmp_path: Path) -> None:
    rows, report = await asked(trade, BOOKS, checkpoint=str(tmp_path / "c"))
    before = trade.requests
    again, said = await asked(trade, BOOKS, checkpoint=str(tmp_path / "c"))
    assert Counter(again) == Counter(rows) == Counter(truth(trade, BOOKS))
    assert said == report
    assert trade.requests == before


@pytest.mark.parametrize("sql", [BOOKS, "SELECT b.author_id, count(*) AS n FROM books b GROUP BY 1"])
async def test_one_that_was_stopped_goes_on(trade: Web, tmp_path: Path, sql: str) -> None:
    """Also where something was made of what there was when it was stopped."""
    trade.behave("books", Behaviour(latency=Fixed(0.6)))
    rows: list[Row] = []
    async with (
        Mediator(trade.catalog) as mediator,
        mediator.answering(sql, engine="spark", checkpoint=str(tmp_path / "c")) as answers,
    ):
        while not trade.requests:
            await asyncio.sleep(0.01)
        answers.stop("interrupted")
        await taken(answers, rows)
    assert not answers.report.complete
    assert answers.report.stopped == "interrupted"
    trade.behave("books", Behaviour())
    again, report = await asked(trade, sql, checkpoint=str(tmp_path / "c"))
    assert report.complete
    assert Counter(again) == Counter(truth(trade, sql))


async def test_a_folder_of_another_query_is_refused(trade: Web, tmp_path: Path) -> None:
    folder = str(tmp_path / "c")
    await asked(trade, BOOKS, checkpoint=folder)
    with pytest.raises(SpreadError, match=r"another query was begun here: SELECT b\.isbn, b\.title"):
        await asked(trade, OFFERS, checkpoint=folder)
    sources = {**trade.catalog.sources}
    name = next(iter(sources))
    sources[name] = replace(sources[name], attempts=1)
    async with Mediator(replace(trade.catalog, sources=sources)) as mediator:
        with pytest.raises(SpreadError, match="begun with another catalog"):
            async with mediator.answering(BOOKS, engine="spark", checkpoint=folder):
                pass
    with pytest.raises(SpreadError, match=r"begun with another max_calls: None\. Ask with that"):
        await asked(trade, BOOKS, checkpoint=folder, max_calls=3)
    about = Path(folder) / "spread.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "version": "0.0.1"}))
    with pytest.raises(SpreadError, match=r"begun by another version \(0.0.1, this is"):
        await asked(trade, BOOKS, checkpoint=folder)


async def test_a_folder_that_cannot_be_written(calm: Web, tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.write_text("")
    with pytest.raises(SpreadError, match=r"nothing can be written there: .*Name another folder"):
        await asked(calm, BOOKS, checkpoint=str(there / "c"))


async def test_cells_that_are_too_large_say_so(calm: Web) -> None:
    with pytest.raises(
        SpreadError, match=r"the rows of the cells in one worker take .* more slots or executors"
    ):
        await asked(calm, BOOKS, memory=100)


async def test_what_is_missing_on_an_executor_is_named(calm: Web, tmp_path: Path) -> None:
    """A class of a module that no worker can import."""
    module = ModuleType("only_on_the_driver")
    exec(
        "class Settings(Base): pass",
        {**vars(module), "Base": Settings, "__name__": module.__name__},
        vars(module),
    )
    sys.modules[module.__name__] = module
    try:
        folder = Folder(tmp_path)
        query = understand(BOOKS, calm.catalog)
        plan = laid_out(
            Job(
                calm.catalog, query, verdicts_of(query, calm.catalog), module.Settings(), Known(), None, None
            ),
            {},
        )  # type: ignore[arg-type]
        folder.begin(plan)
    finally:
        del sys.modules[module.__name__]
    with pytest.raises(
        SpreadError, match=r"'only_on_the_driver'\. Every executor needs the packages and plugins"
    ):
        folder.plan()


# auto.


@pytest.mark.parametrize(
    "sql",
    [
        OFFERS,
        "SELECT o.shop, count(*) AS n FROM books b JOIN offers o ON o.isbn = b.isbn GROUP BY o.shop ORDER BY o.shop",
        "SELECT DISTINCT o.shop FROM books b JOIN offers o ON o.isbn = b.isbn",
    ],
)
async def test_one_that_outgrows_this_process_moves(trade: Web, sql: str) -> None:
    trade.behave("books", Behaviour(latency=Fixed(0.3)))
    rows: list[Row] = []
    async with (
        Mediator(trade.catalog) as mediator,
        mediator.answering(sql, engine="auto", memory=6_000) as answers,
    ):
        await taken(answers, rows)
    assert isinstance(answers, AutoAnswers)
    assert answers.moved
    assert Counter(rows) == Counter(truth(trade, sql))
    assert answers.report.complete
    assert any("moved to Spark" in remark for remark in answers.report.remarks)


async def test_one_that_fits_stays(trade: Web) -> None:
    rows, report = await asked(trade, OFFERS, "auto")
    assert Counter(rows) == Counter(truth(trade, OFFERS))
    assert not report.remarks


async def test_rows_that_would_not_be_found_again_are_given_in_one_place(trade: Web) -> None:
    """It moves as long as nothing was given, or never."""
    trade.behave("books", Behaviour(latency=Fixed(0.1)))
    sql = OFFERS.replace("o.price", "o.price + 0 * random() AS p")
    async with Mediator(trade.catalog) as mediator:
        answers = mediator.answering(sql, engine="auto", memory=3_000)
        async with answers:
            count = sum([batch.num_rows async for batch in answers])
    assert count == len(truth(trade, OFFERS))


async def test_a_limit_holds_across_the_move(trade: Web) -> None:
    trade.behave("books", Behaviour(latency=Fixed(0.3)))
    rows, report = await asked(trade, f"{OFFERS} LIMIT 40 OFFSET 3", "auto", memory=3_000)
    assert len(rows) == 40
    assert not Counter(rows) - Counter(truth(trade, OFFERS))
    assert report.complete


def test_a_session_that_runs_one_task_at_a_time_is_refused(spark: SparkSession) -> None:
    small = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
    assert slots_in(spark) == 2
    with pytest.raises(SpreadError, match=r"Use local\[2\] or more"):
        slots_in(small)  # type: ignore[arg-type]
