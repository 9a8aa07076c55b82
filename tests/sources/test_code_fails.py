"""Whatever an author's code does, its lookup ends as a failure that names file and line: no crash, and no "no rows"."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sources
from mediator.catalog.wrapper import Page, Reply, Request
from mediator.errors import Refused, SchemaChanged, SourceError, Unreadable
from sources import Int32, Relation, Source, index
from tests.sources.kit import Site, asked, serving
from wrappers import CodedWrapper, RateLimited, SiteReply, get

SITE = Source(name="site", base="${site:-https://x.example}", allow_private=True, attempts=2, deadline=20)
HERE = f"sources/{Path(__file__).name}"


def wrapper(rows: Callable[[Any], object], request: Callable[..., object] | None = None) -> CodedWrapper:
    """Of a relation whose code does this."""

    class Things(Relation, key="k"):
        k: str
        n: Int32
        price: float
        due: date | None = None
        at: datetime | None = None
        there: bool | None = None

        by_k = index(mirrors=SITE, reply=lambda self, reply: rows(reply))
        by_k(lambda self, k: get("/", k) if request is None else request(k))

    made = sources.declared(Things).relations["things"].method("by_k").wrapper
    assert isinstance(made, CodedWrapper)
    return made


def read(found: object) -> Page:
    """What becomes of rows that code returns."""
    way = wrapper(lambda reply: found)
    return way.read(get("/"), ("k",), [("a",)], Reply(200, {}, b""))


ROW = {"k": "a", "n": 1, "price": 2.5}


class Attributes:
    k, n, price = "a", 1, 2.5

    def __init__(self) -> None:
        self.n = 1


@pytest.mark.parametrize(
    "rows",
    [
        [ROW],
        ({**ROW, "more": object()},),
        [("a", 1, 2.5, None, None, None)],
        [["a", 1, 2.5, None, None, None]],
        iter([Attributes()]),
        pa.table({"price": [2.5], "n": [1], "k": ["a"], "due": [None], "at": [None], "there": [None]}),
    ],
)
def test_rows_may_have_many_forms(rows: object) -> None:
    page = read(rows)
    assert page.rows.select(["k", "n", "price"]).to_pylist() == [ROW]
    assert page.rows.schema.types[:3] == [pa.string(), pa.int32(), pa.float64()]


def test_values_of_every_type() -> None:
    said = {**ROW, "price": Decimal("1.25"), "due": "2024-05-06", "at": datetime(2024, 5, 6, 7, tzinfo=UTC)}
    again = {**ROW, "price": 3, "due": date(2024, 5, 6), "at": datetime(2024, 5, 6, 7), "there": True}
    first, second = read([said, again]).rows.to_pylist()
    assert first["price"] == 1.25
    assert first["due"] == second["due"] == date(2024, 5, 6)
    assert first["at"] == second["at"] == datetime(2024, 5, 6, 7)
    assert (first["there"], second["there"]) == (None, True)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [ROW, {"k": "b", "n": 2}],
            "things: row 2: things.price: expected a field of type double, found only: k, n",
        ),
        ([{**ROW, "n": "1"}], "things.n: row 1: expected int32, found str '1'"),
        ([ROW, {**ROW, "n": 2**31}], "things.n: row 2: expected int32, found int 2147483648"),
        ([{**ROW, "n": 10**5000}], "things.n: row 1: expected int32, found int"),
        ([{**ROW, "n": True}], "things.n: row 1: expected int32, found bool True"),
        ([{**ROW, "price": float("nan")}], "things.price: row 1: expected double, found float nan"),
        ([{**ROW, "price": 10**400}], "things.price: row 1: expected double, found int"),
        ([{**ROW, "k": 5}], "things.k: row 1: expected string, found int 5"),
        ([{**ROW, "k": "x" * (1 << 21)}], "things.k: row 1: expected string, found str"),
        ([{**ROW, "k": "\ud800"}], "things.k: row 1: expected string, found str"),
        ([{**ROW, "due": "tomorrow"}], "things.due: row 1: expected date32[day], found str 'tomorrow'"),
        ([{**ROW, "due": datetime(2024, 1, 1)}], "things.due: row 1: expected date32[day], found datetime"),
        ([{**ROW, "there": 1}], "things.there: row 1: expected bool, found int 1"),
        ([("a", 1)], "things: row 1 has 2 values, where the fields are 6: k, n, price, due, at, there"),
        (["abc"], "things: row 1 is str 'abc': yield a dict, a tuple, a dataclass or a row of the class"),
        ([None], "things: row 1 is NoneType None: yield a dict"),
        ("abc", "returned str 'abc', where rows are expected: yield them, or return a list"),
        (ROW, "returned dict"),
        (None, "returned NoneType None, where rows are expected"),
        (7, "returned int 7, where rows are expected"),
        (pa.table({"k": ["a"]}), "things.n: expected a field of type int32, found only: k"),
        (pa.table({"k": ["a"], "n": ["b"], "price": [1.0]}), "things.n: expected int32, found string"),
    ],
)
def test_rubbish_is_named(rows: object, said: str) -> None:
    with pytest.raises(SchemaChanged) as error:
        read(rows)
    assert said in error.value.message


def _endless() -> Iterator[dict[str, object]]:
    while True:
        yield ROW


def test_rows_without_end_are_left() -> None:
    with pytest.raises(Unreadable, match=r"things: more than 666,666 rows of one reply"):
        read(_endless())


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (KeyError("price"), "KeyError: 'price'"),
        (ValueError("a\n  b"), "ValueError: a b"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError"),
        (StopIteration(), "StopIteration"),
        (SystemExit(2), "SystemExit: 2"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (Unspeakable(), "Unspeakable"),
        (ValueError("x" * 10_000), "xxx..."),
    ],
)
def test_what_code_raises_is_a_failure_with_its_line(raised: BaseException, said: str) -> None:
    def raising(_: object) -> Any:
        raise raised

    with pytest.raises(Unreadable) as error:
        wrapper(raising).read(get("/"), ("k",), [("a",)], Reply(200, {}, b""))
    assert said in error.value.message
    assert f"({HERE}, line " in error.value.message
    assert len(error.value.message) < 400
    with pytest.raises(Refused, match="the request cannot be written") as refused:
        wrapper(raising, raising).request(("k",), [("a",)])
    assert said in refused.value.message
    assert f"({HERE}, line " in refused.value.message


def test_what_is_raised_on_purpose_goes_on_as_it_is() -> None:
    def busy(_: object) -> Any:
        raise RateLimited("come back later", again=True, after=7)

    with pytest.raises(RateLimited) as error:
        wrapper(busy).read(get("/"), ("k",), [("a",)], Reply(200, {}, b""))
    assert error.value.after == 7
    with pytest.raises(KeyboardInterrupt):
        wrapper(_interrupted).read(get("/"), ("k",), [("a",)], Reply(200, {}, b""))


def _interrupted(_: object) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("returned", [None, "/path", 5, ("/path",)])
def test_what_is_no_request_is_told(returned: object) -> None:
    with pytest.raises(
        Refused, match=r"Things.by_k returned .*, where a request is expected: return get\(\.\.\.\)"
    ):
        wrapper(lambda reply: [], lambda k: returned).request(("k",), [("a",)])


@given(
    rows=st.lists(
        st.one_of(
            st.none() | st.integers() | st.text() | st.binary() | st.floats(),
            st.dictionaries(
                st.sampled_from(["k", "n", "price", "due", "at", "there"]),
                st.none()
                | st.integers()
                | st.text()
                | st.floats()
                | st.booleans()
                | st.dates()
                | st.datetimes(),
            ),
            st.lists(st.integers() | st.text() | st.none(), min_size=5, max_size=7),
        ),
        max_size=4,
    )
)
def test_any_rows_become_columns_or_a_classified_failure(rows: list[Any]) -> None:
    page, failure = None, ""
    try:
        page = read(rows)
    except SourceError as error:
        failure = error.message
    if page is None:
        assert failure.startswith("things")
    else:
        assert page.rows.num_rows == len(rows)
        page.rows.validate(full=True)


class Half(Relation, key="n"):
    """Its second page raises half-way."""

    n: int
    wanted: str

    @index(mirrors=SITE)
    def by_wanted(self, wanted: str) -> Request:
        if wanted == "unwritable":
            raise LookupError("there is no such thing")
        return get("/half", query={"wanted": wanted}, rows=self.first)

    def first(self, reply: SiteReply) -> Iterator[object]:
        yield {"n": 1, "wanted": reply.bound("wanted")}
        yield reply.follow("?second=1")

    @by_wanted.rows
    def second(self, reply: SiteReply) -> Iterator[object]:
        yield {"n": 2, "wanted": "half"}
        yield {"n": reply.json()["number"], "wanted": "half"}


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(lambda method, path, body: (200, "{}")) as served:
        yield served


async def test_a_generator_that_raises_half_way_keeps_the_pages_before(site: Site) -> None:
    found = await asked(
        sources.declared(Half, {"site": site.url}), "SELECT n FROM half WHERE wanted = 'half'"
    )
    assert found.rows == [{"n": 1}]
    assert not found.report.complete
    assert found.kinds == {"unreadable"}
    assert "the reply cannot be read: KeyError: 'number'" in found.failures
    assert HERE in found.failures
    assert site.requests == [
        "GET /half?wanted=half",
        *["GET /half?second=1"] * 2,
    ]  # it was given a second chance


async def test_a_request_that_cannot_be_written_is_never_sent(site: Site) -> None:
    found = await asked(
        sources.declared(Half, {"site": site.url}), "SELECT n FROM half WHERE wanted = 'unwritable'"
    )
    assert (found.rows, site.requests) == ([], [])
    assert found.kinds == {"refused"}
    assert "the request cannot be written: LookupError: there is no such thing" in found.failures


class Slow(Relation, key="n"):
    """Waits in both directions for something that only the event loop can do."""

    n: int

    @index(mirrors=SITE)
    def by_n(self, n: int) -> Request:
        assert WRITING.wait(15), "the event loop stood still"
        return get("/slow", query={"n": n})

    @by_n.rows
    def read(self, reply: SiteReply) -> list[dict[str, object]]:
        assert READING.wait(15), "the event loop stood still"
        return [{"n": reply.bound("n")}]


WRITING, READING = threading.Event(), threading.Event()


async def test_slow_code_does_not_hold_up_the_event_loop(site: Site) -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(0.2, WRITING.set)
    loop.call_later(0.5, READING.set)
    found = await asked(sources.declared(Slow, {"site": site.url}), "SELECT n FROM slow WHERE n = 5")
    assert found.rows == [{"n": 5}]
    assert found.report.complete


class Stuck(Relation, key="n"):
    """Never comes back, in one of two places."""

    n: int

    @index(mirrors=Source(name="hasty", base="${site}", allow_private=True, deadline=0.5, attempts=1))
    def by_n(self, n: int) -> Request:
        if n == 1:
            time.sleep(1e6)
        return get("/stuck")

    @by_n.rows
    def read(self, reply: SiteReply) -> object:
        time.sleep(1e6)
        return []


@pytest.mark.parametrize("n", [1, 2])
async def test_code_that_never_returns_costs_its_lookup_the_deadline(site: Site, n: int) -> None:
    found = await asked(sources.declared(Stuck, {"site": site.url}), f"SELECT n FROM stuck WHERE n = {n}")
    assert found.rows == []
    assert found.kinds == {"timed out"}
