"""What the README shows can be done: the table of a library's books, as it stands there, is asked over HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from aiohttp import web

import sources
from tests.cli.kit import called
from tests.wrappers.http_site import served

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLE, *_ = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
BOOKS = {
    "9780141439518": {
        "isbn": "9780141439518",
        "title": "Pride and Prejudice",
        "year": 1813,
        "on_loan": False,
    },
    "9780141439587": {"isbn": "9780141439587", "title": "Emma", "year": 1815, "on_loan": True},
}


async def library(request: web.Request) -> web.StreamResponse:
    book = BOOKS.get(request.path.removeprefix("/books/"))
    return web.json_response(book or {}, status=200 if book else 404)


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.splitlines()) < 20


def test_the_example_answers_the_query_beside_it(tmp_path: Path) -> None:
    reply, sql = (
        re.findall(r'`(\{"isbn".*?\})`', README)[0],
        re.findall(r'--catalog library.yaml "(.*)"', README)[0],
    )
    assert yaml.safe_load(reply) == BOOKS["9780141439518"]
    file = tmp_path / "library.yaml"
    with served(library) as address:
        private = f"base: {address}\n    allow_private: true"
        file.write_text(EXAMPLE.replace("base: https://library.example", private))
        result = called("query", sql, "--catalog", str(file), "--format", "csv", "--quiet")
        none = called("query", "SELECT * FROM books WHERE isbn = '1'", "--catalog", str(file), "--quiet")
    assert (result.exit_code, none.exit_code) == (0, 0)
    assert sorted(result.stdout.splitlines()) == ["Emma,true", "Pride and Prejudice,false", "title,on_loan"]
    assert none.stdout.splitlines() == ["isbn,title,year,on_loan"]


def test_the_seven_sources_of_the_book_trade_fit_on_a_page_each() -> None:
    files = sorted((Path(sources.__file__).parent / "book_trade").glob("*.yaml"))
    lines = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert sorted(lines) == ["authors", "books", "holdings", "libraries", "offers", "prizes", "reviews"]
    assert max(lines.values()) <= 40
    assert list(sources.load_book_trade("http://site.test").relations) == sorted(lines)
