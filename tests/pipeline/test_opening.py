"""A plan is opened in processes that have not read the catalog: its Python files are imported there by their paths."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import Web
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.query.understand import understand
from pipeline.spread.errors import SpreadError
from pipeline.spread.folder import Folder
from pipeline.spread.given import Given, Giving, given
from pipeline.spread.plan import planned
from sources.chosen import chosen_catalog

CODE = """
from collections.abc import Iterator
from sources import Relation, Source, index
from wrappers import Request, SiteReply, get
from .reading import halves

class Offers(Relation, key=["isbn", "seller"]):
    isbn: str
    seller: str

    @index(mirrors=Source(name="shop", base="http://shop.example"))
    def by_isbn(self, isbn: str) -> Request:
        return get("/offers", query={"isbn": isbn})

    @by_isbn.rows
    def read(self, reply: SiteReply) -> Iterator["Offers"]:
        for line in reply.text().splitlines():
            yield Offers(*halves(line))
"""
OPENED = """
import sys
from pathlib import Path
from mediator.query.understand import understand
from pipeline.spread.folder import Folder
folder, sites = Folder(Path(sys.argv[1])), sys.argv[2:]
plan = folder.plan()
(method,) = plan.catalog.relations["offers"].methods
print(method.wrapper.request(("isbn",), [("1",)]).path)
if sites:
    from sources.chosen import chosen_catalog
    catalog = chosen_catalog(sites)
    folder.check_same(folder.plan(), catalog, understand(plan.query.sql, catalog))
"""


def test_other_parameters_are_another_query(calm: Web, tmp_path: Path) -> None:
    sql, folder = "SELECT isbn FROM books WHERE year > $year", Folder(tmp_path / "c")
    query = understand(sql, calm.catalog, {"year": 2015})
    plan = planned(
        calm.catalog, query, verdicts_of(query, calm.catalog), Settings(), lambda *_: 1.0, slots=1, askers=1
    )
    folder.begin(plan)
    folder.check_same(folder.plan(), calm.catalog, understand(sql, calm.catalog, {"year": 2015}))
    with pytest.raises(SpreadError, match=r"begun with other parameters: \{'year': 2015\}"):
        folder.check_same(folder.plan(), calm.catalog, understand(sql, calm.catalog, {"year": 1955}))


@pytest.mark.parametrize(("value", "other"), [(1, True), (1, 1.0), (0.0, -0.0), (float("nan"), 0.0)])
def test_parameters_are_the_same_where_they_are_to_sql(
    calm: Web, tmp_path: Path, value: object, other: object
) -> None:
    sql, folder = "SELECT ? AS v", Folder(tmp_path / "c")
    query = understand(sql, calm.catalog, [value])
    plan = planned(calm.catalog, query, {}, Settings(), lambda *_: 1.0, slots=1, askers=1)
    folder.begin(plan)
    folder.check_same(folder.plan(), calm.catalog, understand(sql, calm.catalog, (value,)))
    with pytest.raises(SpreadError, match="begun with other parameters"):
        folder.check_same(folder.plan(), calm.catalog, understand(sql, calm.catalog, [other]))


@pytest.mark.parametrize(
    ("end", "goes_on"),
    [
        (None, True),
        ({"given": 3, "stopped": "interrupted"}, True),
        ({"given": 3, "stopped": ""}, False),
        ({"given": 3, "stopped": "enough"}, False),
    ],
)
def test_what_was_stopped_goes_on(tmp_path: Path, end: dict[str, object] | None, goes_on: bool) -> None:
    folder = Folder(tmp_path)
    folder.given.mkdir()
    giving = Giving(folder.given)
    for number in range(3):  # the last two were made of what there was when it was stopped
        giving.give(Given(None, (), ended=(f"s{number}",), early=number > 0))
    folder.stop = "interrupted"
    if end is not None:
        folder.end = end
    folder.resume()
    assert (folder.stop is None) == goes_on
    assert (folder.end is None) == goes_on
    assert len(list(given(folder.given))) == (1 if goes_on else 3)


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    folder = tmp_path / "sites"
    folder.mkdir()
    (folder / "offers.py").write_text(CODE)
    (folder / "reading.py").write_text("def halves(line):\n    return line.split('|')\n")
    return folder


@pytest.fixture
def begun(sites: Path, tmp_path: Path) -> Folder:
    catalog = chosen_catalog([str(sites)])
    assert catalog is not None
    query = understand("SELECT seller FROM offers WHERE isbn = '1'", catalog)
    plan = planned(
        catalog, query, verdicts_of(query, catalog), Settings(), lambda *_: 10.0, slots=1, askers=1
    )
    folder = Folder(tmp_path / "c")
    folder.begin(plan)
    return folder


def opened(folder: Folder, *sites: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", OPENED, str(folder.path), *map(str, sites)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_by_a_task(begun: Folder) -> None:
    done = opened(begun)
    assert (done.returncode, done.stdout) == (0, "/offers\n"), done.stderr


def test_by_who_goes_on_with_it_and_finds_that_it_is_the_same(begun: Folder, sites: Path) -> None:
    done = opened(begun, sites)
    assert done.returncode == 0, done.stderr
    (sites / "offers.py").write_text(CODE.replace("seller: str", "seller: str\n    stars: int"))
    assert "begun with another catalog" in opened(begun, sites).stderr


def test_where_they_are_not(begun: Folder, sites: Path) -> None:
    (sites / "offers.py").unlink()
    done = opened(begun)
    assert "what the catalog needs is not here: No module named" in done.stderr
    assert "a catalog's Python files under the same path" in done.stderr
