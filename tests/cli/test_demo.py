"""`mediator demo`, as a newcomer runs it, and `--demo`, its web for any query."""

from __future__ import annotations

import json
import re
import socket

import pytest

from api.demo import found_demo
from fixtures import book_trade_web
from tests.cli.kit import SPARKS, bag, called, finished, started, truth

pytestmark = pytest.mark.xdist_group("demo")  # which is told once, and takes its time
_BOOKS = 1_200


@pytest.fixture(scope="module")
def story() -> tuple[int, str, str]:
    code, out, said = finished(started("demo"), SPARKS)
    return code, out.decode(), said


def test_it_ends_well_and_on_one_screen(story: tuple[int, str, str]) -> None:
    code, told, said = story
    assert code == 0
    assert said == ""
    assert len(told.splitlines()) <= 75
    assert "\ncomplete · " in told


def test_rows_come_while_sources_are_still_being_asked(story: tuple[int, str, str]) -> None:
    """In terms of what came before what: a busy machine makes everything late, but not in another order."""
    heard = re.search(r"first row  after .*, when (\d+) of (\d+) replies had come", story[1])
    assert heard is not None
    before, all_ = map(int, heard.groups())
    assert before < all_ * 0.9


def test_the_rows_are_those_that_the_sites_hold(story: tuple[int, str, str]) -> None:
    wanted = truth(book_trade_web(_BOOKS), found_demo().sql).to_pylist()
    rows = [line.split() for line in story[1].splitlines() if re.match(r"\d+\.\d\d s  ", line)]
    assert len(rows) == len(wanted)
    assert bag([row[-3:] for row in rows]) == bag(
        [[str(row["won"]), str(row["price"]), row["reviewer"]] for row in wanted]
    )


def test_every_relation_and_every_source_is_accounted_for(story: tuple[int, str, str]) -> None:
    for relation in ("prizes", "books", "authors", "offers", "reviews"):
        assert f"  {relation}: " in story[1]
    for source in ("catalogue", "who_is_who", "prices_north", "laurels", "readers"):
        assert re.search(rf"^{source} +\w+ +\d+ +\d+ +\d+\.\d\d s  ", story[1], re.MULTILINE)
    faults = re.search(r"^readers .* s  (.*)$", story[1], re.MULTILINE)
    assert faults is not None
    assert faults[1] != "none"


def test_nothing_is_left_behind(story: tuple[int, str, str]) -> None:
    address = re.search(r"http://127\.0\.0\.1:(\d+)", story[1])
    assert address is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(address[1])), timeout=5).close()


def test_any_query_may_be_asked_of_the_demo() -> None:
    sql = "SELECT prize, count(*) AS n FROM prizes GROUP BY prize"
    result = called("query", sql, "--demo", "--format", "json")
    assert result.exit_code == 0
    assert bag(json.loads(result.stdout)) == bag(truth(book_trade_web(_BOOKS), sql).to_pylist())
