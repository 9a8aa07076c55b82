"""Queries over a real GraphQL endpoint: rows, pages, typed variables, and errors that never pass for rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sources
from mediator.answering import answer
from mediator.catalog.wrapper import Reply, Request
from mediator.output.report import Report
from tests.answering.kit import failures
from tests.wrappers.graphql_site import OF_ROLE, ONE, SCAN, SLICE, SOME, GraphqlSite
from tests.wrappers.http_site import served
from tests.wrappers.paged_site import read_all
from wrappers import DeclaredWrapper

HEAD = """\
sources:
  library: {base: "${library}/api", allow_private: true, attempts: 3}
relations:
  books:
    key: [isbn]
    fields: {FIELDS}
    methods:
      way:
        mirrors: [library]
        BINDS
        graphql:
          query: |
QUERY
          REST
"""
FIELDS = "isbn: string, title: string, year: int32, price: float64"
WAYS = {
    "scan": (
        "",
        SCAN,
        "rows: /data/books/edges\n          fields: {price: /node/price/amount}\n          cursor: after",
    ),
    "role": (
        "required: [role]\n        given: [role]",
        OF_ROLE,
        "rows: /data/books/nodes\n          fields: {price: /price/amount}\n          cursor: after",
    ),
    "one": ("required: [isbn]", ONE, "rows: /data/book\n          fields: {price: /price/amount}"),
    "some": (
        "required: [isbn]\n        batch_size: 5",
        SOME,
        'variables: {isbns: "{isbn}"}\n          rows: /data/books\n          fields: {price: price.amount}',
    ),
    "slice": (
        "required: [year]\n        pages: {offset: skip, limit: take, size: 5, total: /data/found/total}",
        SLICE,
        "rows: /data/found/items\n          fields: {price: /price/amount}",
    ),
}


def declared(folder: Path, way: str, fields: str = FIELDS, more: str = "") -> Path:
    binds, query, rest = WAYS[way]
    indented = "\n".join(f"            {line}" for line in query.strip("\n").splitlines())
    text = (
        HEAD.replace("FIELDS", fields)
        .replace("BINDS", f"{binds}{more}")
        .replace("QUERY", indented)
        .replace("REST", rest)
    )
    (folder / "library.yaml").write_text(text)
    return folder / "library.yaml"


@pytest.fixture
def site() -> Iterator[tuple[GraphqlSite, str]]:
    library = GraphqlSite()
    with served(library.answer) as address:
        yield library, address
    assert library.faults == []


def asked(path: Path, address: str, sql: str) -> tuple[pa.Table, Report]:
    return answer(sql, sources.load(path, {"library": address}))


def rows(library: GraphqlSite, *isbns: str) -> list[dict[str, Any]]:
    return [
        {**book, "price": book["price"] and book["price"]["amount"]}
        for book in library.books
        if not isbns or book["isbn"] in isbns
    ]


def test_a_scan_turns_relay_pages(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    table, report = asked(declared(tmp_path, "scan"), address, "SELECT * FROM books ORDER BY isbn")
    assert table.to_pylist() == rows(library)
    assert report.complete
    assert library.variables == [{}, *({"after": f"c{n}"} for n in (4, 8, 12, 16, 20))]


def test_an_edge_has_fields_of_its_own(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    _, address = site
    path = declared(tmp_path, "scan", f"{FIELDS}, role: string")
    path.write_text(path.read_text().replace("fields: {price:", "fields: {role: /role, price:"))
    table, report = asked(path, address, "SELECT DISTINCT role FROM books")
    assert (table.to_pylist(), report.complete) == ([{"role": "novel"}], True)


@pytest.mark.parametrize(("role", "count"), [("novel", 23), ("poem", 0)])
def test_rows_below_nodes_and_a_connection_that_is_null(
    tmp_path: Path, site: tuple[GraphqlSite, str], role: str, count: int
) -> None:
    _, address = site
    path = declared(tmp_path, "role", f"{FIELDS}, role: string")
    table, report = asked(path, address, f"SELECT isbn FROM books WHERE role = '{role}'")
    assert (table.num_rows, report.complete) == (count, True)


def test_a_lookup_that_finds_null_finds_nothing(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    path = declared(tmp_path, "one")
    table, report = asked(
        path, address, "SELECT * FROM books WHERE isbn IN ('b03', 'b05', 'b99') ORDER BY isbn"
    )
    assert table.to_pylist() == rows(library, "b03", "b05")
    assert table["price"].to_pylist() == [3.5, None]
    assert report.complete
    assert sorted(v["isbn"] for v in library.variables) == ["b03", "b05", "b99"]


def test_several_bindings_are_one_list(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    isbns = [f"b{n:02}" for n in range(0, 30, 3)]
    listed = ", ".join(f"'{isbn}'" for isbn in isbns)
    table, report = asked(
        declared(tmp_path, "some"), address, f"SELECT * FROM books WHERE isbn IN ({listed}) ORDER BY isbn"
    )
    assert table.to_pylist() == rows(library, *isbns)
    assert report.complete
    assert sorted(len(v["isbns"]) for v in library.variables) == [5, 5]


def test_a_list_of_one_is_a_list(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    path = declared(tmp_path, "some")
    path.write_text(path.read_text().replace("batch_size: 5", ""))
    table, report = asked(path, address, "SELECT * FROM books WHERE isbn IN ('b01', 'b02') ORDER BY isbn")
    assert (table.to_pylist(), report.complete) == (rows(library, "b01", "b02"), True)
    assert sorted(v["isbns"] for v in library.variables) == [["b01"], ["b02"]]


def test_offsets_are_variables_and_numbers_stay_numbers(
    tmp_path: Path, site: tuple[GraphqlSite, str]
) -> None:
    library, address = site
    table, report = asked(declared(tmp_path, "slice"), address, "SELECT isbn FROM books WHERE year = 2001")
    assert sorted(table["isbn"].to_pylist()) == [b["isbn"] for b in library.books if b["year"] == 2001]
    assert report.complete
    assert library.variables == [{"year": 2001, "skip": 0, "take": 5}, {"year": 2001, "skip": 3, "take": 3}]


def _error(message: str, **more: object) -> dict[str, Any]:
    return {"errors": [{"message": message, **more}]}


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"data": None, **_error("no such field")}, "no such field"),
        (_error("half of it is missing", path=["books", 2]), "half of it is missing"),
        ({"errors": [{}]}, "a failure"),
        ({"errors": "a text"}, "a text"),
        ({"data": None}, "expected 'data', found neither that nor errors"),
        ({"data": [1]}, "expected 'data', found neither that nor errors"),
        ({"data": {"books": {"edges": []}}}, "expected true or false at '/data/books/pageInfo/hasNextPage'"),
        (
            {"data": {"books": {"edges": [{"node": {"isbn": "1"}}], "pageInfo": {"hasNextPage": False}}}},
            "books.title",
        ),
    ],
)
def test_an_error_is_a_failure_whatever_came_beside_it(
    tmp_path: Path, site: tuple[GraphqlSite, str], trouble: dict[str, Any], said: str
) -> None:
    library, address = site
    library.troubles = [trouble] * 3
    table, report = asked(declared(tmp_path, "scan"), address, "SELECT isbn FROM books")
    assert (table.num_rows, report.complete) == (0, False)
    assert [said in failure.cause.message for _, failure in failures(report)] == [True]


def test_no_errors_are_no_error(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    library.troubles = [{"errors": []}, {"errors": None, "extensions": {"cost": 3}}]
    table, report = asked(declared(tmp_path, "scan"), address, "SELECT isbn FROM books")
    assert (table.num_rows, report.complete) == (23, True)


@pytest.mark.parametrize(
    "error",
    [
        _error("slow down", extensions={"code": "THROTTLED"}),
        _error("slow down", extensions={"code": "RATE_LIMITED"}),
        _error("slow down", type="RATE_LIMITED"),
    ],
)
def test_too_many_requests_are_asked_again(
    tmp_path: Path, site: tuple[GraphqlSite, str], error: dict[str, Any]
) -> None:
    library, address = site
    library.troubles = [{"data": None, **error}]
    table, report = asked(declared(tmp_path, "scan"), address, "SELECT isbn FROM books")
    assert (table.num_rows, report.complete, len(library.variables)) == (23, True, 7)


def test_a_site_s_own_codes_go_before(tmp_path: Path, site: tuple[GraphqlSite, str]) -> None:
    library, address = site
    code = {"extensions": {"code": "WARMING_UP"}}
    library.troubles = [_error("not yet", **code)]
    rule = "\n        errors: [{at: /errors/0/extensions/code, says: WARMING, means: retry, after: 0}]"
    table, report = asked(declared(tmp_path, "scan", more=rule), address, "SELECT isbn FROM books")
    assert (table.num_rows, report.complete) == (23, True)


@pytest.fixture(scope="module")
def turning(tmp_path_factory: pytest.TempPathFactory) -> DeclaredWrapper:
    path = declared(tmp_path_factory.mktemp("site"), "scan")
    (method,) = sources.load(path, {"library": "https://library.example"}).relations["books"].methods
    assert isinstance(method.wrapper, DeclaredWrapper)
    return method.wrapper


@example(count=10, size=1, hidden={2, 3, 4, 5})
@given(count=st.integers(0, 40), size=st.integers(1, 15), hidden=st.sets(st.integers(0, 40)))
def test_each_row_is_read_once_whatever_the_size_of_the_pages(
    turning: DeclaredWrapper, count: int, size: int, hidden: set[int]
) -> None:
    """Those that a reader may not see are null, also where a page has nothing else."""

    def reply(request: Request) -> Reply:
        start = int(json.loads(request.body or b"")["variables"].get("after", 0))
        end = min(start + size, count)
        nodes = [
            None if n in hidden else {"isbn": n, "title": "", "year": 1, "price": None}
            for n in range(start, end)
        ]
        edges = [{"node": node and {**node, "isbn": f"{node['isbn']:03}"}} for node in nodes]
        page = {"hasNextPage": end < count, "endCursor": str(end) if edges else None}
        return Reply(200, {}, json.dumps({"data": {"books": {"edges": edges, "pageInfo": page}}}).encode())

    assert [int(isbn) for isbn in read_all(turning, reply)] == [n for n in range(count) if n not in hidden]
