"""What the page for authors shows, runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sources
from mediator.catalog.model import Catalog
from mediator.catalog.wrapper import Page, Reply, Request
from mediator.errors import CatalogError, Unreadable
from sources.plugins import GROUP, VARIABLE

PAGE = Path(__file__).parents[2] / "docs" / "python-wrappers.md"
TEXT = PAGE.read_text(encoding="utf-8")
PYTHON = {
    name: block
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    for name in [block.split()[1]]
}
YAML, TOML = (re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("yaml", "toml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, block in PYTHON.items():
        (tmp_path / name).write_text(block)
    (tmp_path / "coins.yaml").write_text(YAML[0])
    return tmp_path


def _request(catalog: Catalog, relation: str, method: str, **bound: object) -> Request:
    wrapper = catalog.relations[relation].method(method).wrapper
    assert wrapper is not None
    return wrapper.request(tuple(bound), [tuple(bound.values())])


def _page(
    catalog: Catalog, relation: str, method: str, request: Request, body: bytes, **bound: object
) -> Page:
    wrapper = catalog.relations[relation].method(method).wrapper
    assert wrapper is not None
    return wrapper.read(request, tuple(bound), [tuple(bound.values())], Reply(200, {}, body))


def test_every_program_is_known() -> None:
    assert list(PYTHON) == ["offers.py", "books.py", "loans.py", "reading.py", "test_offers.py"]
    assert (len(YAML), len(TOML)) == (1, 1)


def test_the_folder_is_a_catalog(folder: Path) -> None:
    catalog = sources.load(folder)
    assert sorted(catalog.relations) == ["books", "coins", "loans", "offers"]
    assert catalog.sources["shop"].rate == 5


def test_books_in_three_ways(folder: Path) -> None:
    catalog = sources.load(folder / "books.py")
    assert _request(catalog, "books", "all").path == "/books"
    assert _request(catalog, "books", "by_isbn", isbn="a/b").path == "/books/a%2Fb"
    year = _request(catalog, "books", "by_year", year=1813)
    page = _page(catalog, "books", "by_year", year, b"1 Pride and Prejudice", year=1813)
    assert page.rows.to_pylist() == [{"isbn": "1", "title": "Pride and Prejudice", "year": 1813}]


def test_loans_after_a_greeting(folder: Path) -> None:
    catalog, bound = sources.load(folder / "loans.py"), {"reader": "anna"}
    first = _request(catalog, "loans", "by_reader", **bound)
    greeting = b'<form><input name="token" value="t1"></form>'
    (question,) = _page(catalog, "loans", "by_reader", first, greeting, **bound).then
    assert (question.method, question.body) == ("POST", b"token=t1&reader=anna")
    page = _page(catalog, "loans", "by_reader", question, b'{"loans": ["1"], "more": "/loans?at=2"}', **bound)
    assert page.rows.to_pylist() == [{"reader": "anna", "isbn": "1"}]
    assert [(r.path, r.query) for r in page.then] == [("/loans", (("at", "2"),))]


def test_what_goes_wrong_reads_as_it_says(folder: Path) -> None:
    told = " ".join(TEXT.split())
    (folder / "offers.py").write_text(PYTHON["offers.py"].replace("batch_size=20", "batch_size=0"))
    with pytest.raises(CatalogError) as wrong:
        sources.load(folder / "offers.py")
    assert str(wrong.value).removeprefix(f"{folder}/") in told
    catalog, bound = sources.load(folder / "loans.py"), {"reader": "anna"}
    with pytest.raises(Unreadable) as unreadable:
        _page(catalog, "loans", "by_reader", Request("/loans"), b"{}", **bound)
    assert unreadable.value.message.replace(folder.name, "library") in told


def test_code_in_yaml(folder: Path) -> None:
    catalog, bound = sources.load(folder / "coins.yaml"), {"metal": "gold"}
    request = _request(catalog, "coins", "by_metal", **bound)
    assert request.path == "/coins/gold"
    page = _page(catalog, "coins", "by_metal", request, b"1\n2", **bound)
    assert page.rows.to_pylist() == [{"number": 1, "metal": "gold"}, {"number": 2, "metal": "gold"}]


def test_the_test_passes(folder: Path) -> None:
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_offers.py"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_programs_pass_a_strict_type_checker(folder: Path) -> None:
    names = ["offers.py", "books.py", "loans.py", "reading.py"]
    run = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(PAGE.parents[1] / "pyproject.toml")]
    done = subprocess.run(
        [*run, *(str(folder / name) for name in names)],
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not [line for line in done.stdout.splitlines() if str(folder) in line or "offers.py" in line], (
        done.stdout
    )


def test_the_entry_point_is_the_one_that_is_looked_for() -> None:
    assert tomllib.loads(TOML[0])["project"]["entry-points"][GROUP] == {"little_shop": "little_shop"}
    assert VARIABLE in TEXT
