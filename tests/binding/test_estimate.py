"""What a query will cost, compared with what it did cost; and what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import DEMO, Web, book_trade_web
from mediator.binding.counting import Known
from mediator.binding.estimate import Allowed, Estimate, estimate
from mediator.binding.holding import Holding
from mediator.binding.ranges import Range
from mediator.binding.verdict import verdict
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.measured import Measured
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.query import understand
from mediator.query.model import BlockStage
from tests.answering.kit import ask, in_virtual_time, mediating
from tests.binding.trade import method, relation

PRIMED = [
    "SELECT title FROM books",
    "SELECT year FROM prizes",
    "SELECT a.name FROM books b JOIN authors a ON a.id = b.author_id",
    "SELECT o.price FROM books b JOIN offers o ON o.isbn = b.isbn",
    "SELECT r.stars FROM books b JOIN reviews r ON r.isbn = b.isbn",
    "SELECT h.copies FROM prizes p, libraries l, holdings h "
    "WHERE l.city = 'Dunnock' AND h.isbn = p.isbn AND h.library_id = l.library_id",
]
CHECKED = [
    *PRIMED,
    "SELECT title FROM books WHERE year > 1990",
    "SELECT title FROM books LIMIT 3",
    "SELECT b.title, p.year FROM prizes p JOIN books b ON b.isbn = p.isbn",
    "SELECT a.name FROM prizes p JOIN books b ON b.isbn = p.isbn JOIN authors a ON a.id = b.author_id",
    "SELECT o.price FROM prizes p JOIN books b ON b.isbn = p.isbn JOIN offers o ON o.isbn = b.isbn",
    "SELECT r.stars FROM reviews r JOIN prizes p ON p.isbn = r.isbn",
    "SELECT name FROM authors WHERE id IN (1001, 1002, 1003)",
    "SELECT name FROM libraries WHERE city = 'Dunnock'",
    "SELECT a.country, count(*) FROM books b JOIN authors a ON a.id = b.author_id GROUP BY 1",
    "SELECT title FROM books WHERE isbn IN (SELECT isbn FROM prizes)",
    "SELECT b.title, r.stars FROM books b LEFT JOIN reviews r ON r.isbn = b.isbn WHERE b.year = 1999",
    "SELECT o.price, r.stars FROM books b JOIN offers o ON o.isbn = b.isbn JOIN reviews r ON r.isbn = b.isbn "
    "WHERE r.stars = 5 AND o.price < 25",
    "SELECT b.title, a.name, o.price FROM prizes p JOIN books b ON b.isbn = p.isbn "
    "JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn JOIN reviews r ON r.isbn = b.isbn "
    "WHERE r.stars = 5 AND o.condition = 'as new'",
]


def trade(size: int) -> Web:
    """On a bad day: slow, failing, mirrors of very different speed."""
    return book_trade_web(size, behaviours=DEMO, book_page=50)


class TestAgainstWhatHappens:
    @pytest.mark.parametrize("size", [60, 300])
    def test_requests_rows_and_seconds_are_within_the_ranges(self, size: int) -> None:
        """Each query is asked of sites that were asked other things before, and of which nothing is stored."""

        async def main() -> list[str]:
            async with mediating(trade(size)) as mediator:
                for sql in PRIMED:
                    await ask(mediator, sql)
                measured = mediator._access.measurements
            missed = []
            for sql in CHECKED:
                web = trade(size)
                async with mediating(web) as mediator:
                    for place, known in measured:
                        mediator._access.measurements._known[place] = known
                    expected = await mediator.estimate(sql)
                    began = asyncio.get_running_loop().time()
                    _, report = await ask(mediator, sql)
                    took = asyncio.get_running_loop().time() - began
                rows = sum(r.rows for r in report.relations)
                happened = {
                    "calls": (web.requests, expected.calls),
                    "rows": (rows, expected.rows),
                    "seconds": (took, expected.seconds),
                }
                missed += [
                    f"{sql}: {what} {n}, not {r}" for what, (n, r) in happened.items() if not within(n, r)
                ]
            return missed

        missed = in_virtual_time(main())
        assert not missed, f"{len(missed)} of {3 * len(CHECKED)}"

    def test_it_is_worth_reading(self) -> None:
        """Where no selection is in the way, and no product of relations, the range of the calls is narrow."""

        async def main() -> dict[str, Range]:
            async with mediating(trade(300)) as mediator:
                for sql in PRIMED:
                    await ask(mediator, sql)
                await asyncio.sleep(1.0)
                return {sql: (await mediator.estimate(sql, max_age=0.5)).calls for sql in PRIMED[:-1]}

        for sql, calls in in_virtual_time(main()).items():
            assert calls.high <= 20 * max(1.0, calls.low), sql

    def test_what_is_stored_is_counted_exactly(self) -> None:
        async def main() -> None:
            web = trade(100)
            async with mediating(web) as mediator:
                await ask(mediator, "SELECT title FROM books")
                await ask(mediator, "SELECT isbn FROM prizes")
                sql = "SELECT a.name FROM books b JOIN authors a ON a.id = b.author_id WHERE b.year > 1990"
                expected = await mediator.estimate(sql)
                web.reset()
                _, report = await ask(mediator, sql)
                authors = next(r for r in report.relations if r.relation == "authors")
                assert expected.of("a").lookups == Range.of(authors.asked)
                assert expected.of("b").calls == Range.of(0)
                again = await mediator.estimate(sql)
                assert again.calls == Range.of(0)
                assert again.line() == "in all: nothing to ask"
                assert "nothing to ask (stored)" in again.of("a").line()

        in_virtual_time(main())

    def test_max_age_decides_what_is_stored(self) -> None:
        async def main() -> None:
            async with mediating(trade(60)) as mediator:
                await ask(mediator, "SELECT title FROM books")
                await asyncio.sleep(100.0)
                assert (await mediator.estimate("SELECT title FROM books", max_age=200.0)).calls.high == 0
                assert (await mediator.estimate("SELECT title FROM books", max_age=50.0)).calls.low >= 1

        in_virtual_time(main())

    def test_nothing_is_asked(self) -> None:
        async def main() -> None:
            web = trade(60)
            async with mediating(web) as mediator:
                for sql in CHECKED:
                    await mediator.estimate(sql)
            assert web.requests == 0

        in_virtual_time(main())


def within(number: float, expected: Range) -> bool:
    return expected.low <= number <= expected.high


def measured(lookups: int = 100, rows: int = 3, seconds: float = 0.1) -> Measured:
    found = Measured()
    for n in range(lookups):
        found.requests += 1
        found.latency.add(seconds)
        found.answered([(n,)], rows, 1, 1_000)
    return found


def estimated(
    sql: str,
    known: Mapping[str, Measured] | None = None,
    held: Mapping[str, Holding] | None = None,
    allowed: Allowed | None = None,
    rows: int | None = None,
    per_lookup: float | None = None,
    rate: float | None = None,
    batch_size: int = 1,
) -> Estimate:
    """Over `books`, a scan, and `offers`, an index on isbn."""
    site = Source("site", rate=rate)
    scan = method("all", "scan")
    by_isbn = replace(method("by_isbn", required="isbn", batch_size=batch_size), rows_per_lookup=per_lookup)
    places = (Mirror("site", "http://site.test"),)
    books = replace(
        relation("books", "isbn:s year:n", replace(scan, mirrors=places)), rows=rows, key=("isbn",)
    )
    offers = relation("offers", "isbn:s price:f", replace(by_isbn, mirrors=places))
    catalog = Catalog({"books": books, "offers": offers}, {"site": site})
    query = understand(sql, catalog, ())
    verdicts = {s.name: verdict(s.block) for s in query.stages if isinstance(s, BlockStage)}
    by_relation = known or {}
    return estimate(
        query,
        verdicts,
        catalog.sources,
        Known(lambda name, _: by_relation.get(name, Measured()), held or {}),
        allowed,
    )


JOIN = "SELECT o.price FROM books b JOIN offers o ON o.isbn = b.isbn"


class TestGrounds:
    def test_a_guess_says_so(self) -> None:
        found = estimated(JOIN)
        assert {a.ground for a in found.aliases} == {"guess"}

    def test_a_declaration_says_so_and_narrows(self) -> None:
        found = estimated(JOIN, rows=400, per_lookup=2.0)
        assert found.of("b").rows == Range(200, 800)
        assert found.of("o").ground == "declared"
        assert found.calls.high < estimated(JOIN).calls.high / 10

    def test_measurements_go_before_declarations(self) -> None:
        known = {"books": measured(1, rows=50), "offers": measured(214)}
        found = estimated(JOIN, known, rows=400, per_lookup=20.0)
        assert found.of("b").rows == Range(45, 55)
        assert found.of("o").ground == "measured in 214 lookups"
        assert found.of("b").ground == "measured in 1 lookup"
        assert within(150, found.of("o").rows)

    def test_a_selection_that_nobody_has_measured_leaves_the_low_end_open(self) -> None:
        known = {"books": measured(1, rows=50), "offers": measured()}
        found = estimated(f"{JOIN} WHERE b.year > 1990", known)
        assert found.of("o").calls.low == 0
        assert found.of("o").ground.endswith(", selections unknown")

    def test_constants_are_as_many_lookups_as_there_are(self) -> None:
        found = estimated("SELECT price FROM offers WHERE isbn IN ('a', 'b', 'c')", {"offers": measured()})
        assert found.of("offers").lookups == Range(3, 3)
        assert found.calls.low == 3

    def test_lookups_that_share_a_request_cost_less(self) -> None:
        books = {"books": measured(1, rows=400)}
        assert estimated(JOIN, books, batch_size=20).calls.high < estimated(JOIN, books).calls.high / 3

    def test_a_rate_takes_its_time(self) -> None:
        known = {"books": measured(1, rows=400), "offers": measured()}
        found = estimated(f"{JOIN} LIMIT 100000", known, rate=2.0)
        assert found.seconds.high >= 200
        assert estimated(JOIN, known, rate=2.0).seconds.low >= 100

    def test_what_is_never_true_costs_nothing(self) -> None:
        assert estimated("SELECT isbn FROM books WHERE 1 = 2").calls == Range.of(0)

    def test_held_bindings_are_not_asked_again(self) -> None:
        rows = pa.table({"isbn": ["a", "b", "c", None], "year": pa.array([1, 2, 3, 4], pa.int32())})
        held = {
            "books": Holding(4, True, rows),
            "offers": Holding(9, False, None, {("isbn",): {("a",), ("z",)}}),
        }
        assert estimated(JOIN, held=held).of("o").lookups == Range(2, 2)
        assert estimated(f"{JOIN} WHERE b.year < 2", held=held).calls == Range.of(0)

    def test_rows_that_are_too_many_to_look_at_are_still_counted(self) -> None:
        found = estimated(JOIN, {"offers": measured()}, {"books": Holding(1_000_000, True)})
        assert found.of("b").calls == Range.of(0)
        assert found.of("o").lookups.high == 1_000_000


class TestWarnings:
    KNOWN: ClassVar = {"books": measured(1, rows=400), "offers": measured()}

    def warned(self, **ceilings: float) -> list[str]:
        return list(estimated(JOIN, self.KNOWN, allowed=Allowed(Ceilings(**ceilings))).warnings)  # type: ignore[arg-type]

    def test_a_ceiling_below_the_low_end(self) -> None:
        (said,) = self.warned(calls=100)
        assert said.startswith("this will probably exceed max_calls 100 (estimate ")

    def test_a_ceiling_within_the_range(self) -> None:
        (said,) = self.warned(calls=410)
        assert said.startswith("this may exceed max_calls 410")

    def test_a_ceiling_above_it(self) -> None:
        assert self.warned(calls=10_000, bytes=10**9, seconds=10_000.0) == []

    def test_bytes_and_seconds(self) -> None:
        assert "exceed max_bytes 1,000" in self.warned(bytes=1_000)[0]
        assert "exceed max_seconds 0.1" in self.warned(seconds=0.1)[0]

    def test_a_source_and_its_day(self) -> None:
        allowed = Allowed(at={"site": Ceilings(calls=5)}, today={"site": 7})
        said = estimated(JOIN, self.KNOWN, allowed=allowed).warnings
        assert said[0].startswith("this will probably exceed max_calls of site 5")
        assert said[1].startswith("this will probably exceed what site takes today, which is 7")


def test_as_data() -> None:
    found = estimated(JOIN, {"books": measured(1, rows=50)}).to_dict()
    assert set(found) == {"calls", "rows", "seconds", "by_source", "aliases", "warnings"}
    first = found["aliases"][0]  # type: ignore[index]
    assert first["relation"] == "books"
    assert first["rows"] == {"low": 45, "high": 55}


@given(st.integers(0, 500), st.integers(1, 50), st.integers(0, 20), st.integers(1, 30))
def test_a_range_is_never_upside_down(books: int, lookups: int, rows: int, batch_size: int) -> None:
    known = {"books": measured(1, rows=books), "offers": measured(lookups, rows=rows)}
    for sql in (JOIN, f"{JOIN} WHERE b.year = 3", "SELECT price FROM offers WHERE isbn = 'x'"):
        found = estimated(sql, known, batch_size=batch_size)
        for alias in found.aliases:
            for part in (alias.lookups, alias.calls, alias.rows, alias.bytes, alias.seconds):
                assert 0 <= part.low <= part.high
