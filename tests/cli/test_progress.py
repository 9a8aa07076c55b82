"""What a running query looks like, without running one."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
from rich.console import Console

from api.progress import Plain, Redrawn, Silent, Standing, progress_for
from mediator.access.mirrors.latency import Distribution
from mediator.access.statistics import SourceStatistics

IDLE = SourceStatistics(
    source="idle",
    asked=0,
    answered=0,
    failed=0,
    in_flight=0,
    peak=0,
    queued=0,
    waiting=0,
    requests=0,
    retried=0,
    rows=0,
    latency=Distribution(),
)
SHOP = replace(IDLE, source="shop", asked=12, answered=7, failed=1, in_flight=3, waiting=2)
STANDING = Standing(6.2, 1_234, (IDLE, SHOP))


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=100, color_system=None), text


def test_a_line_per_source_that_is_asked() -> None:
    terminal, text = console(terminal=True)
    progress = Redrawn(terminal)
    progress.show(STANDING)
    progress.close()
    assert "6.2 s, 1,234 rows  asked  answered  in flight  failed  waiting for the limiter" in text.getvalue()
    assert "shop                  12         7          3       1                        2" in text.getvalue()
    assert "idle" not in text.getvalue()


def test_nothing_is_drawn_while_rows_are_written() -> None:
    terminal, text = console(terminal=True)
    progress = Redrawn(terminal)
    with progress.aside():
        progress.show(STANDING)
        assert text.getvalue() == ""
    assert "shop" in text.getvalue()
    progress.close()


def test_nothing_is_drawn_after_the_end() -> None:
    terminal, text = console(terminal=True)
    progress = Redrawn(terminal)
    progress.close()
    progress.show(STANDING)
    assert text.getvalue() == ""


def test_an_answer_that_is_not_final_is_shown_as_such() -> None:
    terminal, text = console(terminal=True)
    progress = Redrawn(terminal)
    table = pa.table({"city": ["Dunnock"] * 20, "n": list(range(20))})
    progress.show(replace(STANDING, provisional=table))
    progress.close()
    assert "so far, and not final (and 12 more rows)" in text.getvalue()
    assert "Dunnock  7" in text.getvalue()
    assert "Dunnock  8" not in text.getvalue()


def test_a_log_gets_a_line_now_and_then() -> None:
    log, text = console()
    progress = Plain(log, every=5.0)
    for seconds in (0.1, 4.9, 5.0, 9.9, 10.1):
        progress.show(replace(STANDING, seconds=seconds))
    said = text.getvalue().splitlines()
    assert said == [
        f"{seconds} s, 1,234 rows: shop 7 of 12 answered, 3 in flight, 1 failed, 2 waiting for the limiter"
        for seconds in (5, 10)
    ]


def test_as_much_as_is_wanted_and_can_be_shown() -> None:
    assert type(progress_for(console(terminal=True)[0], wanted=True)) is Redrawn
    assert type(progress_for(console()[0], wanted=True)) is Plain
    assert type(progress_for(console(terminal=True)[0], wanted=False)) is Silent
