"""Prices are declared in `prices.yaml`; stock is told as text, one book in a line, and so is code."""

from collections.abc import Iterator

from sources import Relation, index
from wrappers import Request, SiteReply, get

__all__ = ["Stock"]


class Stock(Relation, name="little_stock", key="isbn"):
    isbn: str
    copies: int

    @index(mirrors="little_shop", batch_size=5)  # the source is declared in prices.yaml
    def by_isbn(self, isbn: list[str]) -> Request:
        return get("/stock", query={"isbn": isbn})

    @by_isbn.rows
    def lines(self, reply: SiteReply) -> Iterator["Stock"]:
        for line in reply.text().splitlines():
            isbn, _, copies = line.partition(" x ")
            yield Stock(isbn=isbn, copies=int(copies))
