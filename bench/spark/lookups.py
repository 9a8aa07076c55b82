"""Several cells that ask a site for the same: each binding is looked up once."""

from __future__ import annotations

import duckdb

from bench.result import Result
from bench.spark.stage import Stage
from fixtures import Web, book_trade
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.query.understand import understand
from pipeline.spread.asks import read_asks
from pipeline.spread.drive import Drive
from pipeline.spread.folder import Folder
from pipeline.spread.given import given
from pipeline.spread.plan import planned

_SQL = (
    "SELECT b.title, o.shop, o.price, a.name FROM books b JOIN offers o ON o.isbn = b.isbn "
    "JOIN authors a ON a.id = b.author_id"
)
_CELLS = 4


def lookups(stage: Stage, result: Result) -> None:
    """Books are cut by their ISBN as well as by their author, so that the cells of several ISBNs ask for one author."""
    with book_trade(stage.scale.books, book_page=20) as web:
        query = understand(_SQL, web.catalog)
        plan = planned(
            web.catalog,
            query,
            verdicts_of(query, web.catalog),
            Settings(),
            lambda *_: float(stage.scale.books),
            slots=1,
            askers=1,
            cells=_CELLS,
        )
        folder = Folder(stage.folder / "lookups")
        folder.begin(plan)
        Drive(stage.session, folder, plan).run()
        sent = web.counters["authors"].lookups
        books = web.tables["books"]
    ids = set(books["author_id"].to_pylist()) - {None}
    asked = [
        cell
        for file in sorted(folder.asks.glob("*.arrow"))
        for cell, lookup in read_asks(file, plan.relations)
        if lookup.relation == "authors"
    ]
    rows = sum(file.rows for one in given(folder.given) for file in one.files)
    if rows != (true := _true(web)):
        raise RuntimeError(f"the answers over the book trade are wrong: {rows} rows where there are {true}")
    result.figures["lookups_vs_distinct"] = sum(sent.values()) / len(ids)
    result.detail["lookups"] = {
        "sent": sum(sent.values()),
        "distinct": len(ids),
        "asked_by_cells": len(asked),
        "cells": len(plan.cells),
    }


def _true(web: Web) -> int:
    with duckdb.connect() as connection:
        for name in ("books", "offers", "authors"):
            connection.register(name, web.tables[name])
        (count,) = connection.execute(f"SELECT count(*) FROM ({_SQL})").fetchall()[0]
        return int(count)
