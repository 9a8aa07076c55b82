"""What goes wrong on the way: cut connections, servers that are gone, deaf or closed to us."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from api.client import (
    Closed,
    CutOff,
    End,
    Incomplete,
    Progress,
    Rows,
    Start,
    TimedOut,
    Unreachable,
    connect_async,
    errors,
    reading,
)
from tests.client.conftest import House
from tests.client.kit import HANGS, bag, hangs_after, in_time, truth
from tests.client.proxy import Proxy, proxied

BOOKS = "SELECT isbn, title, year FROM books"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries there is no need to wait here."""
    monkeypatch.setattr(reading, "_PAUSE", 0.0)


@pytest.fixture
def proxy(calm: House) -> Iterator[Proxy]:
    with proxied(calm.served.port) as found:
        yield found


@pytest.mark.parametrize("cut", [0, 1, 300, 700, 3_000, 9_000, 20_000])
async def test_records_are_neither_lost_nor_repeated(calm: House, proxy: Proxy, cut: int) -> None:
    async with connect_async(proxy.url) as client:
        query = await client.query(BOOKS)
        whole = [r async for r in query.records() if not isinstance(r, Progress)]
        proxy.cuts.extend([cut, cut + 50, cut])
        proxy.asked = 0
        found = [r async for r in query.records() if not isinstance(r, Progress)]
    assert proxy.asked > 1
    assert sum(isinstance(r, Start) for r in found) == 1
    rows = [row for r in found if isinstance(r, Rows) for row in r.rows]
    assert rows == [row for r in whole if isinstance(r, Rows) for row in r.rows]
    assert found[-1] == whole[-1]


@pytest.mark.parametrize("cut", [0, 1, 300, 700, 3_000, 9_000, 12_000])
async def test_batches_are_neither_lost_nor_repeated(calm: House, proxy: Proxy, cut: int) -> None:
    async with connect_async(proxy.url) as client:
        query = await client.query(BOOKS)
        whole = await query.arrow()
        proxy.cuts.extend([cut, cut + 50, cut])
        proxy.asked = 0
        again = await query.arrow()
    assert proxy.asked > 1
    assert again.to_pylist() == whole.to_pylist()
    assert bag(again) == bag(truth(calm.web, BOOKS))


async def test_there_is_an_end_to_trying(proxy: Proxy) -> None:
    proxy.cuts.extend([700] * 50)
    async with connect_async(proxy.url, tries=3) as client:
        query = await client.query(BOOKS)
        with pytest.raises(CutOff):
            async for _ in query.records():
                pass
        assert proxy.asked == 4
        with pytest.raises(CutOff):
            await query.arrow()
        assert proxy.asked == 8


async def test_what_ends_with_its_reader_ends_with_the_connection(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    with proxied(house.served.port) as proxy:
        async with connect_async(proxy.url, tries=1) as client:
            query = await client.query(BOOKS, on_disconnect="cancel")
            batches = query.batches()
            await anext(batches)
            proxy.refuses = True
            proxy.cut_now()
            with pytest.raises(Unreachable):
                await anext(batches)
            await in_time(lambda: house.web.counters["books"].open == 0)


async def test_no_server() -> None:
    async with connect_async("http://127.0.0.1:1") as client:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await client.query(BOOKS)
        with pytest.raises(Unreachable):
            await client.relations()


async def test_a_server_that_goes_away_in_the_middle(house: House) -> None:
    house.web.behave("books", HANGS)
    with proxied(house.served.port) as proxy:
        async with connect_async(proxy.url, tries=2) as client:
            query = await client.query(BOOKS)
            batches = query.batches()
            await batches.schema()
            proxy.refuses = True
            proxy.cut_now()
            with pytest.raises(Unreachable):
                await anext(batches)
            with pytest.raises(Unreachable):
                await query.status()


async def test_a_server_that_shuts_down_in_the_middle_says_so(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url) as client:
        query = await client.query(BOOKS, whole=True)
        batches = query.batches()
        await batches.schema()
        await asyncio.to_thread(house.served.stop)
        with pytest.raises(Incomplete, match="shutting down"):
            await anext(batches)


async def test_a_server_that_says_nothing(proxy: Proxy) -> None:
    proxy.deaf = True
    async with connect_async(proxy.url, timeout=0.2) as client:
        with pytest.raises(TimedOut, match="in time"):
            await client.query(BOOKS)


async def test_a_stream_that_falls_silent(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url, silence=0.2, tries=0) as client:
        with pytest.raises(TimedOut):
            await client.query(BOOKS).arrow()


async def test_a_client_that_is_closed(calm: House) -> None:
    client = connect_async(calm.url)
    with pytest.raises(Closed, match="async with"):
        await client.relations()
    async with client:
        batches = client.query(BOOKS).batches()
        await batches.schema()
    with pytest.raises(Closed):
        await client.relations()


async def test_closing_while_somebody_reads(house: House) -> None:
    house.web.behave("books", HANGS)
    async with asyncio.TaskGroup() as group, connect_async(house.url) as client:
        reading_ = group.create_task(_fails(client.query(BOOKS).arrow()))
        await in_time(lambda: house.web.counters["books"].open > 0)
    assert isinstance(await reading_, errors.ClientError)
    await in_time(lambda: house.web.counters["books"].open == 0)


async def _fails(work: object) -> BaseException | None:
    try:
        await work  # type: ignore[misc]
    except errors.ClientError as error:
        return error
    return None


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", ""])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="8080"):
        connect_async(url)


def test_an_address_has_no_key_in_it() -> None:
    with pytest.raises(ValueError, match="apart"):
        connect_async("http://:mk_secret@127.0.0.1:8080")


async def test_what_failed_stays_failed(calm: House) -> None:
    async with connect_async(calm.url) as client:
        query = client.query("SELECT nix FROM books")
        for _ in range(2):
            with pytest.raises(errors.UnknownColumn):
                await query
        batches = query.batches()
        with pytest.raises(errors.UnknownColumn):
            await batches.schema()
        with pytest.raises(errors.ClientError, match="failed"):
            await batches.schema()


async def test_to_cancel_what_has_not_begun_asks_nothing(calm: House) -> None:
    async with connect_async("http://127.0.0.1:1") as client:
        await client.query(BOOKS).cancel()


async def test_a_query_that_fails_in_its_run(calm: House) -> None:
    async with connect_async(calm.url) as client:
        query = await client.query("SELECT CAST(title AS INTEGER) AS n FROM books")
        with pytest.raises(errors.Problem, match="INT32"):
            await query.arrow()
        records = query.records()
        last = None
        while not isinstance(last, End):
            last = await anext(records)
        assert last.status == "failed"
        with pytest.raises(errors.Problem, match="INT32"):
            await anext(records)
        assert (await query.status())["status"] == "failed"
