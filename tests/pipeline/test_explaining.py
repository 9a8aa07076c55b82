"""How a query would run on Spark is said beforehand: neither Spark nor Java is needed, and nothing is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fixtures import Web
from mediator.answering import Mediator, verdicts_of
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.binding.holding import Holding
from mediator.catalog.functions import function
from mediator.catalog.model import Catalog
from mediator.catalog.profile import ColumnProfile, Profile, RelationProfile
from mediator.engines import Explained, Understood, engine_called
from mediator.query.understand import understand
from pipeline.errors import NoSpark
from pipeline.spread import auto, engine, explaining
from pipeline.spread.engine import laid_out
from pipeline.spread.errors import SpreadError
from pipeline.spread.folder import Folder

THREE = """SELECT b.isbn, a.name, o.price FROM books b
    JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn"""
AUTHORS = "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id"
NO_JAVA = "Spark needs Java 17 or newer, and there is none in /usr/lib/jvm"


def understood(there: Web | Catalog, sql: str, known: Known | None = None, **settings: Any) -> Understood:
    catalog = there.catalog if isinstance(there, Web) else there
    query = understand(sql, catalog)
    said = Settings(**{"slots": 4} | settings)
    return Understood(catalog, query, verdicts_of(query, catalog), said, known or Known())


def told(asked: Understood, name: str = "spark") -> Explained:
    return engine_called(name).explained(asked)


def harvested(**rows: float) -> Known:
    return Known(profile=Profile(relations={name: RelationProfile("", n, True) for name, n in rows.items()}))


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no session, whoever has one in this process."""

    def none() -> None:
        raise NoSpark(NO_JAVA)

    for module in (explaining, engine):
        monkeypatch.setattr(module, "find_java", none)
    monkeypatch.setattr(engine, "_session", lambda: None)


def test_cells_and_what_goes_to_them(trade: Web) -> None:
    found = told(understood(trade, THREE, harvested(books=1_000.0)))
    (block,) = found.data["blocks"]
    main = block["main"]
    shares = {along["columns"]: along["share"] for along in main["along"]}
    authors, isbns = shares["a.id", "b.author_id"], shares["o.isbn", "b.isbn"]
    assert main["cells"] == authors * isbns == 4
    assert main["copies"] == {"b": 1, "a": isbns, "o": authors}
    reads = {read["alias"]: read for read in block["reads"]}
    assert (reads["books (b)"]["rows"], reads["books (b)"]["ground"]) == (
        pytest.approx(1_000, 0.01),
        "harvested",
    )
    rows = sum(reads[name]["rows"] * main["copies"][alias] for name, alias in
               (("books (b)", "b"), ("authors (a)", "a"), ("offers (o)", "o")))  # fmt: skip
    assert main["rows"] == pytest.approx(rows / 4)
    assert (found.data["slots"], found.data["anew"], found.data["above"]) == (4, True, [])
    (line,) = [line for line in found.lines if line.startswith("  block: 4 cells, about ")]
    assert line.endswith("0 rows in each"), "nobody knows the last digits"
    assert found.warnings == (NO_JAVA,)
    assert trade.requests == 0


def test_what_is_copied_is_said_and_what_is_not_cut(trade: Web) -> None:
    known = harvested(books=1e6, prizes=10.0)
    sql = "SELECT b.isbn FROM books b JOIN prizes p ON p.isbn > b.isbn"
    lines = told(understood(trade, sql, known)).lines
    assert "    no column has to be equal to another's" in lines
    assert "    the rows of books (b) are dealt out to 4" in lines
    assert "    prizes (p): about 10 rows (harvested), each in 4 cells" in lines
    lines = told(understood(trade, THREE, known, slots=1)).lines
    assert "    not cut by o.isbn = b.isbn" in lines
    assert [line for line in lines if line.startswith("  block: 1 cell, about ")]


def test_rows_that_cannot_be_dealt_out_meet_in_one_cell(trade: Web) -> None:
    lines = told(understood(trade, "SELECT b.isbn FROM books b, books c WHERE b.year < c.year")).lines
    (why,) = [line for line in lines if "no column has to be equal" in line]
    assert why.endswith("and no relation stands here once, whose rows could be dealt out")


def test_where_nothing_is_asked_nobody_need_be_there(trade: Web) -> None:
    """Of reviews an ISBN has to be known, and a condition that is never true makes none."""
    lines = told(understood(trade, "SELECT stars FROM reviews WHERE 1 = 2")).lines
    assert "  block: 1 cell, about 0 rows" in lines
    assert "    reviews: about 0 rows (known)" in lines


@function([int], int, by_row=True)
def doubled(number: int) -> int:
    return 2 * number


def test_functions_of_this_process_are_called_here(trade: Web, tmp_path: Path) -> None:
    catalog = trade.catalog.knowing([doubled])
    asked = understood(catalog, "SELECT doubled(year) AS y FROM books")
    with pytest.raises(SpreadError, match="doubled is a function of this process"):
        told(asked)
    found = told(asked, "auto")
    assert not found.data["auto"]["moves"]
    assert "doubled is a function" in found.warnings[0]
    # They are in the way of no other query.
    other = understood(catalog, AUTHORS)
    Folder(tmp_path / "f").begin(laid_out(other, {}))
    assert told(other).data["slots"] == 4


class TestWings:
    def test_by_a_profile(self, trade: Web) -> None:
        column = ColumnProfile(9_000, 100, 6_000, (("1001", 6_000), ("1002", 30)))
        books = RelationProfile("", 10_000, True, {"author_id": column})
        asked = understood(trade, AUTHORS, Known(profile=Profile(relations={"books": books})))
        found = told(asked)
        (block,) = found.data["blocks"]
        (wing,) = block["wings"]
        assert (wing["value"], wing["cube"]["cells"], wing["cube"]["copies"]) == ("1001", 4, {"b": 1, "a": 4})
        assert 0.3 < wing["part"] <= 0.6, "of all rows that have the column"
        assert block["main"]["rows"] < wing["cube"]["rows"]
        assert any(line.startswith("    a wing for a.id = 1001, ") for line in found.lines)
        assert "      the rows of books (b) are dealt out to 4" in found.lines
        assert "      each row of a in 4 cells" in found.lines

    @pytest.mark.parametrize("field", ["b.author_id", "CASE WHEN b.year > 0 THEN b.author_id END"])
    def test_by_rows_that_are_held(self, trade: Web, field: str) -> None:
        schema = trade.catalog.relations["books"].schema
        values = {"author_id": [7] * 1_000 + list(range(100, 700)), "year": [1990] * 1_600}
        rows = pa.table([pa.array(values.get(f.name, [None] * 1_600), f.type) for f in schema], schema)
        held = {"books": Holding(1_600, True, rows)}
        found = told(understood(trade, AUTHORS.replace("b.author_id", field), Known(held=held)))
        assert [wing["value"] for wing in found.data["blocks"][0]["wings"]] == ["7"]

    def test_none_that_anybody_knows_of(self, trade: Web) -> None:
        lines = told(understood(trade, AUTHORS, Known(held={"books": Holding(9, False)}))).lines
        assert "    no value is known to need cells of its own" in lines
        assert any(line.startswith("  laid out anew in the middle should") for line in lines)


@pytest.mark.parametrize(
    ("sql", "by", "said"),
    [
        (f"{AUTHORS} LIMIT 3", ["caller"], "answer is made of block on the way to the caller, as rows come"),
        ("SELECT year + 1 AS y FROM books", ["cells"], "answer is made in the cells of block, as they find answers"),
        ("SELECT max(year) AS y FROM books", ["spark"], "answer is made by Spark, of all rows of block"),
        ("SELECT median(year) AS y FROM books", ["duckdb"], "median(...)"),
        ("SELECT 1 AS one", ["duckdb"], "answer is made in one process: it reads nothing"),
    ],
)  # fmt: skip
def test_who_makes_what_of_the_answers(trade: Web, sql: str, by: list[str], said: str) -> None:
    found = told(understood(trade, sql))
    assert [made["by"] for made in found.data["above"]] == by
    assert said in found.lines[-1]


def test_what_may_not_be_laid_out_anew(trade: Web) -> None:
    found = told(understood(trade, AUTHORS.replace("a.name", "random() AS r")))
    assert not found.data["anew"]
    assert "  stays as it is laid out: rows that were given might not be found again" in found.lines


class TestAuto:
    @pytest.fixture(autouse=True)
    def spark(self, no_java: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(auto, "_no_spark", lambda: "")

    def test_one_that_may_fit_begins_here(self, trade: Web) -> None:
        found = told(understood(trade, AUTHORS, memory=5_000_000), "auto")
        head, begins, moves, *_ = found.lines
        assert head == "Here or on Spark"
        assert begins.startswith("  here at first: its relations take 0.0 MB at least")
        assert "5.0 MB here" in begins
        assert moves == "  moves to Spark when what it holds takes more than that"
        assert found.data["auto"]["begins"] == "here"
        assert "On Spark" in found.lines

    def test_rows_that_are_not_found_again_keep_it_here(self, trade: Web) -> None:
        found = told(understood(trade, AUTHORS.replace("a.name", "random() AS r")), "auto")
        assert "unless a row was given by then" in found.lines[2]

    def test_one_that_is_known_not_to_fit_begins_there(self, trade: Web) -> None:
        found = told(understood(trade, AUTHORS, harvested(books=1e6), memory=5_000_000), "auto")
        assert found.lines[1].startswith("  on Spark from the beginning: its relations take ")
        assert found.data["auto"]["begins"] == "spark"
        assert not found.data["auto"]["moves"]

    def test_without_spark_it_stays(self, trade: Web, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(auto, "_no_spark", lambda: NO_JAVA)
        found = told(understood(trade, AUTHORS), "auto")
        assert found.lines == ("Here or on Spark", "  here, however large it grows: Spark cannot be used")
        assert found.warnings == (NO_JAVA,)


def test_without_pyspark_one_sentence(trade: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoSpark("Spark cannot be used: pyspark is not installed")

    monkeypatch.setattr(engine, "check_spark", none)
    with pytest.raises(NoSpark, match="pyspark is not installed"):
        told(understood(trade, AUTHORS))


async def test_what_was_measured_by_then_counts(trade: Web) -> None:
    async with Mediator(trade.catalog) as mediator:
        async with mediator.answering(AUTHORS) as answers:
            assert [batch async for batch in answers]
        requests, planned = trade.requests, mediator.planned(AUTHORS)
        found = await mediator.explained_of(planned, engine="spark", slots=3)
        assert await mediator.explained_of(planned) is None
    assert found is not None
    assert found.data["blocks"][0]["main"]["cells"] == 3
    assert {read["ground"].partition(" ")[0] for read in found.data["blocks"][0]["reads"]} == {"measured"}
    assert trade.requests == requests
