"""What the tests of harvests share: book trades on loopback, harvests of them, and what the sites really hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import sources
from fixtures import Web
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from pipeline.harvest import parts
from pipeline.harvest.local import harvest
from pipeline.harvest.wanted import PARTS, Harvested
from sources.chosen import chosen_catalog

BOOK_TRADE = Path(sources.__file__).parent / "book_trade"
ISBNS = "SELECT isbn FROM books"


def catalog_of(web: Web) -> Catalog:
    return catalog_at(web.url)


def catalog_at(url: str) -> Catalog:
    found = chosen_catalog([BOOK_TRADE], {"book_trade": url})
    assert found is not None
    return found


def harvested(web: Web, store: Path, relation: str, bindings: Any = None, **more: Any) -> Harvested:
    return harvest(catalog_of(web), relation, store, bindings, **more)


def written(store: Path, relation: str) -> list[dict[str, Any]]:
    """The rows of the Parquet, in an order that says nothing."""
    return bag(parts.rows_of(parts.folder_of(store / PARTS, relation)))


def truth(web: Web, relation: str, **fields: list[object]) -> list[dict[str, Any]]:
    """What the site holds; of a field that is given a list, those rows whose value is in it."""
    found = web.tables[relation].to_pylist()
    for field, values in fields.items():
        found = [row for row in found if row[field] in values]
    return sorted(found, key=repr)


def bag(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)


def isbns(web: Web, count: int) -> list[str]:
    found: list[str] = web.tables["books"]["isbn"].to_pylist()[:count]
    return found


async def answered(web: Web, store: Path, sql: str, **said: Any) -> list[dict[str, Any]]:
    """A query with the harvest's store."""
    async with Mediator(catalog_of(web), store=store) as mediator, mediator.answering(sql, **said) as answers:
        batches = [batch async for batch in answers]
    assert answers.report.complete, answers.report.lines()
    return bag(pa.Table.from_batches(batches, answers.schema))
