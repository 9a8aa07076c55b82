"""Sources that fail for good: what was found is answered, and the report names exactly what is missing, and why."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from fixtures import Behaviour, Fault, FaultKind, Fixed, Web, book_trade_web, papers_web
from mediator.catalog.model import Catalog
from mediator.output.report import Report
from tests.answering.kit import (
    GONE,
    NEVER,
    ask,
    check_same,
    failures,
    in_virtual_time,
    mediating,
    of,
    rows,
    sources_with,
    truth,
)
from tests.answering.statements import BY_NAME, STATEMENTS, Statement

KINDS: dict[FaultKind, set[str]] = {
    "error": {"refused"},
    "busy": {"rate limited"},
    "reset": {"unreachable"},
    "hang": {"timed out"},
    "truncate": {"unreachable"},
    "garbage": {"unreadable"},
    "schema": {"schema changed"},
}
SIZE = 60


def _asked(web: Web, sql: str, catalog: Catalog | None = None) -> tuple[pa.Table, Report]:
    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web, catalog=catalog) as mediator:
            return await ask(mediator, sql)

    return in_virtual_time(main())


def _web() -> Web:
    return book_trade_web(SIZE, book_page=10)


def _within(found: pa.Table, true: pa.Table) -> None:
    assert rows(found) <= rows(true)


# Every kind of fault, on every endpoint


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("books", "scan"),
        ("prizes", "scan a file"),
        ("authors", "index"),
        ("reviews", "pages"),
        ("libraries", "by city"),
        ("holdings", "two inputs, one constant"),
    ],
)
def test_a_source_that_fails_for_good(endpoint: str, name: str, kind: FaultKind) -> None:
    web = _web()
    web.behave(endpoint, Behaviour(latency=Fixed(0.01), faults=(Fault(kind, probability=1.0),)))
    found, report = _asked(web, BY_NAME[name].sql)
    assert not report.complete
    assert found.num_rows == 0
    lost = failures(report)
    assert {relation for relation, _ in lost} == {endpoint}
    for relation, failure in lost:
        # Where many lookups queue for a source that is down, some run out of time between two attempts.
        assert failure.cause.kind in KINDS[kind] | {"timed out"}, failure
        assert failure.method == web.catalog.relations[relation].methods[0].name
        assert relation in failure.cause.message
        assert "\n" not in failure.cause.message
    named = [b for _, f in lost for b in f.bindings]
    assert len(named) == len(set(named)) == of(report, endpoint).failed
    assert not any(c.open for c in web.counters.values())


@pytest.mark.parametrize("kind", KINDS)
def test_one_lookup_that_fails_for_good(kind: FaultKind) -> None:
    """Everything that does not depend on it is answered."""
    web = _web()
    web.behave("authors", Behaviour(latency=Fixed(0.01), faults=(Fault(kind, lookups=("1001", "1004")),)))
    sql = BY_NAME["index"].sql
    found, report = _asked(web, sql)
    rest = truth(web.tables, f"{sql} WHERE b.author_id NOT IN (1001, 1004)")
    check_same(found, rest)
    assert rows(found) < rows(truth(web.tables, sql))
    assert {b for _, f in failures(report) for b in f.bindings} == {(1001,), (1004,)}
    assert {(r, f.method, f.bind_set) for r, f in failures(report)} == {("authors", "by_id", ("id",))}
    assert all(f.cause.kind in KINDS[kind] | {"timed out"} for _, f in failures(report))
    assert any("missing: by_id(id) for 100" in line for line in report.lines())


def test_one_page_of_a_scan() -> None:
    web = _web()
    web.behave(
        "books", Behaviour(latency=Fixed(0.01), faults=(Fault("error", status=NEVER, lookups=("page 3",)),))
    )
    found, report = _asked(web, "SELECT isbn FROM books")
    _within(found, web.tables["books"].select(["isbn"]))
    assert found.num_rows >= 10
    ((relation, failure),) = failures(report)
    assert (relation, failure.method, failure.bind_set, failure.bindings) == ("books", "all", (), ((),))


def test_pages_of_a_lookup() -> None:
    """What came before the page that failed stays."""
    web = _web()
    isbn = max(web.tables["reviews"]["isbn"].to_pylist(), key=web.tables["reviews"]["isbn"].to_pylist().count)
    web.behave("reviews", Behaviour(faults=(Fault("error", status=NEVER, lookups=(f"{isbn} after 3",)),)))
    sql = "SELECT b.isbn, r.reviewer FROM books b JOIN reviews r USING (isbn)"
    found, report = _asked(web, sql)
    _within(found, truth(web.tables, sql))
    assert sum(n for (i, _), n in rows(found).items() if i == isbn) == 3
    assert [f.bindings for _, f in failures(report)] == [((isbn,),)]


def test_a_packed_request_that_one_binding_spoils() -> None:
    web = _web()
    isbn = web.tables["offers"]["isbn"][0].as_py()
    for mirror in ("offers_north", "offers_south"):
        web.behave(mirror, Behaviour(faults=(Fault("error", status=NEVER, lookups=(isbn,)),)))
    sql = "SELECT b.isbn, o.shop FROM books b JOIN offers o USING (isbn)"
    found, report = _asked(web, sql)
    _within(found, truth(web.tables, sql))
    missing = {b for _, f in failures(report) for b in f.bindings}
    assert (isbn,) in missing
    lost = {i for (i,) in missing}
    true = truth(web.tables, sql)
    check_same(found, true.filter([i not in lost for i in true["isbn"].to_pylist()]))


# Two ways


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dead", ["offers_north", "offers_south"])
def test_one_of_two_mirrors(dead: str, kind: FaultKind) -> None:
    web = _web()
    web.behave(dead, Behaviour(faults=(Fault(kind, probability=1.0),)))
    statement = BY_NAME["packed mirrors"]
    found, report = _asked(web, statement.sql)
    check_same(found, truth(web.tables, statement.sql))
    assert report.complete


def test_both_mirrors() -> None:
    web = _web()
    web.behave("offers_north", GONE)
    web.behave("offers_south", Behaviour(faults=(Fault("reset", probability=1.0),)))
    found, report = _asked(web, BY_NAME["packed mirrors"].sql)
    assert found.num_rows == 0
    assert {r for r, _ in failures(report)} == {"offers"}
    isbns = set(web.tables["books"]["isbn"].to_pylist())
    assert {b for _, f in failures(report) for b in f.bindings} == {(i,) for i in isbns}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT r.key, t.key FROM r JOIN t ON t.key = r.key",
        "SELECT r.a, s.y, t.key FROM r, s, t WHERE s.x = r.a AND t.key = s.y",
    ],
)
@pytest.mark.parametrize("dead", ["t", "t_key"])
@pytest.mark.parametrize("late", [False, True])
def test_scan_or_index(dead: str, late: bool, sql: str) -> None:
    """Either brings all that is needed; also when the other one dies on the way."""
    web = papers_web(300, behaviours="demo", distinct=50)
    faults = (
        Fault("error", status=NEVER, probability=0 if late else 1, between=(0.2, 1e9) if late else None),
    )
    web.behave(dead, replace(web.endpoints[dead].behaviour, faults=faults))
    found, report = _asked(web, sql)
    check_same(found, truth(web.tables, sql))
    assert report.complete, report.lines()


def test_neither_scan_nor_index() -> None:
    web = papers_web(300, distinct=50)
    web.behave("t", GONE)
    web.behave("t_key", GONE)
    found, report = _asked(web, "SELECT r.key, t.key FROM r JOIN t ON t.key = r.key")
    assert found.num_rows == 0
    assert not report.complete
    assert {r for r, _ in failures(report)} == {"t"}


def test_everything_dead() -> None:
    web = _web()
    for name in web.endpoints:
        web.behave(name, GONE)
    for statement in STATEMENTS:
        if "1 = 0" in statement.sql:
            continue
        _, report = _asked(web, statement.sql)
        assert not report.complete, statement.name
        assert failures(report), statement.name


# Any statement, any dead source


@pytest.mark.parametrize("dead", ["books", "authors", "reviews", "libraries", "holdings", "prizes"])
def test_any_statement_without(dead: str) -> None:
    web = _web()
    web.behave(dead, GONE)
    for statement in STATEMENTS:
        found, report = _asked(web, statement.sql)
        true = truth(web.tables, statement.sql)
        assert {r for r, _ in failures(report)} <= {dead}
        if report.complete:
            check_same(found, true, statement.ordered)
        elif statement.grows:
            _within(found, true)
        if f" {dead}" not in statement.sql:
            assert report.complete, statement.name


@pytest.mark.parametrize("statement", [s for s in STATEMENTS if s.grows], ids=lambda s: s.name)
def test_half_of_all_lookups(statement: Statement) -> None:
    """What is missing is exactly what depends on what the report names."""
    web = book_trade_web(SIZE, book_page=SIZE)
    for name in ("authors", "reviews", "holdings"):
        web.behave(name, Behaviour(faults=(Fault("error", status=NEVER, probability=0.4),)))
    catalog = sources_with(web.catalog, attempts=1)
    found, report = _asked(web, statement.sql, catalog)
    named: dict[str, set[tuple[object, ...]]] = {}
    for relation, failure in failures(report):
        named.setdefault(relation, set()).update(failure.bindings)
    left = {n: web.tables[n] for n in web.tables}
    for relation, bindings in named.items():
        bind_set = web.catalog.relations[relation].methods[0].bind_sets()[0]
        table = pa.table(web.tables[relation])
        keys = list(zip(*(table[f].to_pylist() for f in bind_set), strict=True))
        left[relation] = table.filter([k not in bindings for k in keys])
    least, most = truth(left, statement.sql), truth(web.tables, statement.sql)
    assert rows(least) <= rows(found) <= rows(most)
    if not named:
        assert report.complete


def test_what_failed_is_asked_again_by_the_next_query() -> None:
    web = _web()
    sql = BY_NAME["index"].sql

    async def main() -> None:
        async with mediating(web) as mediator:
            web.behave("authors", Behaviour(faults=(Fault("error", status=NEVER, lookups=("1001", "1004")),)))
            _, report = await ask(mediator, sql)
            assert not report.complete
            web.behave("authors", Behaviour())
            found, report = await ask(mediator, sql)
            check_same(found, truth(web.tables, sql))
            assert report.complete
            assert of(report, "authors").asked == 2

    in_virtual_time(main())
