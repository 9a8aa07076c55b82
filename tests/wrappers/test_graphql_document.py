"""GraphQL documents: what is read of them, what is told, and what a declaration can get wrong with one."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sources
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from wrappers import GraphqlQuery, Reply
from wrappers.graphql import parse
from wrappers.graphql.tokens import NotGraphql

GOOD = '''\
query Some($a: [ID!]! = ["x{y}"], $b: Int @size(of: 3)) @fast {  # {{{ not counted
  books: byIsbn(ids: $a, filter: {n: $b, said: """a "quoted" } text""", or: [{a: 1}, ENUM, -1.5e3, null]}) {
    isbn, title
    ...price
    ... on Novel @include(if: true) { hero { name } }
    ... { pages }
  }
}
fragment price on Book { price { amount } hero { born } }
'''


def test_the_tree_of_names_is_that_of_the_reply() -> None:
    document = parse(GOOD)
    below = document.asked.below["books"].below
    assert list(below) == ["isbn", "title", "hero", "pages", "price"]
    assert list(below["hero"].below) == ["name", "born"]
    a, b = document.variables.values()
    assert (a.type, a.is_list, a.must_be_given, a.scalar) == ("[ID!]!", True, False, "ID")
    assert (b.type, b.is_list, b.must_be_given, b.scalar) == ("Int", False, False, "Int")


def test_it_is_sent_in_one_line_that_means_the_same() -> None:
    once = parse(GOOD)
    assert "\n" not in once.text
    assert "not counted" not in once.text
    assert not re.search(r"\{\w", once.text.replace('"x{y}"', ""))
    again = parse(once.text)
    assert (again.text, again.asked) == (once.text, once.asked)


@pytest.mark.parametrize("text", ["{ a }", "query { a }", "query Q { a(x: 1) }", "\ufeff{a,b ,c}"])
def test_short_forms(text: str) -> None:
    assert "a" in parse(text).asked.below


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no query"),
        ("# only a comment", "there is no query"),
        ("fragment a on B { c }", "there is no query"),
        ("{ a ", "line 1 of the query: { is not closed: add }"),
        ("{ a\n(b: [1) }", "line 2 of the query: ) where ] should close the [ of line 2"),
        ("{ a } }", "} closes nothing: remove it"),
        ("{ }", "nothing is asked for between these braces"),
        ("{ a { } }", "nothing is asked for"),
        ("mutation { a }", "a mutation does not read: write a query"),
        ("subscription { a }", "a subscription does not read"),
        ("{ a } { b }", "a second operation"),
        ("query A { a } query B { b }", "a second operation"),
        ("type A { b: C }", "expected {, found type"),
        ("query ($a: Int) {\n b(c: $d) }", "line 2 of the query: $d is used but not declared"),
        ("query ($a: Int) { b }", "$a is declared but not used: remove it"),
        ("query ($a: Int, $a: Int) { b(c: $a) }", "$a is declared twice"),
        ("query ($a) { b(c: $a) }", "expected :, found )"),
        ("query ($a:) { b(c: $a) }", "$a has no type"),
        ("query (a: Int) { b }", "expected $, found a"),
        ("{ a(b:) }", "expected a value, found )"),
        ("{ a(b: :) }", "expected a value, found :"),
        ("{ a(b: !) }", "expected a value, found !"),
        ("{ a(b: $) }", "expected a name, found )"),
        ("{ a(1: 2) }", "expected a name, found 1"),
        ('{ a(b: "x) }', "a text that does not end"),
        ('{ a(b: """x) }', "a text that does not end"),
        ("{ a ?b }", "'?' has no meaning here"),
        ("{ ...b }", "there is no fragment b"),
        ("{ ...b } fragment b on C { ...b }", "the fragment b contains itself"),
        ("{ ...b } fragment b on C { d { ...c } } fragment c on C { ...b }", "contains itself"),
        ("{ a } fragment b on C { d }", "the fragment b is not used"),
        ("{ ...b } fragment b on C { d } fragment b on C { e }", "the fragment b is there twice"),
        ("{ a" * 100 + "}" * 100, "more than 50 braces deep"),
        ("{ a " + "x" * 100_000 + "}", "more than 100,000 characters"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(NotGraphql, match=re.escape(said)):
        parse(text)


@pytest.mark.timeout(20)
def test_fragments_that_multiply_are_told() -> None:
    bomb = "{ ...f0 }" + "".join(f"fragment f{n} on A {{ ...f{n + 1} ...f{n + 1} }}" for n in range(40))
    with pytest.raises(NotGraphql, match="asks for more than 20,000 fields"):
        parse(bomb + "fragment f40 on A { a }")


@given(st.text(string.printable + '"{}()[]$!:.@ab', max_size=60))
def test_any_text_is_read_or_told(text: str) -> None:
    try:
        once, told = parse(text), ""
    except NotGraphql as error:
        once, told = None, str(error)
    assert once is not None or told.startswith("line ")
    if once is not None:
        assert parse(once.text).asked == once.asked


SITE = """\
sources:
  shop: {base: "https://shop.example"}
relations:
  books:
    fields: {isbn: string, year: int32, price: float64}
    methods:
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        graphql:
          query: |
            query ($isbn: ID!, $after: String) {
              books(isbn: $isbn, after: $after) {
                edges { node { isbn year price } }
                pageInfo { hasNextPage endCursor }
              }
            }
          rows: /data/books/edges
          cursor: after
"""


def load(folder: Path, text: str) -> Catalog:
    (folder / "shop.yaml").write_text(text)
    return sources.load(folder)


def test_it_compiles_to_what_any_declaration_compiles_to(tmp_path: Path) -> None:
    (method,) = load(tmp_path, SITE).relations["books"].methods
    assert method.wrapper is not None
    request = method.wrapper.request(("isbn",), [("7",)])
    assert (request.method, request.path) == ("POST", "/graphql")
    assert dict(request.headers)["Accept"].startswith("application/graphql-response+json")
    assert request.body is not None
    assert request.body.endswith(b'"variables":{"isbn":"7"}}')


PLACE = r"shop\.yaml:(\d+): relations\.books\.methods\.by_isbn\S*: "


@pytest.mark.parametrize(
    ("right", "wrong", "line", "said"),
    [
        (
            "required: [isbn]",
            "",
            10,
            "$isbn is used but not given: add isbn: to 'variables', or make 'isbn' a bind",
        ),
        (
            "required: [isbn]",
            "optional: [isbn]",
            11,
            "$isbn: ID! has to be given, but is not always: declare it ID",
        ),
        ("required: [isbn]", "required: [isbn, year]", 10, "bind-field 'year' is never sent"),
        (
            "required: [isbn]",
            "required: [isbn]\n        batch_size: 9",
            12,
            "declare it [ID!], or leave out batch_size",
        ),
        ("$isbn: ID!", "$isbn: Int!", 11, "$isbn is Int!, but 'isbn' is string: declare the variable String"),
        ("$after: String", "$after: String!", 11, "$after: String! has to be given, but is not always"),
        ("(isbn: $isbn, ", '(isbn: "{isbn}", ', 11, "$isbn is declared but not used"),
        (
            "after: $after)",
            'after: $after, x: "{isbn}")',
            11,
            "{isbn} is not filled in here: declare a variable",
        ),
        ("edges { node", "edge { node", 18, "unknown field of the query 'edges': did you mean 'edge'?"),
        ("isbn year price", "isbn year", 11, "the query does not ask for 'price' at '/node/price' of a row"),
        ("rows: /data/books/edges", "rows: /books/edges", 18, "has to begin with /data/"),
        ("rows: /data/books/edges", "rows: /data/books", 19, "'rows' has to end in /edges or /nodes"),
        ("endCursor", "", 19, "the query has to ask for pageInfo { hasNextPage endCursor }"),
        ("cursor: after", "cursor: aftr", 19, "unknown variable 'aftr': did you mean 'after'?"),
        ("cursor: after", "variables: {isbm: x}", 19, "unknown variable 'isbm': did you mean 'isbn'?"),
        ("cursor: after", "cursor: after\n          variables: {after: x}", 20, "$after turns the pages"),
        ("cursor: after", "curser: after", 19, "unknown field 'curser': did you mean 'cursor'?"),
        (
            "        graphql:",
            "        pages: {next: /x}\n        graphql:",
            10,
            "'cursor' turns the pages already",
        ),
        ("        graphql:", "        request: {path: /x}\n        graphql:", 10, "leave out 'request'"),
        ("        graphql:", "        reply: {kind: json}\n        graphql:", 10, "leave out 'reply'"),
    ],
)
def test_what_is_wrong_is_told_with_line_field_and_fix(
    tmp_path: Path, right: str, wrong: str, line: int, said: str
) -> None:
    assert right in SITE
    with pytest.raises(CatalogError, match=PLACE + ".*" + re.escape(said)) as told:
        load(tmp_path, SITE.replace(right, wrong, 1))
    assert re.search(PLACE, str(told.value))[1] == str(line)  # type: ignore[index]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ("{next: /x}", "GraphQL turns pages by variables"),
        ("{rel: next}", "GraphQL turns pages by variables"),
        ("{offset: afer}", "unknown variable 'afer': did you mean 'after'?"),
        ("{offset: after, place: json}", "leave out place"),
        ("{offset: after, total: /data/books/total}", "the query does not ask for '/data/books/total'"),
        ("{param: after, cursor: /data/books/pageInfo/end}", "the query does not ask for"),
    ],
)
def test_pages_are_turned_by_variables(tmp_path: Path, pages: str, said: str) -> None:
    text = SITE.replace("          cursor: after\n", f"        pages: {pages}\n")
    with pytest.raises(CatalogError, match=re.escape(said)):
        load(tmp_path, text)


def test_without_graphql_request_and_reply_are_still_needed(tmp_path: Path) -> None:
    text = SITE[: SITE.index("        graphql:")]
    with pytest.raises(CatalogError, match=r"shop\.yaml:7: .*'request' is missing: add it, or 'graphql'"):
        load(tmp_path, text)
    with pytest.raises(CatalogError, match="'reply' is missing"):
        load(tmp_path, text + "        request: {path: /x}\n")


def test_a_bind_field_with_an_operator_goes_where_it_is_said_to(tmp_path: Path) -> None:
    text = SITE.replace("required: [isbn]", "required: ['year>=']").replace("$isbn: ID!", "$from: Int!")
    text = text.replace("isbn: $isbn", "from: $from") + '          variables: {from: "{year>=}"}\n'
    (method,) = load(tmp_path, text).relations["books"].methods
    assert method.wrapper is not None
    request = method.wrapper.request(("year>=",), [(1999,)])
    assert request.body is not None
    assert request.body.endswith(b'"variables":{"from":1999}}')
    with pytest.raises(
        CatalogError, match=re.escape("$from is String!, but 'year>=' is int32: declare the variable Int")
    ):
        load(tmp_path, text.replace("$from: Int!", "$from: String!"))


def test_in_python_it_is_the_same(tmp_path: Path) -> None:
    query = "query ($isbn: ID!) { book(isbn: $isbn) { isbn year } }"
    site = sources.Source(name="shop", base="https://shop.example")

    class Books(sources.Relation, key="isbn"):
        isbn: str
        year: int

        by_isbn = sources.index(
            mirrors=site, required="isbn", graphql=GraphqlQuery(query=query, rows="/data/book")
        )

    (method,) = sources.declared(Books).relations["books"].methods
    assert method.wrapper is not None
    request = method.wrapper.request(("isbn",), [("7",)])
    found = method.wrapper.read(
        request, ("isbn",), [("7",)], Reply(200, {}, b'{"data": {"book": {"isbn": "7", "year": 3}}}')
    )
    assert found.rows.to_pylist() == [{"isbn": "7", "year": 3}]
