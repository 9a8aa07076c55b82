"""`--prefer`, `--pause` and `--boost`: the order of things, on the command line."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from api.progress import Plain, Standing, pictured
from fixtures import Web
from tests.cli.kit import at, called
from tests.cli.test_progress import IDLE, STANDING

OFFERS = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"


def test_the_answer_is_what_it_is_without(trade: Web) -> None:
    said = ["--prefer", "b.year > 1990 = 10", "--prefer", "o.shop='x'=0.5", "--boost", "prices_north=5"]
    plain = called("query", OFFERS, *at(trade), "--format", "csv")
    steered = called("query", OFFERS, *at(trade), "--format", "csv", *said)
    assert steered.exit_code == plain.exit_code == 0
    assert sorted(steered.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert len(plain.stdout.splitlines()) > 10


def test_a_paused_mirror_is_not_asked(trade: Web) -> None:
    result = called("query", OFFERS, *at(trade), "--pause", "prices_north")
    assert result.exit_code == 0
    assert trade.counters["offers_north"].requests == 0
    assert trade.counters["offers_south"].requests > 0
    assert "paused: prices_north" in result.stderr
    assert "warning" not in result.stderr


def test_a_query_that_only_waits_for_what_is_paused_says_so(trade: Web) -> None:
    said = ["--pause", "prices_north", "--pause", "prices_south", "--max-seconds", "2"]
    result = called("query", OFFERS, *at(trade), *said)
    assert result.exit_code == 3
    assert "the query may take 2 s (max_seconds), and needs more" in " ".join(result.stderr.split())
    assert "paused: prices_north, for which 60 wait" in result.stderr
    warned = "warning: prices_north, prices_south are paused, and what only they have is waited for"
    assert " ".join(result.stderr.split()).count(warned) == 1
    quiet = called("query", OFFERS, *at(trade), "-q", *said)
    assert warned in " ".join(quiet.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prefer", "b.year > 2020"], "--prefer b.year > 2020: expected CONDITION=WEIGHT"),
        (["--prefer", "=3"], "--prefer =3: expected CONDITION=WEIGHT"),
        (["--prefer", "b.year = much"], "expected CONDITION=WEIGHT, and 'much' is no number"),
        (["--prefer", "b.year > 1=2", "--prefer", "b.year > 1=3"], "said twice of b.year > 1: leave one out"),
        (["--prefer", "b.year > 1=0"], "the weight of 'b.year > 1' is 0.0: it must be a number above 0"),
        (["--prefer", "b.yaer > 1=2"], "there is no column 'b.yaer' in the query"),
        (["--prefer", "b.year >= 2000"], "is a weight missing? Then write 'b.year >= 2000=10'"),
        (["--prefer", "b.year == 2000"], "is a weight missing? Then write 'b.year == 2000=10'"),
        (["--prefer", "b.year = 2000"], "is a weight missing? Then write 'b.year = 2000=10'"),
        (["--prefer", "b.year=2"], "a preference is true or false of a row; this is of type INTEGER"),
        (["--boost", "prices_north"], "--boost prices_north: expected SOURCE=FACTOR"),
        (["--boost", "prices_north=-1"], "the boost of 'prices_north' is -1.0: it must be a number above 0"),
        (["--boost", "price_north=2"], "there is no source 'price_north': did you mean 'prices_north'?"),
        (["--pause", "price_north"], "there is no source 'price_north': did you mean 'prices_north'?"),
    ],
)
def test_what_cannot_be_meant_is_told(calm: Web, arguments: list[str], said: str) -> None:
    before = calm.requests
    result = called("query", OFFERS, *at(calm), *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert calm.requests == before


def test_progress_says_what_is_paused() -> None:
    text = io.StringIO()
    console = Console(file=text, width=100, color_system=None)
    standing = replace(STANDING, paused=("idle",))
    Plain(console, every=1.0).show(standing)
    console.print(pictured(standing))
    plain, picture = text.getvalue().split("\n", 1)
    assert "idle 0 of 0 answered, paused; shop 7 of 12 answered" in plain
    assert "idle paused" in picture
    assert "shop paused" not in picture
    assert IDLE not in Standing(1.0, 0, (IDLE,)).asked
