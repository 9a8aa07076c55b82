"""`mediator wrapper new`: what it writes loads, works with such a site, and is never written over."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sources.templates import KINDS
from tests.cli.kit import called
from tests.wrappers.http_site import served

BOOKS = [
    {
        "isbn": f"97801414395{n:02}",
        "title": f"Title {n}",
        "price": {"amount": n + 0.5},
        "author": f"Author {n % 3}",
    }
    for n in range(25)
]
SOME = BOOKS[18]
ROWS = {"isbn": str(SOME["isbn"]), "title": "Title 18", "price": "18.5"}


async def every_kind(request: web.Request) -> web.StreamResponse:
    """A site of every kind, as the templates expect it."""
    start = int(request.query.get("from", "0"))
    part, more = BOOKS[start : start + 10], start + 10 < len(BOOKS)
    match request.path.strip("/").split("/"):
        case ["books"] if "isbn" in request.query:
            return web.Response(
                text="".join(
                    f"{b['isbn']}|{b['title']}|{b['price']['amount']}\n"
                    for b in BOOKS
                    if b["isbn"] == request.query["isbn"]
                )
            )
        case ["books"]:
            return web.json_response({"books": part, **({"next": f"?from={start + 10}"} if more else {})})
        case ["books", isbn]:
            found = [b for b in BOOKS if b["isbn"] == isbn]
            return web.json_response(found[0] if found else {}, status=200 if found else 404)
        case ["html", "books"]:
            items = "".join(
                f'<li class="book"><a data-isbn="{b["isbn"]}">{b["title"]}</a>'
                f'<span class="price">{b["price"]["amount"]}</span></li>'
                for b in part
            )
            link = f'<a class="next" href="?from={start + 10}">more</a>' if more else ""
            return web.Response(text=f"<html><ul>{items}</ul>{link}</html>", content_type="text/html")
        case ["search"]:
            said = await request.post()
            found = [
                b
                for b in BOOKS
                if said.get("title") in (None, b["title"]) and said.get("author") in (None, b["author"])
            ]
            return web.Response(text=_table(found), content_type="text/html")
        case ["books.csv"]:
            out = io.StringIO()
            csv.writer(out).writerows(
                [["ISBN", "Title", "Price"], *([b["isbn"], b["title"], b["price"]["amount"]] for b in BOOKS)]
            )
            return web.Response(text=out.getvalue(), content_type="text/csv")
        case ["graphql"]:
            return web.json_response({"data": _graphql(await request.json())})
    return web.Response(status=404)


def _table(found: list[dict[str, Any]]) -> str:
    if not found:
        return '<html><p class="nothing-found">Nothing.</p></html>'
    lines = "".join(f"<tr><td>{b['isbn']}<td>{b['title']}<td>{b['author']}" for b in found)
    return f'<html><table id="books"><tr><th>ISBN<th>Title<th>Author{lines}</table></html>'


def _graphql(said: dict[str, Any]) -> dict[str, Any]:
    given = said["variables"]
    if "isbn" in given:
        return {"book": next((b for b in BOOKS if b["isbn"] == given["isbn"]), None)}
    start = int(given.get("after", "0"))
    page = {"hasNextPage": start + 10 < len(BOOKS), "endCursor": str(start + 10)}
    return {"books": {"edges": [{"node": b} for b in BOOKS[start : start + 10]], "pageInfo": page}}


def write(folder: Path, kind: str, *more: str) -> Path:
    file = folder / f"mine.{'py' if kind == 'python' else 'yaml'}"
    result = called("wrapper", "new", "mine", "--kind", kind, "--output", str(file), *more)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert f"{file} is written." in result.stderr
    return file


def asked(file: Path, sql: str) -> list[dict[str, Any]]:
    result = called("query", sql, "--catalog", str(file), "--format", "ndjson", "--quiet")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_listed(kind: str, tmp_path: Path) -> None:
    file = write(tmp_path, kind)
    result = called("sources", "--catalog", str(file))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("books   key: isbn\n")
    text = file.read_text()
    assert "@" not in text.replace("@index", "").replace("@by_isbn", "")
    assert len(text.splitlines()) <= 40
    assert "allow_private" not in text


@pytest.mark.parametrize(("kind", "beside"), [("json", ""), ("html", "/html"), ("csv", ""), ("graphql", "")])
def test_a_scan_works_with_such_a_site(kind: str, beside: str, tmp_path: Path) -> None:
    with served(every_kind) as address:
        found = asked(
            write(tmp_path, kind, "--base", address + beside),
            "SELECT isbn, title, price FROM books ORDER BY isbn",
        )
    assert found == [{"isbn": b["isbn"], "title": b["title"], "price": b["price"]["amount"]} for b in BOOKS]  # type: ignore[index]


@pytest.mark.parametrize("kind", ["json", "graphql", "python"])
def test_a_lookup_works_with_such_a_site(kind: str, tmp_path: Path) -> None:
    sql = f"SELECT title, price FROM books WHERE isbn IN ('{SOME['isbn']}', '0')"
    with served(every_kind) as address:
        assert asked(write(tmp_path, kind, "--base", address), sql) == [{"title": "Title 18", "price": 18.5}]


@pytest.mark.parametrize("kind", ["json", "graphql", "csv", "python"])
def test_what_is_written_passes_the_checks_with_such_a_site(kind: str, tmp_path: Path) -> None:
    with served(every_kind) as address:
        file = write(tmp_path, kind, "--base", address)
        result = called("wrapper", "check", "--catalog", str(file))
    assert result.exit_code == 0, result.stdout
    assert " 0 failed, " in result.stdout


@pytest.mark.parametrize(
    ("where", "count"), [("author = 'Author 1'", 8), ("title = 'Title 2'", 1), ("title = 'x'", 0)]
)
def test_a_form_works_with_such_a_site(where: str, count: int, tmp_path: Path) -> None:
    with served(every_kind) as address:
        file = write(tmp_path, "form", "--base", address)
        assert len(asked(file, f"SELECT isbn FROM books WHERE {where}")) == count


def test_a_table_of_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "books.db") as connection:
        connection.execute("CREATE TABLE books (isbn TEXT PRIMARY KEY NOT NULL, title TEXT, price REAL)")
        connection.executemany("INSERT INTO books VALUES (?, ?, ?)", [("1", "a", 1.5), ("2", "b", 2.5)])
    connection.close()
    file = write(tmp_path, "sql", "--base", f"sqlite:///{tmp_path}/books.db")
    assert asked(file, "SELECT title FROM books WHERE isbn = '2'") == [{"title": "b"}]


def test_where_the_file_goes_if_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("wrapper", "new", "shop").exit_code == 0
    assert called("wrapper", "new", "shop", "--kind", "python").exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["shop.py", "shop.yaml"]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = write(tmp_path, "json")
    before = file.read_text()
    for more in (["--kind", "csv"], ["--openapi", str(_spec(tmp_path))]):
        result = called("wrapper", "new", "mine", "--output", str(file), *more)
        assert result.exit_code == 2
        assert "is there already: name another file with --output, or remove it" in result.stderr
    assert file.read_text() == before


def _spec(folder: Path, **more: Any) -> Path:
    row = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    reply = {"200": {"content": {"application/json": {"schema": {"type": "array", "items": row}}}}}
    paths = {"/things": {"get": {"responses": reply}}, "/others": {"get": {"responses": reply}, "delete": {}}}
    spec = folder / "spec.json"
    spec.write_text(json.dumps({"openapi": "3.0.0", "info": {"title": "T"}, "paths": paths, **more}))
    return spec


def test_a_draft_says_what_is_in_it_and_what_is_not(tmp_path: Path) -> None:
    file = tmp_path / "draft.yaml"
    said = called("wrapper", "new", "site", "--openapi", str(_spec(tmp_path)), "--output", str(file)).stderr
    assert "Drafted from T (openapi 3.0.0): 2 relations, 2 access methods." in said
    assert "  things: all\n" in said
    assert "1 operation that would change something" in said
    assert '3 places are marked "check:" in the file.' in said
    assert f"mediator wrapper check --catalog {file}" in said


def test_some_of_the_paths_can_be_chosen(tmp_path: Path) -> None:
    file = tmp_path / "draft.yaml"
    spec = str(_spec(tmp_path))
    said = called("wrapper", "new", "site", "--openapi", spec, "--path", "/th", "--output", str(file)).stderr
    assert "1 relation, 1 access method." in said
    assert "others" not in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Shop"], "'Shop' cannot be a source's name: write letters a to z, digits and _"),
        (["a-b"], "cannot be a source's name"),
        (["../x"], "cannot be a source's name"),
        (["x" * 50], "cannot be a source's name"),
        (["x", "--base", "shop.example"], "expected the address of a site, such as https://shop.example/api"),
        (["x", "--base", "https://me:secret@shop.example"], "expected the address of a site"),
        (["x", "--base", "https://x.example/${a}"], "expected the address of a site"),
        (["x", "--base", "postgresql://x/y"], "expected the address of a site"),
        (
            ["x", "--kind", "sql", "--base", "https://x.example"],
            "expected postgresql://host/database or sqlite:///",
        ),
        (["x", "--path", "/a"], "--path chooses among the paths of an OpenAPI document"),
        (["x", "--kind", "csv", "--openapi", "y.json"], "leave out either --openapi or --kind csv"),
        (
            ["x", "--openapi", "https://x.example/spec.json"],
            "takes a file: fetch it first (curl -o openapi.json https://",
        ),
        (["x", "--openapi", "none.json"], "none.json: cannot be read: No such file or directory"),
        (["x", "--output", "none/x.yaml"], "none/x.yaml: cannot be written: No such file or directory"),
        (["x", "--kind", "soap"], "'soap' is not one of"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = called("wrapper", "new", *arguments, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_document_of_which_nothing_can_be_drafted(tmp_path: Path) -> None:
    spec = _spec(tmp_path, paths={"/a": {"get": {}}, "/b": {"post": {}}})
    file = tmp_path / "draft.yaml"
    result = called("wrapper", "new", "site", "--openapi", str(spec), "--output", str(file))
    assert result.exit_code == 2
    assert "could be drafted." in result.stderr
    assert "GET /a: it has no reply with rows" in result.stderr
    assert not file.exists()


def test_a_document_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{")
    result = called("wrapper", "new", "site", "--openapi", str(tmp_path / "spec.json"))
    assert result.exit_code == 2
    assert "spec.json: not JSON" in result.stderr
