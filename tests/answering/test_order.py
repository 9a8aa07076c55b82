"""ORDER BY ... LIMIT k of a site that sends its rows in order: no more pages than it takes, and DuckDB's answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mediator.output.top as top
from mediator.answering import Mediator
from mediator.assembly import Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.flow.events import Landing
from mediator.output.report import Report
from tests.answering.kit import ask, check_same, truth
from tests.answering.shop_site import OFFERS, ROWS, Shop, answers, declared, open_shop

CHAIN = "pages: {next: /next}"
SIDE_BY_SIDE = "pages: {param: page, total: /pages}"
NEWEST = "request: {path: /offers}, order: [-year, shop], "


def newest_first(rows: Sequence[dict[str, Any]] = ROWS) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda r: (r["year"] is None, -(r["year"] or 0), r["shop"]))


def same_top(found: pa.Table, rows: pa.Table, keys: str, sql: str) -> None:
    """The keys are DuckDB's, row by row, and every row is one that there is: ties may be broken in any way."""
    order = truth({"found": found, "offers": rows}, sql)
    assert found.select(keys.split()).to_pylist() == order.select(keys.split()).to_pylist()
    have = Counter(map(repr, rows.to_pylist()))
    assert not Counter(map(repr, found.to_pylist())) - have


@pytest.mark.parametrize(
    ("paging", "most"),
    # Those that are sent, and those that are asked for before that was judged: the next, or as many as go at once.
    [(CHAIN, 3 + 1), (SIDE_BY_SIDE, 3 + 8)],
)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM offers ORDER BY year DESC LIMIT 4",
        "SELECT * FROM offers ORDER BY year DESC, shop LIMIT 3 OFFSET 2",
        "SELECT * FROM offers ORDER BY year DESC, price LIMIT 3",
        "SELECT * FROM offers WHERE price > 2 ORDER BY year DESC LIMIT 4",
    ],
)
def test_no_more_pages_are_asked_for_than_the_best_rows_are_on(
    paging: str, most: int, sql: str, tmp_path: Path
) -> None:
    shop = Shop(rows=newest_first(), size=4, hangs=4)  # 15 pages
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, NEWEST + paging), sql)
    same_top(found, OFFERS, "year", sql)
    assert report.complete
    assert len(shop.asked) <= most < 15, shop.asked


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM offers ORDER BY year LIMIT 3", "the other way round"),
        ("SELECT * FROM offers ORDER BY shop LIMIT 3", "not by what comes first"),
        ("SELECT * FROM offers ORDER BY year DESC NULLS FIRST LIMIT 3", "NULLs come last"),
        ("SELECT * FROM offers ORDER BY year + 1 DESC LIMIT 3", "an expression"),
        ("SELECT DISTINCT year FROM offers ORDER BY year DESC LIMIT 3", "rows are dropped above"),
        ("SELECT * FROM offers ORDER BY year DESC", "all are wanted"),
        ("SELECT * FROM offers ORDER BY year DESC LIMIT 58", "some of the best have no year"),
        ("SELECT max(year) AS year FROM offers LIMIT 1", "all are needed"),
    ],
)
def test_where_the_order_says_nothing_all_pages_are_asked_for(sql: str, why: str, tmp_path: Path) -> None:
    shop = Shop(rows=newest_first(), size=10)
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, NEWEST + CHAIN), sql)
    assert found.column("year" if "year" in sql else "shop").to_pylist() == (
        truth({"offers": OFFERS}, sql).column("year" if "year" in sql else "shop").to_pylist()
    ), why
    assert len(shop.asked) == 6, why
    assert report.complete
    assert not report.remarks


def test_within_a_lookup_by_constants_the_order_counts_as_well(tmp_path: Path) -> None:
    method = "required: [isbn], request: {path: /offers, query: {isbn: '{isbn}'}}, order: [-year], " + CHAIN
    shop = Shop(rows=newest_first(), size=1, hangs=4)
    sql = "SELECT * FROM offers WHERE isbn = 'b3' ORDER BY year DESC LIMIT 2"
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, method), sql)
    same_top(found, OFFERS, "isbn year", sql)
    assert report.complete
    assert len(shop.asked) <= 4


def test_what_was_broken_off_is_not_taken_to_be_all(tmp_path: Path) -> None:
    shop = Shop(rows=newest_first(), size=4)
    everything = "SELECT * FROM offers"
    with open_shop(shop) as address:
        catalog = declared(tmp_path, address, NEWEST + CHAIN)
        (_, (found, report)) = answers(catalog, "SELECT * FROM offers ORDER BY year DESC LIMIT 2", everything)
    check_same(found, truth({"offers": OFFERS}, everything))
    assert report.complete


@pytest.mark.parametrize("rows", [list(reversed(newest_first())), ROWS], ids=["reversed", "any"])
def test_a_site_that_does_not_keep_to_its_order_is_read_to_its_end_and_told_of(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    shop = Shop(rows=rows, size=4)
    sql = "SELECT * FROM offers ORDER BY year DESC LIMIT 4"
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, NEWEST + CHAIN), sql)
    same_top(found, OFFERS, "year", sql)
    assert len(shop.asked) == 15
    assert report.complete
    assert report.remarks == ("offers.way0 is not as declared: its rows do not come in the order -year",)
    assert (
        "  remark: offers.way0 is not as declared: its rows do not come in the order -year" in report.lines()
    )


def test_nobody_minds_the_order_where_it_does_not_matter(tmp_path: Path) -> None:
    shop = Shop(rows=ROWS, size=4)
    sql = "SELECT * FROM offers WHERE year > 1995"
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, NEWEST + CHAIN), sql)
    check_same(found, truth({"offers": OFFERS}, sql))
    assert report.complete
    assert not report.remarks


# A search over sites in memory, whose pages come side by side in any order

_FIELDS = (Field("a", pa.int64()), Field("b", pa.int64()), Field("c", pa.string()))
_SCHEMA = pa.schema([(f.name, f.type) for f in _FIELDS])
Row = tuple[int | None, int | None, str]


@dataclass
class Ordered:
    """A site, its network and its wrapper in one: pages of rows, the first of which names all the others."""

    pages: list[list[Row]]
    side_by_side: bool
    random: Random
    fails: int  # the page that the first mirror never sends, or -1
    second: list[list[Row]]  # the second mirror's pages, which may be larger
    empty_statuses: frozenset[int] = frozenset()
    asked: list[str] = field(default_factory=list)

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        self.asked.append(request.path)
        for _ in range(self.random.choice((0, 3, 40))):
            await asyncio.sleep(0)
        number = int(request.path[1:])
        fails = number == self.fails and mirror.source == "first"
        return Reply(403 if fails else 200, {}, mirror.source.encode())

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request("/0")

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        number = int(request.path[1:])
        pages = self.second if reply.body == b"second" else self.pages
        last = len(pages)
        rows = [dict(zip("abc", row, strict=True)) for row in (pages[number] if number < last else ())]
        following = range(1, last) if number == 0 else range(0)
        if not self.side_by_side:
            following = range(number + 1, min(number + 2, last))
        return Page(
            pa.RecordBatch.from_pylist(rows, schema=_SCHEMA), tuple(Request(f"/{n}") for n in following)
        )


Key = tuple[str, bool]


def search(seed: int) -> bool:
    """One query over one such site, with ties, NULLs, gaps, mirrors that take over: whether it ended early."""
    random = Random(seed)
    count, few = (
        random.choice((0, 3, 12, 25)),
        (0, 1, 2, 3) if random.random() < 0.5 else (0, 1, 2, None, None),
    )
    rows = list(
        dict.fromkeys((random.choice(few), random.choice(few), random.choice("xyz")) for _ in range(count))
    )
    order = [(name, random.random() < 0.5) for name in random.sample("abc", random.choice((1, 1, 2)))]
    others = [(name, random.random() < 0.5) for name in "abc" if name not in dict(order)]
    wanted = [*order[: random.choice((1, 2))], *others[: random.choice((0, 0, 1))]]
    table = pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in rows], schema=_SCHEMA)
    nulls, honest = random.choice(("LAST", "LAST", "FIRST")), random.random() < 0.85
    sent = _run(table, f"SELECT * FROM t ORDER BY {_spelt(order, nulls)}") if honest else rows
    size, mirrors = random.randint(1, 4), random.choice((1, 2))
    pages = [sent[n : n + size] for n in range(0, len(sent), size)] or [[]]
    fails = random.choice((1, 2, 3)) if mirrors == 2 and random.random() < 0.5 else -1
    larger = size + random.choice((0, 1))
    second = [sent[n : n + larger] for n in range(0, len(sent), larger)] or [[]]
    site = Ordered(pages, random.random() < 0.5, random, fails, second)
    where = random.choice(("true", "true", "b >= 1 OR b IS NULL", "c <> 'x'"))
    limit, offset = random.choice((1, 1, 2, 3, 8)), random.choice((0, 0, 0, 2))
    sql = f"SELECT a, b, c FROM t WHERE {where} ORDER BY {_spelt(wanted)} LIMIT {limit} OFFSET {offset}"
    found, report = asyncio.run(_answer(site, order, mirrors, sql))
    true, told = _run(table, sql), f"seed {seed}: {sql}, sent in {pages}"
    assert report.complete, told
    keys = ["abc".index(name) for name, _ in wanted]
    if honest or not report.enough:  # who lies about what nobody has seen cannot be found out
        assert [[row[k] for k in keys] for row in found] == [[row[k] for k in keys] for row in true], told
    assert not Counter(found) - Counter(_run(table, f"SELECT * FROM t WHERE {where}")), told
    if honest and nulls == "LAST":
        assert not report.remarks, told
    return report.enough


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_whatever_the_order_and_the_pages_the_best_are_the_best(first: int) -> None:
    early = sum(search(seed) for seed in range(first, first + 100))
    assert early > 10, "hardly an answer was certain before its time"


def _ties_are_settled(patch: pytest.MonkeyPatch) -> None:
    """A row that ties with the last one by what the site sorts by is taken to be before all that come after."""
    beaten = top.TopRun._beaten
    patch.setattr(
        top.TopRun,
        "_beaten",
        lambda self, worst, bound: beaten(self, worst[: len(bound.last or ())], bound),
    )


def _gaps_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """Whichever page came last is taken to be the last of those without a gap."""
    came = top.Sequel.came

    def anyhow(self: top.Sequel, landing: Landing) -> None:
        self._next = landing.place
        came(self, landing)

    patch.setattr(top.Sequel, "came", anyhow)


def _nulls_are_known(patch: pytest.MonkeyPatch) -> None:
    """Where the first rows have no value, all that follow are taken to have none."""
    patch.setattr(
        top.TopRun,
        "_beaten",
        lambda self, worst, bound: (
            bound.last is not None
            and (worst[: len(bound.last)] == bound.last or top._before(worst, bound.last, self._descending))
        ),
    )


def _begun_anew_goes_on(patch: pytest.MonkeyPatch) -> None:
    """Pages of a mirror that takes over are taken to follow those of the one before."""
    came = top.Sequel.came

    def going_on(self: top.Sequel, landing: Landing) -> None:
        place, count = landing.place, getattr(self, "_next", 0)
        landing.place = place if place else max(count, 0)
        came(self, landing)
        landing.place = place

    patch.setattr(top.Sequel, "came", going_on)


def _fewer_will_do(patch: pytest.MonkeyPatch) -> None:
    """The answer is taken to be certain as soon as the best of all is."""
    feed = top.TopRun.feed

    def fed(self: top.TopRun, batch: pa.RecordBatch) -> None:
        self._top = replace(self._top, count=1)
        feed(self, batch)

    patch.setattr(top.TopRun, "feed", fed)


@pytest.mark.parametrize(
    "rule",
    [
        _ties_are_settled,
        _gaps_do_not_matter,
        _nulls_are_known,
        _begun_anew_goes_on,
        _fewer_will_do,
    ],
    ids=lambda rule: rule.__name__.strip("_"),
)
def test_the_search_notices_a_rule_that_is_missing(
    rule: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(monkeypatch)
    assert any(map(_wrong, range(1_000))), rule.__doc__


def _wrong(seed: int) -> bool:
    try:
        search(seed)
    except AssertionError:
        return True
    return False


async def _answer(
    site: Ordered, order: list[Key], mirrors: int, sql: str
) -> tuple[list[tuple[Any, ...]], Report]:
    names = ("first", "second")[:mirrors]
    places = tuple(Mirror(name, f"http://{name}.test") for name in names)
    declared_order = tuple(f"-{name}" if down else name for name, down in order)
    scan = AccessMethod("scan", "scan", places, site, order=declared_order)
    catalog = Catalog({"t": Relation("t", _FIELDS, (scan,))}, {n: Source(n, attempts=1) for n in names})
    async with Mediator(catalog, Settings(largest_batch=3), threads=1, transport=site) as mediator:
        table, report = await ask(mediator, sql)
    return [tuple(row.values()) for row in table.to_pylist()], report


def _spelt(order: list[Key], nulls: str = "LAST") -> str:
    return ", ".join(f"{name} {'DESC' if down else 'ASC'} NULLS {nulls}" for name, down in order)


def _run(table: pa.Table, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("t", table)
        return connection.execute(sql).fetchall()
