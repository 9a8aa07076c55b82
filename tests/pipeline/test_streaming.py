"""`spark.readStream.format("mediator")`: every answer once, out of a log, also when things die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fixtures import Behaviour, Fault, Fixed, Web, book_trade
from tests.pipeline.kit import SHARED, isbns, said, truth


class Sink:
    """What a stream gave, by micro-batch."""

    def __init__(self, spark: SparkSession, web: Web, folder: Path, **options: object) -> None:
        self.batches: dict[int, list[str]] = {}
        self._reader = spark.readStream.format("mediator").options(
            **said(web, **{"log": folder / "log", **options})
        )
        self._folder = folder

    def run(self) -> None:
        """To the end of what is available."""
        query = (
            self._reader.load()
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()

    @property
    def rows(self) -> list[str]:
        return sorted(row for found in self.batches.values() for row in found)

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = [json.dumps(row.asDict()) for row in frame.collect()]


def held(web: Web, relation: str) -> list[str]:
    return sorted(map(json.dumps, truth(web, relation)))


@SHARED
def test_a_relation_streams_to_its_end_and_is_not_asked_again(spark: SparkSession, tmp_path: Path) -> None:
    with book_trade(60, book_page=10) as web:
        web.behave("books", Behaviour(latency=Fixed(0.3), concurrency=1))
        sink = Sink(spark, web, tmp_path, relation="books", max_pieces=1)
        sink.run()
        assert sink.rows == held(web, "books")
        assert sum(bool(found) for found in sink.batches.values()) > 1
        asked = web.requests
        again = Sink(spark, web, tmp_path, relation="books", max_pieces=1)
        again.run()
        assert again.rows == []
        # A second stream over the same log, with a checkpoint of its own: the same rows, and no site is asked.
        (tmp_path / "checkpoint").rename(tmp_path / "first")
        anew = Sink(spark, web, tmp_path, relation="books")
        anew.run()
        assert anew.rows == held(web, "books")
        assert web.requests == asked
    assert not (tmp_path / "log" / "store").exists()


@SHARED
def test_what_is_not_found_row_by_row_comes_whole(spark: SparkSession, calm: Web, tmp_path: Path) -> None:
    sink = Sink(spark, calm, tmp_path, query="SELECT isbn, year FROM books ORDER BY year, isbn LIMIT 7")
    sink.run()
    assert [len(found) for found in sink.batches.values() if found] == [7]


@SHARED
def test_an_incomplete_answer_fails_the_stream_and_goes_on_when_it_can(
    spark: SparkSession, trade: Web, tmp_path: Path
) -> None:
    trade.behave("prizes", Behaviour(faults=(Fault("error", probability=1.0, status=410),)))
    sql = "SELECT isbn FROM books UNION ALL SELECT isbn FROM prizes"
    sink = Sink(spark, trade, tmp_path, query=sql)
    with pytest.raises(PySparkException) as caught:
        sink.run()
    assert "partial: not all of prizes was answered" in str(caught.value)
    trade.behave("prizes", Behaviour())
    sink.run()
    wanted = [{"isbn": r["isbn"]} for name in ("books", "prizes") for r in truth(trade, name)]
    assert sink.rows == sorted(map(json.dumps, wanted))


@SHARED
def test_a_partial_answer_ends_where_it_will_do(spark: SparkSession, trade: Web, tmp_path: Path) -> None:
    trade.behave("prizes", Behaviour(faults=(Fault("error", probability=1.0, status=410),)))
    sink = Sink(spark, trade, tmp_path, query="SELECT isbn FROM prizes", incomplete="allow")
    sink.run()
    assert sink.rows == []
    assert (
        json.loads((tmp_path / "log" / "end.json").read_text(encoding="utf-8"))["report"]["complete"] is False
    )


@SHARED
def test_a_log_is_wanted_and_has_to_be_the_query_s(spark: SparkSession, calm: Web, tmp_path: Path) -> None:
    Sink(spark, calm, tmp_path, relation="prizes").run()

    def fails(**options: object) -> str:
        with pytest.raises(PySparkException) as caught:
            Sink(spark, calm, tmp_path, **options).run()
        return str(caught.value)

    assert "this log belongs to another query" in fails(query="SELECT * FROM prizes")
    assert "a stream needs .option('log', FOLDER)" in fails(relation="prizes", log="")
    assert "the checkpoint belongs to another log" in fails(relation="prizes", log=tmp_path / "other")
    (tmp_path / "log" / "00000000.arrow").unlink()
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    assert "it was changed" in fails(relation="prizes")


@SHARED
def test_a_stream_says_its_conditions_itself(spark: SparkSession, calm: Web, tmp_path: Path) -> None:
    """Spark gives a stream no filters, so a bind-field gets its value in the query."""
    with pytest.raises(PySparkException) as caught:
        Sink(spark, calm, tmp_path, relation="reviews").run()
    assert "reviews needs isbn (access method by_isbn)" in str(caught.value)
    assert "say it with .option('bindings', ...)" in str(caught.value)
    given = isbns(calm, 3)
    sink = Sink(spark, calm, tmp_path, relation="reviews", bindings=json.dumps({"isbn": given}))
    sink.run()
    assert sink.rows == sorted(map(json.dumps, truth(calm, "reviews", isbn=given)))


def _java(program: psutil.Process) -> list[psutil.Process]:
    return [p for p in program.children(recursive=True) if "java" in _command(p).split(" ")[0]]


def _source(program: psutil.Process) -> list[psutil.Process]:
    return [p for p in program.children(recursive=True) if "python_streaming_source_runner" in _command(p)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it ended a moment ago
        return ""


@pytest.fixture
def slow() -> Iterator[Web]:
    """A catalogue of 200 books that takes some three seconds to read."""
    with book_trade(200, book_page=10) as web:
        web.behave("books", Behaviour(latency=Fixed(0.15), concurrency=1))
        yield web


@pytest.mark.timeout(600)  # three sessions one after another
@pytest.mark.xdist_group("spark kills")
def test_kills_lose_and_repeat_nothing(slow: Web, tmp_path: Path) -> None:
    """Java is killed, then the process that writes the log, each in the middle; a third run comes to the end."""
    options = said(slow, relation="books", log=tmp_path / "log", max_pieces=1)
    killed = [_until_killed(tmp_path, options, _java, 1), _until_killed(tmp_path, options, _source, 2)]
    assert killed == [True, True]
    assert not (tmp_path / "log" / "end.json").exists()
    done = _program(tmp_path, options)
    out, _ = done.communicate(timeout=240)
    assert out.decode().split() == ["started", "ended"], out
    given = [
        row
        for file in sorted((tmp_path / "out").glob("*.json"))
        for row in json.loads(file.read_text("utf-8"))
    ]
    expected = Counter(held(slow, "books"))
    assert Counter(given) == expected


def _program(folder: Path, options: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "stderr").open("ab") as said_there:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.pipeline.stream_program", str(folder), json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=said_there,
        )


def _until_killed(
    folder: Path,
    options: dict[str, str],
    victims: Callable[[psutil.Process], list[psutil.Process]],
    pieces: int,
) -> bool:
    """Runs the program until the log has so many pieces more, and kills one process beneath it."""
    before = len(list((folder / "log").glob("0*.arrow")))
    program = _program(folder, options)
    try:
        deadline = time.monotonic() + 180
        while len(list((folder / "log").glob("0*.arrow"))) < before + pieces:
            assert program.poll() is None, (folder / "stderr").read_text("utf-8")[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        family = psutil.Process(program.pid).children(recursive=True)
        found = victims(psutil.Process(program.pid))
        for victim in found:
            os.kill(victim.pid, signal.SIGKILL)
        assert program.wait(180) != 0
        psutil.wait_procs(family, timeout=20)
        return bool(found)
    finally:
        program.kill()
        program.communicate()
