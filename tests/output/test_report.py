"""The completeness report: complete or not, and what is missing."""

from __future__ import annotations

import json

from mediator.errors import Cause
from mediator.output import Failure, RelationReport, Report, merged

BOOKS = RelationReport("books", asked=1, answered=1, rows=120)
FAILURE = Failure(
    "by_isbn", ("isbn",), tuple((f"i{n}",) for n in range(7)), Cause("timed out", "no reply in 5 s")
)
REVIEWS = RelationReport(
    "reviews", asked=30, answered=23, failed=7, parked=4, served=2, rows=61, failures=(FAILURE,)
)


def test_complete() -> None:
    report = Report((BOOKS,))
    assert report.complete
    assert report.lines() == ["complete", "  books: 1 asked, 1 answered, 120 rows"]


def test_partial_names_what_is_missing() -> None:
    report = Report((BOOKS, REVIEWS))
    assert not report.complete
    assert report.lines() == [
        "partial: not all of reviews was answered",
        "  books: 1 asked, 1 answered, 120 rows",
        "  reviews: 30 asked, 23 answered, 7 failed, 4 parked, 2 served from the store, 61 rows",
        "    missing: by_isbn(isbn) for 'i0'; 'i1'; 'i2'; 'i3'; 'i4' and 2 more: timed out: no reply in 5 s",
    ]


def test_failed_scan() -> None:
    failure = Failure("scan", (), ((),), Cause("unreachable", "connection reset"))
    report = Report((RelationReport("prizes", asked=1, failed=1, failures=(failure,)),))
    assert report.lines()[-1] == "    missing: scan scan: unreachable: connection reset"


def test_stopped_is_partial_and_says_why() -> None:
    report = Report((BOOKS,), stopped="cancelled")
    assert not report.complete
    assert report.lines()[0] == "partial: cancelled"


def test_enough_is_complete_whatever_was_left() -> None:
    report = Report((RelationReport("books", asked=5, answered=2),), enough=True)
    assert report.complete
    assert report.lines()[0] == "complete: LIMIT reached"


def test_as_json() -> None:
    told = json.loads(json.dumps(Report((BOOKS, REVIEWS)).as_dict()))
    assert told["complete"] is False
    assert told["relations"][0]["complete"] is True
    assert told["relations"][1]["failures"] == [
        {
            "method": "by_isbn",
            "bind_fields": ["isbn"],
            "bindings": [[f"i{n}"] for n in range(7)],
            "cause": {"kind": "timed out", "message": "no reply in 5 s"},
        }
    ]


def test_reports_of_several_blocks_are_one() -> None:
    whole = merged([Report((BOOKS, REVIEWS)), Report((BOOKS,))])
    assert [r.relation for r in whole.relations] == ["books", "reviews"]
    assert whole.relations[0] == RelationReport("books", asked=2, answered=2, rows=240)
    assert not whole.complete


def test_enough_of_one_block_does_not_excuse_another() -> None:
    assert not merged([Report((BOOKS,), enough=True), Report((REVIEWS,))]).complete
    assert merged([Report((BOOKS,), enough=True), Report((BOOKS,))]).complete
