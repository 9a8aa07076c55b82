"""A shop on loopback whose offers can be asked for by ranges, and that may do otherwise than it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from aiohttp import web

import sources
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.output.report import Report
from tests.answering.kit import ask
from tests.wrappers.http_site import served

SCHEMA = pa.schema(
    [
        ("isbn", pa.string()),
        ("shop", pa.string()),
        ("price", pa.float64()),
        ("year", pa.int32()),
        ("title", pa.string()),
        ("since", pa.date32()),
    ]
)
_TITLES = ("Dunes", "Dubliners", "dust", "Emma", "Émile", None)
ROWS = [
    {
        "isbn": f"b{n % 7}",
        "shop": f"s{n % 4}",
        "price": None if n % 11 == 3 else n / 2,
        "year": None if n % 13 == 5 else 1990 + n % 17,
        "title": _TITLES[n % len(_TITLES)],
        "since": date(2024, 1 + n % 12, 1),
    }
    for n in range(60)
]
OFFERS = pa.Table.from_pylist(ROWS, schema=SCHEMA)
BOOKS = pa.table(
    {"isbn": [f"b{n}" for n in range(9)], "printed": pa.array([1989 + n for n in range(9)], pa.int32())}
)

# What each parameter that the site knows does with a value that is there.
_MEANS: dict[str, Callable[[dict[str, Any], str], bool]] = {
    "isbn": lambda row, text: row["isbn"] == text,
    "max_price": lambda row, text: row["price"] <= float(text),
    "below_price": lambda row, text: row["price"] < float(text),
    "min_price": lambda row, text: row["price"] >= float(text),
    "from_year": lambda row, text: row["year"] >= int(text),
    "after_year": lambda row, text: row["year"] > int(text),
    "to_year": lambda row, text: row["year"] <= int(text),
    "title": lambda row, text: row["title"].startswith(text),
    "title_any_case": lambda row, text: row["title"].lower().startswith(text.lower()),
    "from_day": lambda row, text: row["since"] >= date.fromisoformat(text),
}
_READS = {"max_price": "price", "below_price": "price", "min_price": "price", "from_year": "year"}
_READS |= {"after_year": "year", "to_year": "year", "title_any_case": "title", "from_day": "since"}


@dataclass
class Shop:
    """The site, and what it was asked."""

    rows: Sequence[dict[str, Any]] = field(default_factory=lambda: ROWS)
    deaf: frozenset[str] = frozenset()  # parameters that it takes no notice of
    most: int = 10_000  # rows that it ever gives
    size: int = 10_000  # of a page
    hangs: int = 10_000  # from this page on none is ever sent
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, said: dict[str, str]) -> dict[str, Any]:
        self.asked.append(said)
        found = [row for row in self.rows if all(self._meets(row, name, text) for name, text in said.items())]
        found = found[: self.most]
        page = int(said.get("page", 1))
        start = (page - 1) * self.size
        more = {"next": f"?{_query(said, page + 1)}"} if start + self.size < len(found) else {}
        pages = -(-len(found) // self.size) or 1
        return {"offers": found[start : start + self.size], "pages": pages, **more}

    def _meets(self, row: dict[str, Any], name: str, text: str) -> bool:
        if name not in _MEANS or name in self.deaf:
            return True
        return row[_READS.get(name, name)] is not None and _MEANS[name](row, text)


def _left(request: web.Request) -> bool:
    """Whether nobody waits for the reply any more."""
    return request.transport is None or request.transport.is_closing()


def _query(said: dict[str, str], page: int) -> str:
    return "&".join(f"{name}={text}" for name, text in {**said, "page": str(page)}.items())


@contextmanager
def open_shop(shop: Shop) -> Iterator[str]:
    """Its address."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/books"):
            found: Any = {"books": BOOKS.to_pylist()}
        else:
            body = json.loads(await request.text() or "{}")
            parts = request.path.split("/")
            placed = {parts[-2]: parts[-1]} if len(parts) > 3 else {}
            said = {**{k: str(v) for k, v in body.items()}, **request.query, **placed}
            found = shop.answer(said)
            # Nothing tells a site that its client has left; it has to look.
            while int(said.get("page", 1)) >= shop.hangs and not _left(request):
                await asyncio.sleep(0.01)
        return web.Response(text=json.dumps(found, default=str), content_type="application/json")

    with served(answer) as address:
        yield address


def declared(folder: Path, address: str, *methods: str) -> Catalog:
    """Offers with these methods, each a YAML mapping in one line; and books, which are scanned."""
    lines = [
        "sources:",
        f'  shop: {{base: "{address}", allow_private: true, attempts: 1}}',
        "relations:",
        "  books:",
        "    fields: {isbn: string, printed: int32}",
        "    methods:",
        "      all: {mirrors: [shop], request: {path: /books}, reply: {kind: json, rows: /books}}",
        "  offers:",
        "    fields: {isbn: string, shop: string, price: float64, year: int32, title: string, since: date}",
        "    methods:",
    ]
    reply = "mirrors: [shop], reply: {kind: json, rows: /offers}"
    lines += [f"      way{n}: {{{reply}, {method}}}" for n, method in enumerate(methods)]
    path = folder / "shop.yaml"
    path.write_text("\n".join(lines) + "\n")
    return sources.load(path)


def answers(
    catalog: Catalog, *statements: str, parameters: Sequence[object] = (), **said: Any
) -> list[tuple[pa.Table, Report]]:
    """What one mediator answers to statements, one after the other."""

    async def run() -> list[tuple[pa.Table, Report]]:
        async with Mediator(catalog, threads=1, **said) as mediator:
            if parameters:
                return [await ask(mediator, sql, parameters=parameters) for sql in statements]
            return [await ask(mediator, sql) for sql in statements]

    return asyncio.run(run())
