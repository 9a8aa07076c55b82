"""Traces of queries over a web in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fixtures import Web, book_trade_web
from mediator.output.report import Report
from tests.answering.kit import all_of, in_virtual_time, mediating

SQL = (
    "SELECT b.title, o.price, p.prize FROM books b JOIN offers o ON o.isbn = b.isbn "
    "JOIN prizes p ON p.isbn = b.isbn WHERE o.price < 30"
)


def web() -> Web:
    return book_trade_web(60, book_page=20)


def traced(path: Path, sql: str = SQL, over: Web | None = None, **said: Any) -> tuple[int, Report]:
    """A query to its end; how many rows it found, and its report."""

    async def run() -> tuple[int, Report]:
        async with mediating(over or web()) as mediator:
            answers = mediator.answering(sql, trace=path, **said)
            async with answers:
                table = await all_of(answers)
            return table.num_rows, answers.report  # of which what became of the trace is known by now

    return in_virtual_time(run())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewritten(path: Path, changed: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))
