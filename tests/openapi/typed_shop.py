"""The API that `documents/typed_shop.json` describes, as its framework would serve it, and the rows that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from aiohttp import web

Row = dict[str, Any]


def _books() -> list[Row]:
    return [
        {
            "isbn": f"978-{n:03}",
            "title": f"Title {n % 30}",
            "year": None if n % 7 == 0 else 1990 + n % 20,
            "authorId": n % 9,
            "published": None if n % 5 == 0 else f"2020-{n % 12 + 1:02}-11",
            "seen": f"2026-01-{n % 28 + 1:02}T10:00:00Z",
            "price": None if n % 6 == 0 else {"amount": n / 4, "currency": "EUR" if n % 2 else None},
            "tags": ["a", "b"],
        }
        for n in range(130)
    ]


@dataclass
class TypedShop:
    books: list[Row] = field(default_factory=_books)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authors = [{"id": n, "name": f"Author {n}"} for n in range(8)]  # the ninth is nobody
        self.reviews = {
            book["isbn"]: [{"reviewer": f"r{k}", "stars": k % 5 + 1} for k in range(n % 95)]
            for n, book in enumerate(self.books)
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        match request.path.strip("/").split("/"):
            case ["books"]:
                return self._page(request)
            case ["books", isbn]:
                return self._one([b for b in self.books if b["isbn"] == isbn])
            case ["books", isbn, "reviews"]:
                return self._slice(self.reviews.get(isbn, []), request)
            case ["authors"]:
                ids = {int(i) for i in request.query.getall("ids")}
                assert len(ids) <= 50
                return web.json_response([a for a in self.authors if a["id"] in ids])
            case ["authors", author_id, "books"]:
                return web.json_response([b for b in self.books if b["authorId"] == int(author_id)])
        return web.json_response({"detail": "Not Found"}, status=404)

    def _page(self, request: web.Request) -> web.Response:
        page, size = int(request.query.get("page", "1")), int(request.query.get("per_page", "50"))
        if size > 100:
            return web.json_response({"detail": "per_page"}, status=422)
        author = request.query.get("author_id")
        found = [b for b in self.books if author is None or b["authorId"] == int(author)]
        items = found[(page - 1) * size : page * size]
        return web.json_response({"items": items, "total": len(found), "pages": -(-len(found) // size)})

    def _slice(self, rows: list[Row], request: web.Request) -> web.Response:
        offset, limit = int(request.query.get("offset", "0")), int(request.query.get("limit", "10"))
        if limit > 40:
            return web.json_response({"detail": "limit"}, status=422)
        return web.json_response(rows[offset : offset + limit])

    def _one(self, rows: list[Row]) -> web.Response:
        return web.json_response(rows[0]) if rows else web.json_response({"detail": "none"}, status=404)

    def tables(self) -> dict[str, pa.Table]:
        """The truth, in the columns that the draft has."""
        books = [
            {
                "isbn": b["isbn"],
                "title": b["title"],
                "year": b["year"],
                "author_id": b["authorId"],
                "published": b["published"],
                "seen": b["seen"].removesuffix("Z"),
                "price_amount": (b["price"] or {}).get("amount"),
                "price_currency": (b["price"] or {}).get("currency"),
            }
            for b in self.books
        ]
        reviews = [{"isbn": isbn, **review} for isbn, found in self.reviews.items() for review in found]
        return {
            "books": pa.Table.from_pylist(books),
            "authors": pa.Table.from_pylist(self.authors),
            "books_reviews": pa.Table.from_pylist(reviews),
        }
