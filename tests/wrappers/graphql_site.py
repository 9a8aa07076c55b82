"""A library with a GraphQL endpoint. It takes the documents that it knows, and variables of their declared types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from wrappers.graphql import parse

SCAN = """
    query All($after: String) {
      books(first: 4, after: $after) {  # a comment, which is not sent
        edges { role node { ...book } }
        pageInfo { hasNextPage endCursor }
      }
    }
    fragment book on Book {isbn, title, year, price {amount}}
"""
OF_ROLE = """
    query ($role: String!, $after: String) {
      books(role: $role, first: 4, after: $after) {
        nodes { isbn title year price { amount } }
        pageInfo { hasNextPage endCursor }
      }
    }
"""
ONE = "query ($isbn: ID!) { book(isbn: $isbn) { isbn title year price { amount } } }"
SOME = "query ($isbns: [ID!]!) { books: byIsbn(isbns: $isbns) { isbn title year price { amount } } }"
SLICE = """
    query ($year: Int!, $skip: Int!, $take: Int!) {
      found(year: $year, skip: $skip, take: $take) { total items { isbn title year price { amount } } }
    }
"""

Book = dict[str, Any]
Way = Callable[..., dict[str, Any]]


def books(count: int = 23) -> list[Book]:
    return [
        {
            "isbn": f"b{n:02}",
            "title": f"Title {n}",
            "year": 2000 + n % 4,
            "price": {"amount": n + 0.5} if n % 5 else None,
        }
        for n in range(count)
    ]


@dataclass
class GraphqlSite:
    """`troubles` are replies that come first, as GraphQL's errors do: with status 200."""

    books: list[Book] = field(default_factory=books)
    troubles: list[dict[str, Any]] = field(default_factory=list)
    variables: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        said = await request.json()
        if request.method != "POST" or request.path != "/api/graphql" or set(said) != {"query", "variables"}:
            self.faults.append(f"{request.method} {request.path} {sorted(said)}")
            return web.json_response({"errors": [{"message": "no such thing"}]}, status=400)
        self.variables.append(said["variables"])
        known: dict[str, Way] = {
            SCAN: self.scan,
            OF_ROLE: self.of_role,
            ONE: self.one,
            SOME: self.some,
            SLICE: self.slice,
        }
        for text, way in known.items():
            if said["query"] == parse(text).text:
                return self._said(parse(text), way, said["variables"])
        self.faults.append(said["query"])
        return web.json_response({"errors": [{"message": "unknown document"}]})

    def _said(self, document: Any, way: Way, given: dict[str, Any]) -> web.Response:
        for name, variable in document.variables.items():
            if not _fits(given.get(name), variable.type):
                self.faults.append(f"${name}: {variable.type} is {given.get(name)!r}")
        if set(given) - set(document.variables) or self.faults:
            return web.json_response({"errors": [{"message": f"bad variables {given}"}]})
        if self.troubles:
            trouble = self.troubles.pop(0)
            return web.json_response({"data": way(**given), **trouble})
        return web.json_response({"data": way(**given)}, content_type="application/graphql-response+json")

    def scan(self, after: str | None = None) -> dict[str, Any]:
        start = int(after.removeprefix("c")) if after else 0
        found = self.books[start : start + 4]
        edges = [{"role": "novel", "node": book} for book in found]
        edges.append({"role": "none", "node": None})  # a book that its reader may not see
        return {"books": {"edges": edges, "pageInfo": self._page(start + len(found))}}

    def of_role(self, role: str, after: str | None = None) -> dict[str, Any]:
        if role != "novel":
            return {"books": None}
        data = self.scan(after)["books"]
        return {"books": {"nodes": [edge["node"] for edge in data["edges"]], "pageInfo": data["pageInfo"]}}

    def _page(self, end: int) -> dict[str, Any]:
        return {"hasNextPage": end < len(self.books), "endCursor": f"c{end}"}

    def one(self, isbn: str) -> dict[str, Any]:
        return {"book": next((b for b in self.books if b["isbn"] == isbn), None)}

    def some(self, isbns: list[str]) -> dict[str, Any]:
        return {"books": [self.one(isbn)["book"] for isbn in isbns]}

    def slice(self, year: int, skip: int, take: int) -> dict[str, Any]:
        found = [b for b in self.books if b["year"] == year]
        return {"found": {"total": len(found), "items": found[skip : skip + min(take, 3)]}}


def _fits(value: Any, type_: str) -> bool:
    """Whether a strict server would take this."""
    if type_.endswith("!"):
        return value is not None and _fits(value, type_[:-1])
    if value is None:
        return True
    if type_.startswith("["):
        return isinstance(value, list) and all(_fits(v, type_[1:-1]) for v in value)
    kinds: dict[str, type] = {"Int": int, "String": str, "ID": str}
    return type(value) is kinds[type_]
