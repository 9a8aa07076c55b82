"""A harvest in one process: whole sites and bindings, what is asked again, and what later queries ask."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures import Behaviour, Fault, Fixed, Web
from mediator.catalog.model import Catalog, Mirror
from mediator.errors import QueryError, StoreError
from pipeline.errors import HarvestError
from pipeline.harvest import parts
from pipeline.harvest.local import harvest
from pipeline.harvest.wanted import PARTS, SHELF
from tests.harvest.kit import answered, bag, catalog_of, harvested, isbns, truth, written


def test_a_whole_site_is_walked_once_and_queries_ask_it_nothing(trade: Web, tmp_path: Path) -> None:
    done = harvested(trade, tmp_path, "books")
    assert done.report.complete
    assert (done.gathered.asked, done.gathered.kept, done.engine) == (1, 1, "local")
    assert trade.counters["books"].requests == 6
    assert written(tmp_path, "books") == truth(trade, "books")
    rows = asyncio.run(answered(trade, tmp_path, "SELECT * FROM books"))
    assert rows == truth(trade, "books")
    again = harvested(trade, tmp_path, "books")
    assert (again.gathered.covered, again.gathered.asked) == (1, 0)
    assert again.parts is not None
    assert again.parts.written == 0
    assert trade.requests == 6


def test_a_bag_keeps_its_equal_rows(trade: Web, tmp_path: Path) -> None:
    harvested(trade, tmp_path, "prizes")
    assert written(tmp_path, "prizes") == truth(trade, "prizes")
    harvested(trade, tmp_path, "prizes", max_age=0.0)
    assert written(tmp_path, "prizes") == truth(trade, "prizes")
    assert trade.counters["prizes"].requests == 2


def test_bindings_come_from_a_query_that_is_answered_too(trade: Web, tmp_path: Path) -> None:
    recent = [b["isbn"] for b in truth(trade, "books") if (b["year"] or 0) > 1990]
    done = harvested(trade, tmp_path, "reviews", "SELECT isbn FROM books WHERE year > 1990")
    assert done.report.complete
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=recent)
    asked = trade.requests
    # The books that said what to look up were kept as well, and so was who has no reviews.
    sql = "SELECT r.* FROM reviews r JOIN books b ON r.isbn = b.isbn WHERE b.year > 1990"
    assert asyncio.run(answered(trade, tmp_path, sql)) == truth(trade, "reviews", isbn=recent)
    assert trade.requests == asked


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson", "jsonl"])
def test_bindings_come_from_a_file(trade: Web, tmp_path: Path, ending: str) -> None:
    wanted = isbns(trade, 7)
    file = tmp_path / f"some.{ending}"
    given = [*wanted, None, wanted[0]]
    if ending == "csv":
        file.write_text("isbn\n" + "\n".join(v or '""' for v in given) + "\n")
    elif ending == "parquet":
        pq.write_table(pa.table({"isbn": given}), file)
    else:
        file.write_text("\n".join(json.dumps({"isbn": v}) for v in given))
    done = harvested(trade, tmp_path / "store", "reviews", file)
    assert done.report.complete
    assert (done.gathered.asked, done.gathered.again, done.nulls) == (7, 1, 1)
    assert written(tmp_path / "store", "reviews") == truth(trade, "reviews", isbn=wanted)


def test_only_what_is_missing_is_asked_for(trade: Web, tmp_path: Path) -> None:
    harvested(trade, tmp_path, "authors", pa.table({"id": [1001, 1002]}))
    done = harvested(trade, tmp_path, "authors", pa.table({"id": [1001, 1002, 1003]}))
    assert (done.gathered.covered, done.gathered.asked) == (2, 1)
    assert trade.counters["authors"].requests == 3
    assert written(tmp_path, "authors") == truth(trade, "authors", id=[1001, 1002, 1003])


def test_what_is_stale_is_asked_for_again_and_takes_the_place_of_the_old(trade: Web, tmp_path: Path) -> None:
    harvested(trade, tmp_path, "authors", pa.table({"id": [1001, 1002]}))
    time.sleep(0.3)
    harvested(trade, tmp_path, "authors", pa.table({"id": [1003]}))
    done = harvested(trade, tmp_path, "authors", pa.table({"id": [1001, 1002, 1003]}), max_age=0.25)
    assert done.gathered.asked >= 2
    assert written(tmp_path, "authors") == truth(trade, "authors", id=[1001, 1002, 1003])


def test_equal_rows_are_there_once_however_they_came(trade: Web, tmp_path: Path) -> None:
    """Two mirrors, many bindings in a request, and some of it asked for twice."""
    wanted = isbns(trade, 30)
    harvested(trade, tmp_path, "offers", pa.table({"isbn": wanted[:20]}))
    harvested(trade, tmp_path, "offers", pa.table({"isbn": wanted}), max_age=0.0)
    assert written(tmp_path, "offers") == truth(trade, "offers", isbn=wanted)
    packed = trade.counters["offers_north"].requests + trade.counters["offers_south"].requests
    assert packed <= 8


def test_two_columns_bind_two_fields(trade: Web, tmp_path: Path) -> None:
    some = trade.tables["holdings"].slice(0, 5).select(["library_id", "isbn"])
    done = harvested(trade, tmp_path, "holdings", some)
    assert done.report.complete
    assert bag(pa.Table.from_pylist(written(tmp_path, "holdings")).select(["library_id", "isbn"])) == bag(
        some
    )


def test_a_lookup_that_fails_is_missing_and_the_next_harvest_asks_for_it_alone(
    trade: Web, tmp_path: Path
) -> None:
    bad = str(truth(trade, "authors")[0]["id"])
    trade.behave("authors", Behaviour(faults=(Fault("error", lookups=(bad,), status=403),)))
    ids = "SELECT DISTINCT author_id AS id FROM books"
    done = harvested(trade, tmp_path, "authors", ids)
    assert not done.report.complete
    assert done.gathered.failed == 1
    assert [f.bindings for r in done.report.relations for f in r.failures] == [((int(bad),),)]
    assert int(bad) not in {row["id"] for row in written(tmp_path, "authors")}
    trade.behave("authors", Behaviour())
    trade.reset()
    again = harvested(trade, tmp_path, "authors", ids)
    assert again.report.complete
    assert trade.requests == 1


def test_a_scan_that_fails_on_a_page_goes_on_from_its_other_pages(trade: Web, tmp_path: Path) -> None:
    trade.behave("books", Behaviour(faults=(Fault("error", requests=(4, 5, 6), status=403),)))
    done = harvested(trade, tmp_path, "books")
    assert not done.report.complete
    assert done.parts is None
    had = len(list((tmp_path / SHELF).rglob("*.page")))
    trade.behave("books", Behaviour())
    trade.reset()
    again = harvested(trade, tmp_path, "books")
    assert again.report.complete
    assert had > 0
    assert trade.requests == 6 - had
    assert written(tmp_path, "books") == truth(trade, "books")
    assert not (tmp_path / SHELF).exists()


def test_a_ceiling_ends_it_and_what_was_found_stays(trade: Web, tmp_path: Path) -> None:
    done = harvested(trade, tmp_path, "reviews", pa.table({"isbn": isbns(trade, 40)}), max_calls=10)
    assert not done.report.complete
    assert 0 < done.gathered.answered <= 10
    assert "max_calls" in done.report.lines()[0]
    before = trade.requests
    again = harvested(trade, tmp_path, "reviews", pa.table({"isbn": isbns(trade, 40)}))
    assert again.report.complete
    assert again.gathered.covered == done.gathered.answered
    assert before <= 10
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=isbns(trade, 40))


def test_a_site_that_is_down_is_not_asked_for_every_binding(trade: Web, tmp_path: Path) -> None:
    trade.behave("authors", Behaviour(faults=(Fault("error", probability=1.0, status=403),)))
    done = harvested(trade, tmp_path, "authors", pa.table({"id": list(range(5_000))}))
    assert not done.report.complete
    assert "failed one after another" in done.report.stopped
    assert trade.requests < 1_000


def test_the_parquet_says_what_it_covers(trade: Web, tmp_path: Path) -> None:
    wanted = [*isbns(trade, 3), "0000000000000"]
    harvested(trade, tmp_path, "reviews", pa.table({"isbn": wanted}))
    folder = parts.folder_of(tmp_path / PARTS, "reviews")
    coverage = parts.coverage_of(folder).to_pylist()
    assert sorted(json.loads(c["binding"]) for c in coverage) == sorted([v] for v in wanted)
    assert all(c["bind_fields"] == ["isbn"] and c["asked"] is not None for c in coverage)
    said = json.loads((folder / parts.MANIFEST).read_text())
    assert (said["complete"], said["whole"], said["entries"]) == (True, False, 4)


def test_many_rows_are_parted_by_key_and_what_is_unchanged_stays(
    trade: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_ROWS", 20)
    one = harvested(trade, tmp_path, "books")
    assert one.parts is not None
    assert len(one.parts.files) == 4
    assert bag(pq.read_table(one.parts.folder, partitioning=None)) == truth(trade, "books")
    (one.parts.folder / "part-9999-of-9999-left.parquet").write_bytes(b"")  # by one that was killed
    again = harvested(trade, tmp_path, "books", max_age=0.0)
    assert again.parts is not None
    assert (again.parts.written, again.parts.files) == (0, one.parts.files)
    assert bag(pq.read_table(one.parts.folder, partitioning=None)) == truth(trade, "books")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title\nx\n", "reviews can be asked by isbn"),
        ("isbn,foo\n1,2\n", "the bindings have the columns isbn, foo"),
        ("", "cannot be read"),
        ("isbn,isbn\n1,2\n", "two of its columns have one name"),
    ],
)
def test_a_file_with_wrong_columns_is_refused_before_anything_is_asked(
    trade: Web, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "some.csv"
    file.write_text(text)
    with pytest.raises(HarvestError, match=said):
        harvested(trade, tmp_path / "store", "reviews", file)
    assert trade.requests == 0


def test_a_value_of_another_type_is_named_with_its_row(trade: Web, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("id\n1001\n1002\none\n")
    with pytest.raises(HarvestError, match="row 3: id is 'one', and has to be int64"):
        harvested(trade, tmp_path / "store", "authors", file)
    with pytest.raises(HarvestError, match=r"row 2: id is 1\.5, and has to be int64"):
        harvested(trade, tmp_path / "store", "authors", pa.table({"id": [1.0, 1.5]}))
    file = tmp_path / "some.ndjson"
    file.write_text('{"id": 1001}\n{"id": \n')
    with pytest.raises(HarvestError, match="line 2: not JSON"):
        harvested(trade, tmp_path / "store", "authors", file)


@pytest.mark.parametrize(
    ("relation", "bindings", "said"),
    [
        ("reviewz", None, "did you mean 'reviews'"),
        (
            "reviews",
            None,
            r"cannot be walked as a whole: reviews can be asked by isbn \(by_isbn\). Say which",
        ),
        ("reviews", "nowhere.csv", "there is no such file, and it is no query"),
        ("books", "SELECT isbn FROM books", "books has only a scan"),
        ("reviews", "SELECT title FROM books", "reviews can be asked by isbn"),
        ("reviews", Path(__file__), "name ends in .csv, .parquet, .ndjson or .jsonl"),
    ],
)
def test_what_cannot_be_harvested_is_told(
    trade: Web, tmp_path: Path, relation: str, bindings: object, said: str
) -> None:
    with pytest.raises(HarvestError, match=said):
        harvested(trade, tmp_path, relation, bindings)
    assert trade.requests == 0


def test_a_query_that_cannot_be_answered_is_told_as_a_query_is(trade: Web, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="bookz"):
        harvested(trade, tmp_path, "reviews", "SELECT isbn FROM bookz")
    assert trade.requests == 0


def test_a_folder_of_something_else_is_left_alone(trade: Web, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Exception, match="it is not empty: name another folder"):
        harvested(trade, tmp_path, "books")
    folder = parts.folder_of(tmp_path / "out", "books")
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(HarvestError, match="is no harvest, and it is not empty"):
        harvested(trade, tmp_path / "store", "books", output=tmp_path / "out")
    assert (tmp_path / "notes.txt").read_text() == (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="is a file: name a folder"):
        harvested(trade, tmp_path / "file", "books")
    assert trade.requests == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"relation": "films"}, "is a harvest of films, not of books"),
        ({"declared": "otherwise"}, "as it was declared before"),
        ({"format": 99}, r"another version of the mediator \(format 99, not 1\)"),
    ],
)
def test_a_harvest_of_another_kind_is_not_written_over(
    trade: Web, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    harvested(trade, tmp_path / "one", "books", output=tmp_path / "out")
    file = parts.folder_of(tmp_path / "out", "books") / parts.MANIFEST
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    before = trade.requests
    with pytest.raises(HarvestError, match=said):
        harvested(trade, tmp_path / "two", "books", output=tmp_path / "out")
    file.write_text("{")
    with pytest.raises(HarvestError, match="is damaged"):
        harvested(trade, tmp_path / "two", "books", output=tmp_path / "out")
    assert trade.requests == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_told(trade: Web, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(Exception, match="Permission denied"):
        harvested(trade, closed / "store", "books")


def test_a_place_where_nobody_can_write_is_told(trade: Web, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used as a store"):
        harvested(trade, Path("/proc/nowhere"), "books")
    with pytest.raises(HarvestError, match="a harvest cannot be written there"):
        harvested(trade, tmp_path / "store", "books", output=Path("/proc/nowhere"))
    assert trade.requests == 0


def test_pages_that_lie_there_are_fresh_for_as_long_as_is_wanted(trade: Web, tmp_path: Path) -> None:
    trade.behave("books", Behaviour(latency=Fixed(0.01), faults=(Fault("error", requests=(6,), status=403),)))
    harvested(trade, tmp_path, "books")
    trade.behave("books", Behaviour())
    trade.reset()
    time.sleep(0.2)
    assert harvested(trade, tmp_path, "books", max_age=0.1).report.complete
    assert trade.requests == 6


def test_pages_of_one_mirror_are_not_continued_at_another(trade: Web, tmp_path: Path) -> None:
    """Both fail in the middle. The next harvest begins where there are pages, and goes on there."""
    catalog = catalog_of(trade)
    (scan,) = catalog.relations["books"].methods
    (mirror,) = scan.mirrors
    twice = replace(scan, mirrors=(mirror, Mirror("second", mirror.base)))
    books = replace(catalog.relations["books"], methods=(twice,))
    second = replace(catalog.sources[mirror.source], name="second")
    catalog = Catalog({"books": books}, {**catalog.sources, "second": second})
    trade.behave("books", Behaviour(faults=(Fault("error", requests=tuple(range(3, 40)), status=403),)))
    assert not harvest(catalog, "books", tmp_path).report.complete
    there = [len(list(folder.glob("*.page"))) for folder in (tmp_path / SHELF).glob("*/*")]
    assert sum(there) == 2
    trade.behave("books", Behaviour())
    trade.reset()
    done = harvest(catalog, "books", tmp_path)
    assert done.report.complete
    assert trade.requests <= 5
    assert written(tmp_path, "books") == truth(trade, "books")
