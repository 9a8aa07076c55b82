"""The book trade as Python classes: relation by relation what `sources/book_trade` says in YAML."""

from __future__ import annotations

from sources import Int32, Relation, Source, index, scan
from wrappers import CsvReader, HtmlReader, JsonReader, LinkedPages, NumberedPages, Template

catalogue = Source(name="catalogue", base="${book_trade}/catalogue", allow_private=True)
who_is_who = Source(name="who_is_who", base="${book_trade}/who-is-who", concurrency=16, allow_private=True)
shelves = Source(name="shelves", base="${book_trade}/shelves", concurrency=16, allow_private=True)
library_finder = Source(name="library_finder", base="${book_trade}/library-finder", allow_private=True)
north = Source(name="prices_north", base="${book_trade}/prices-north", allow_private=True)
south = Source(name="prices_south", base="${book_trade}/prices-south", allow_private=True)
laurels = Source(name="laurels", base="${book_trade}/laurels", allow_private=True)
readers = Source(name="readers", base="${book_trade}/readers", concurrency=8, attempts=8, allow_private=True)


class Books(Relation, key="isbn"):
    isbn: str
    title: str
    author_id: int
    year: Int32
    publisher: str

    all = scan(
        mirrors=catalogue,
        request=Template(path="/books"),
        pages=NumberedPages(param="page", total="/pages"),
        reply=JsonReader(rows="/books"),
    )


class Authors(Relation, key="id"):
    id: int
    name: str
    born: Int32
    country: str

    by_id = index(
        mirrors=who_is_who,
        required="id",
        given="id",
        request=Template(path="/authors/{id}"),
        empty=404,
        reply=HtmlReader(
            details='//dl[@class="author"]', fields={"name": "Name", "born": "Born", "country": "Country"}
        ),
    )


class Holdings(Relation, key=["isbn", "library_id"]):
    isbn: str
    library_id: str
    copies: Int32
    available: Int32

    by_book_and_library = index(
        mirrors=shelves,
        required=["isbn", "library_id"],
        given=["isbn", "library_id"],
        request=Template(path="/libraries/{library_id}/books/{isbn}"),
        empty=[404],
        reply=JsonReader(),
    )


class Libraries(Relation, key="library_id"):
    library_id: str
    name: str
    city: str
    zip: str

    by_place = index(
        mirrors=library_finder,
        any_of=["city", "zip"],
        request=Template(path="/search", form={"city": "{city}", "zip": "{zip}"}),
        reply=HtmlReader(
            table='//table[@id="libraries"]',
            nothing='//p[@id="nothing-found"]',
            fields={"library_id": "No.", "name": "Library", "city": "City", "zip": "ZIP"},
        ),
    )


class Offers(Relation, key=["isbn", "shop"]):
    isbn: str
    shop: str
    price: float
    currency: str
    condition: str

    by_isbn = index(
        mirrors=[north, south],
        required="isbn",
        batch_size=20,
        request=Template(path="/offers", query={"isbn": "{isbn}"}, join=","),
        reply=JsonReader(rows="/offers", fields={"price": "/price/amount", "currency": "/price/currency"}),
    )


class Prizes(Relation):
    prize: str
    year: Int32
    isbn: str

    all = scan(mirrors=laurels, request=Template(path="/prizes.csv"), reply=CsvReader())


class Reviews(Relation, key=["isbn", "reviewer"]):
    isbn: str
    reviewer: str
    stars: Int32
    text: str

    by_isbn = index(
        mirrors=readers,
        required="isbn",
        given="isbn",
        request=Template(path="/reviews", query={"isbn": "{isbn}"}),
        pages=LinkedPages(next="/next"),
        reply=JsonReader(rows="/reviews", fields={"reviewer": "/by"}),
    )
