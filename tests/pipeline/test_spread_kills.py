"""Whatever is killed in the middle of a query on Spark, no answer is lost and none comes twice."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from fixtures import Web, book_trade
from fixtures.behaviour import Behaviour, Fixed
from mediator.answering import Mediator
from mediator.output.report import Report
from pipeline.java import find_java
from pipeline.spread import driving, engine
from pipeline.spread.errors import SpreadError
from tests.pipeline.killing import POINTS, Killer
from tests.pipeline.kit import APART

KILLS = int(os.environ.get("MEDIATOR_KILLS", "1"))
SQL = """
SELECT b.isbn, a.name, o.shop, o.price, o.condition FROM books b
JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn
"""
# One block joins with what another has given, which is told to cells that are made anew as it was before.
STAGED = """
WITH written AS (SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id
    UNION ALL SELECT isbn, publisher FROM books WHERE year > 1990)
SELECT w.isbn, w.name, o.shop, o.price, o.condition FROM written w JOIN offers o ON o.isbn = w.isbn
"""
Row = tuple[object, ...]
_SLOW = {
    name: Behaviour(latency=Fixed(0.04)) for name in ("books", "authors", "offers_north", "offers_south")
}


def truth(web: Web, sql: str = SQL) -> Counter[Row]:
    with duckdb.connect() as there:
        for name, table in web.tables.items():
            there.register(name, table)
        return Counter(there.sql(sql).fetchall())


async def answered(web: Web, folder: Path, sql: str = SQL, **said: Any) -> tuple[Counter[Row], Report]:
    rows: Counter[Row] = Counter()
    async with (
        Mediator(web.catalog) as mediator,
        mediator.answering(sql, engine="spark", slots=2, checkpoint=str(folder), **said) as answers,
    ):
        async for batch in answers:
            rows.update(zip(*(c.to_pylist() for c in batch.columns), strict=True))
    return rows, answers.report


class FirstAlone:
    """The first page comes at once and the others long after it, or when it was struck: so there is more to come when
    answers are given first, however busy the machine is."""

    def __init__(self, struck: Path) -> None:
        self._struck, self._requests = struck, 0

    def __call__(self, random: Random) -> float:
        self._requests += 1
        return 0.0 if self._requests == 1 or self._struck.exists() else 20.0


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries have sessions of their own, whoever has one in this process."""
    monkeypatch.setattr(engine, "_session", lambda: None)


@APART
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("child", "repeated"),
    [("tests.pipeline.killed_child", False), ("tests.pipeline.forgetful_child", True)],
)
async def test_what_was_given_before_spark_knew_of_it_is_not_given_again(
    child: str, repeated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "CHILD", child)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    pages = Behaviour(latency=FirstAlone(tmp_path / "c" / "struck"))
    with book_trade(60, book_page=20, behaviours={"books": pages}) as web:
        rows, _ = await answered(web, tmp_path / "c")
        true = truth(web)
    assert (tmp_path / "c" / "struck").exists()
    assert not true - rows
    assert bool(rows - true) == repeated
    assert not list(scratch.iterdir()), "what was killed leaves nothing behind"


@APART
@pytest.mark.timeout(300 + 60 * KILLS)
async def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    random = Random(7)
    points: list[str] = []
    while len(points) < KILLS:
        points += random.sample(POINTS, len(POINTS))
    points = points[:KILLS]
    struck: list[tuple[str, str]] = []
    with book_trade(120, book_page=4, behaviours=_SLOW) as web:
        for number in range(KILLS):
            if not points:
                break
            sql = (STAGED, SQL)[number % 2]
            true = truth(web, sql)
            folder = tmp_path / str(number)
            folder.mkdir()
            with Killer(folder, lambda: web.requests, random, points) as killer:
                rows, report = await answered(web, folder, sql, askers=2)
            struck += killer.struck
            assert report.complete, report.lines()
            assert rows == true, (
                f"after {killer.struck}: {len(true - rows)} lost, {len(rows - true)} too many"
            )
    assert len(struck) == KILLS, struck
    print(f"{len(struck)} kills, 0 lost, 0 repeated: {Counter(struck)}")


def java(home: Path, starts: str) -> None:
    """A Java that says what it is, and otherwise does this first."""
    real = find_java().home / "bin" / "java"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *-version*) exec {real} "$@";; esac\n{starts}\nexec {real} "$@"\n'
    )
    script.chmod(0o755)


@APART
@pytest.mark.timeout(300)
async def test_java_that_is_killed_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path / "java", f"mkdir {tmp_path}/once 2>/dev/null && kill -9 $$")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    with book_trade(60) as web:
        rows, _ = await answered(web, tmp_path / "c", "SELECT isbn FROM books")
    assert (tmp_path / "once").exists()
    assert rows.total() == 60


@APART
async def test_java_that_never_starts_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "java", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    with (
        book_trade(60) as web,
        pytest.raises(
            SpreadError, match=r"(?s)Spark was lost 4 times .*any further\. .*Spark did not start, with Java"
        ),
    ):
        await answered(web, tmp_path / "c", "SELECT isbn FROM books")
