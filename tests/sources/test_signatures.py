"""A function says by its parameters what has to be bound, and is given just that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import sources
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Refused, Unreadable
from sources import Relation, Source, index, scan
from tests.sources.kit import asked, serving
from wrappers import JsonReader, NumberedPages, SiteReply, Template, get, post

SITE = Source(name="site", base="${site:-https://x.example}", allow_private=True)


class Places(Relation):
    city: str
    zip: str
    year: int
    name: str

    all = scan(mirrors=SITE, reply=JsonReader())(lambda self: get("/all"))

    @index(mirrors=SITE, reply=JsonReader(), any_of=["city", "zip"])
    def by_place(self, city: str | None = None, zip: str | None = None, year: int | None = None) -> Request:
        return get("/places", query={"city": city, "zip": zip, "year": year})

    @index(mirrors=SITE, reply=JsonReader())
    def by_year(
        self,
        city: str,
        year_at_least: int | None = None,
        year_below: int | None = None,
        name_starts: str = "",
    ) -> Request:
        return get(
            "/since", city, query={"from": year_at_least, "to": year_below, "name": name_starts or None}
        )

    @index(mirrors=SITE, reply=JsonReader(), required="name", batch_size=3)
    def by_names(self, **bound: list[str]) -> Request:
        return post("/names", json=bound)


PLACES = sources.declared(Places).relations["places"]


def test_parameters_are_bind_fields() -> None:
    found = {m.name: (m.kind, m.required, m.any_of, m.optional) for m in PLACES.methods}
    assert found == {
        "all": ("scan", (), (), ()),
        "by_place": ("index", (), ("city", "zip"), ("year",)),
        "by_year": ("index", ("city",), (), ("year>=", "year<", "name^=")),
        "by_names": ("index", ("name",), (), ()),
    }


@pytest.mark.parametrize(
    ("method", "bound", "path", "query"),
    [
        ("all", {}, "/all", ()),
        ("by_place", {"zip": "1"}, "/places", (("zip", "1"),)),
        ("by_place", {"city": "a b", "year": 5}, "/places", (("city", "a b"), ("year", "5"))),
        ("by_year", {"city": "å/b"}, "/since/%C3%A5%2Fb", ()),
        ("by_year", {"city": "x", "year>=": 3, "name^=": "n"}, "/since/x", (("from", "3"), ("name", "n"))),
    ],
)
def test_what_is_bound_is_given(
    method: str, bound: Mapping[str, Any], path: str, query: tuple[tuple[str, str], ...]
) -> None:
    wrapper = PLACES.method(method).wrapper
    assert wrapper is not None
    request = wrapper.request(tuple(bound), [tuple(bound.values())])
    assert (request.path, request.query) == (path, query)


def test_several_bindings_are_lists_and_one_alone_is_too() -> None:
    wrapper = PLACES.method("by_names").wrapper
    assert wrapper is not None
    assert wrapper.request(("name",), [("a",), ("b",)]).body == b'{"name":["a","b"]}'
    assert wrapper.request(("name",), [("a",)]).body == b'{"name":["a"]}'


@pytest.mark.parametrize("step", ["", ".", ".."])
def test_a_path_leads_where_it_is_meant_to(step: str) -> None:
    with pytest.raises(Refused, match="cannot be sent in a path"):
        get("/places", step)


def test_requests_that_cannot_be_meant() -> None:
    with pytest.raises(ValueError, match="the path 'places' is relative to nothing: write /places"):
        get("places")
    with pytest.raises(ValueError, match="a request has one body: give form or json"):
        post("/", form={}, json={})
    with pytest.raises(Refused, match="cannot be sent in the header 'X'"):
        get("/", headers={"X": "a\r\nHost: b"})
    with pytest.raises(Refused, match="cannot be sent in the header"):
        get("/", headers={"X Y": "a"})


class Since(Relation):
    city: str
    year: int

    @index(mirrors=SITE, reply=JsonReader())
    def by_city(self, city: str, year_at_least: int | None = None) -> Request:
        return get("/since", city, query={"from": year_at_least})


async def test_bounds_of_a_query_reach_the_function() -> None:
    rows = '[{"city": "x", "year": 7}, {"city": "x", "year": 3}]'
    with serving(lambda method, path, body: (200, rows)) as site:
        found = await asked(
            sources.declared(Since, {"site": site.url}),
            "SELECT year FROM since WHERE city = 'x' AND year >= 5",
        )
    assert found.rows == [{"year": 7}]
    assert found.report.complete
    assert site.requests == ["GET /since/x?from=5"]


class Greeted(Relation):
    """A greeting by code, and all that comes after it as data, page by page."""

    n: int

    @scan(mirrors=SITE, reply=JsonReader(rows="/rows"), pages=NumberedPages(param="page"))
    def all(self) -> Request:
        return get("/hello", rows=self.said_hello)

    def said_hello(self, reply: SiteReply) -> Iterator[Request]:
        yield get("/rows", query={"token": reply.text()})


async def test_after_a_greeting_the_declared_pages_begin() -> None:
    def answer(method: str, path: str, body: str) -> tuple[int, str]:
        page = int(path.rpartition("=")[2]) if "page" in path else 0
        return 200, f'{{"rows": [{{"n": {page}}}]}}' if 0 < page < 4 else '{"rows": []}' if page else "t7"

    with serving(answer) as site:
        found = await asked(sources.declared(Greeted, {"site": site.url}), "SELECT n FROM greeted")
    assert sorted(row["n"] for row in found.rows) == [1, 2, 3]
    assert found.report.complete
    pages = [f"GET /rows?token=t7&page={n}" for n in range(1, 5)]
    assert site.requests == ["GET /hello", *pages]


def test_one_way_with_two_names_is_one_way() -> None:
    class Twice(Relation):
        n: int
        all = scan(mirrors=SITE, reply=JsonReader())

        @all
        def written(self) -> Request:
            return get("/")

    assert [m.name for m in sources.declared(Twice).relations["twice"].methods] == ["all"]


def test_a_derived_class_may_write_functions_anew() -> None:
    class Base(Relation, abstract=True):
        n: int

        @index(mirrors=SITE)
        def by_n(self, n: int) -> Request:
            return get("/old", n)

        @by_n.rows
        def read(self, reply: SiteReply) -> object:
            return [{"n": 1}]

    class AsBefore(Base):
        pass

    class Anew(Base):
        def by_n(self, n: int) -> Request:  # type: ignore[override]  # a way, of which this is the function
            return get("/new", n)

        def read(self, reply: SiteReply) -> object:
            return [{"n": 2}]

    for relation, path, n in ((AsBefore, "/old/5", 1), (Anew, "/new/5", 2)):
        (found,) = sources.declared(relation).relations.values()
        wrapper = found.method("by_n").wrapper
        assert wrapper is not None
        request = wrapper.request(("n",), [(5,)])
        assert request.path == path
        assert wrapper.read(request, ("n",), [(5,)], Reply(200, {}, b"")).rows.to_pylist() == [{"n": n}]


def test_declared_pages_keep_nothing_and_are_turned_by_themselves() -> None:
    class Kept(Relation):
        n: int
        all = scan(mirrors=SITE, reply=JsonReader(), pages=NumberedPages(param="page"))(
            lambda self: get("/", kept=1)
        )
        also = scan(
            mirrors=SITE,
            request=Template(path="/"),
            reply=lambda self, reply: [get("/more")],
            pages=NumberedPages(param="page"),
        )

    kept, also = (m.wrapper for m in sources.declared(Kept).relations["kept"].methods)
    assert kept is not None
    assert also is not None
    with pytest.raises(
        Refused, match=r"Kept.all gives a request something to keep, but declared pages keep nothing"
    ):
        kept.request((), [()])
    with pytest.raises(
        Unreadable, match=r"Kept.also yields requests, and its pages are declared: leave out one"
    ):
        also.read(also.request((), [()]), (), [()], Reply(200, {}, b""))
