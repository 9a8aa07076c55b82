"""What is told while a query runs: partial answers, provisional ones, progress, notes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fault, Fixed
from tests.http.asking import Client, rows_of
from tests.http.serving import serving

REVIEWED = "SELECT b.isbn, r.reviewer FROM books b JOIN reviews r ON r.isbn = b.isbn WHERE b.year > 2015"


def of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [r for r in records if r["type"] == kind]


async def test_partial_answers_are_told_and_completed_later() -> None:
    late = Behaviour(initial_delay=1.5)
    with book_trade(60, behaviours={"reviews": late}) as web, serving(web.catalog) as served:
        async with Client(served) as client:
            records = await client.records(REVIEWED, partials=True, stalled_after=0.2)
            whole = await client.records(REVIEWED)
    given = {id_: row for r in of(records, "partial") for id_, row in zip(r["ids"], r["rows"], strict=True)}
    assert given
    assert all(r["unknown"] == ["reviewer"] and r["relations"] == ["reviews"] for r in of(records, "partial"))
    assert all(row["reviewer"] is None for row in given.values())
    completed: set[int] = set()
    for record in of(records, "rows"):
        for number, ids in record.get("completes", {}).items():
            row = record["rows"][int(number)]
            assert all(given[id_]["isbn"] == row["isbn"] for id_ in ids)
            completed |= set(ids)
    withdrawn = {id_ for r in of(records, "withdrawn") for id_ in r["ids"]}
    assert all(r["why"] for r in of(records, "withdrawn"))
    assert completed | withdrawn == set(given)
    assert not completed & withdrawn
    key = ("isbn", "reviewer")
    found = sorted(tuple(r[k] for k in key) for r in rows_of(records))
    assert found == sorted(tuple(r[k] for k in key) for r in rows_of(whole))
    assert records[-1]["report"]["partials"]["given"] == len(given)


async def test_an_aggregate_is_refined_while_the_query_runs() -> None:
    slow = Behaviour(latency=Fixed(0.15), concurrency=1)
    with book_trade(400, behaviours={"books": slow}, book_page=20) as web, serving(web.catalog) as served:
        async with Client(served) as client:
            records = await client.records("SELECT count(*) AS n FROM books")
    snapshots = [r["rows"][0]["n"] for r in of(records, "snapshot")]
    assert snapshots
    assert snapshots == sorted(snapshots)
    assert rows_of(records) == [{"n": 400}]
    assert [r["type"] for r in records if r["type"] in ("snapshot", "rows")][-1] == "rows"
    assert all("id" not in r for r in of(records, "snapshot"))


async def test_progress_and_failures_are_told_while_it_runs() -> None:
    broken = Behaviour(latency=Fixed(0.05), faults=(Fault("error", probability=1.0),))
    slow = Behaviour(latency=Fixed(0.3), concurrency=1)
    with book_trade(200, behaviours={"reviews": broken, "books": slow}, book_page=20) as web:
        once = {name: replace(source, attempts=1) for name, source in web.catalog.sources.items()}
        with serving(replace(web.catalog, sources=once)) as served:
            async with Client(served) as client:
                records = await client.records(REVIEWED)
    progress = of(records, "progress")
    assert [p["seconds"] for p in progress] == sorted(p["seconds"] for p in progress)
    assert any(s["source"] == "catalogue" and s["asked"] for p in progress for s in p["sources"])
    (note, *_) = of(records, "note")
    assert (note["kind"], note["relation"]) == ("failed", "reviews")
    assert note["bindings"]
    assert records[-1]["status"] == "partial"


async def test_a_budget_that_is_nearly_spent_is_a_note() -> None:
    never = Behaviour(latency=Fixed(3_600.0))
    with book_trade(40, behaviours={"reviews": never}) as web, serving(web.catalog) as served:
        async with Client(served) as client:
            records = await client.records(REVIEWED, budget={"seconds": 3.0})
    (note,) = of(records, "note")
    assert (note["kind"], note["budget"]) == ("budget", "seconds")
    assert "max_seconds" in records[-1]["report"]["stopped"]
