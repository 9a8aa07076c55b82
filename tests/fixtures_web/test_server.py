"""The web as a client meets it: real sockets, real faults."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from urllib.request import urlopen

import aiohttp
import pytest

from fixtures import Behaviour, Fault, FaultKind, Fixed, book_trade, papers

PATIENCE = aiohttp.ClientTimeout(total=20)


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=PATIENCE) as session:
        yield session


async def _get(client: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    async with client.get(url) as reply:
        return reply.status, await reply.read()


async def test_pages_can_be_asked_side_by_side(client: aiohttp.ClientSession) -> None:
    calm = {"books": Behaviour(latency=Fixed(0.05))}
    async with book_trade(100, behaviours=calm, book_page=10) as web:
        replies = await asyncio.gather(
            *(_get(client, f"{web.url}/catalogue/books?page={n}") for n in range(1, 11))
        )
        assert [status for status, _ in replies] == [200] * 10
        counters = web.counters["books"]
        assert counters.requests == 10
        assert counters.peak > 1
        assert counters.open == 0
        assert counters.lookups["page 7"] == 1


async def test_a_form_is_shown_and_takes_a_post(client: aiohttp.ClientSession) -> None:
    async with book_trade(10) as web:
        url = f"{web.url}/library-finder/search"
        assert b"<form method=post>" in (await _get(client, url))[1]
        async with client.post(url, data={"city": "Dunnock"}) as reply:
            assert reply.content_type == "text/html"
            assert "<td>Dunnock</td>" in await reply.text()
        async with client.post(url, data={"city": "Atlantis"}) as reply:
            assert "nothing-found" in await reply.text()
        assert web.counters["libraries"].lookups["city=Dunnock"] == 1


async def test_too_many_values_in_one_request_are_refused(client: aiohttp.ClientSession) -> None:
    async with book_trade(30) as web:
        isbns = web.tables["books"]["isbn"].to_pylist()
        for count, status in ((20, 200), (21, 400)):
            url = f"{web.url}/prices-north/offers?isbn={','.join(isbns[:count])}"
            assert (await _get(client, url))[0] == status
        assert len(web.counters["offers_north"].lookups) == 21
        assert web.counters["offers_south"].requests == 0


async def _met(client: aiohttp.ClientSession, kind: FaultKind) -> tuple[int, dict[str, str], bytes]:
    # Of every request: aiohttp's client itself repeats a GET whose connection was lost.
    async with book_trade(20, behaviours={"books": Behaviour(faults=(Fault(kind, probability=1.0),))}) as web:
        try:
            async with client.get(f"{web.url}/catalogue/books") as reply:
                return reply.status, dict(reply.headers), await reply.read()
        finally:
            assert web.counters["books"].faults[kind] >= 1


async def test_an_error_is_a_status(client: aiohttp.ClientSession) -> None:
    assert (await _met(client, "error"))[0] == 503


async def test_a_busy_site_says_when_to_come_back(client: aiohttp.ClientSession) -> None:
    status, headers, _ = await _met(client, "busy")
    assert (status, headers["Retry-After"]) == (429, "1")


async def test_a_reset_is_seen_as_a_lost_connection(client: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.ClientConnectionError):
        await _met(client, "reset")


async def test_a_truncated_body_is_seen_as_such(client: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        await _met(client, "truncate")


async def test_garbage_comes_whole_and_cannot_be_read(client: aiohttp.ClientSession) -> None:
    status, _, body = await _met(client, "garbage")
    assert status == 200
    with pytest.raises(UnicodeDecodeError):
        body.decode()


async def test_a_redesign_renames_a_field(client: aiohttp.ClientSession) -> None:
    body = (await _met(client, "schema"))[2]
    assert b'"heading"' in body
    assert b'"title"' not in body


async def test_endless_pages_have_always_another(client: aiohttp.ClientSession) -> None:
    assert b'"pages":1000000000' in (await _met(client, "endless"))[2]


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # what a server counts is no event
        await asyncio.sleep(0.001)


async def test_a_hanging_request_never_ends_and_the_client_may_leave(client: aiohttp.ClientSession) -> None:
    hanging = {"books": Behaviour(faults=(Fault("hang", requests=(1,)),))}
    async with book_trade(20, behaviours=hanging) as web, asyncio.TaskGroup() as group:
        counters = web.counters["books"]
        asked = group.create_task(_get(client, f"{web.url}/catalogue/books"))
        await _until(lambda: counters.open == 1)
        assert not asked.done()
        asked.cancel()
        await _until(lambda: counters.open == 0)
        assert counters.abandoned == 1


async def test_closing_the_web_ends_what_hangs(client: aiohttp.ClientSession) -> None:
    always = {"books": Behaviour(faults=(Fault("hang", probability=1.0),))}
    async with asyncio.TaskGroup() as group:
        async with book_trade(20, behaviours=always) as web:
            asked = group.create_task(_lost(client, f"{web.url}/catalogue/books"))
            counters = web.counters["books"]
            await _until(lambda: counters.open == 1)
        assert await asked


async def _lost(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        await _get(client, url)
    except aiohttp.ClientError:
        return True
    return False


async def test_what_is_not_there_is_not_found(client: aiohttp.ClientSession) -> None:
    async with book_trade(10) as web:
        assert (await _get(client, f"{web.url}/nowhere"))[0] == 404
        assert (await _get(client, f"{web.url}/who-is-who/authors/7"))[0] == 404
        assert (await _get(client, f"{web.url}/shelves/libraries/L000/books/9780000000000"))[0] == 404
        assert (await _get(client, f"{web.url}/catalogue/books?page=0"))[0] == 400


async def test_counters_start_again_after_a_reset(client: aiohttp.ClientSession) -> None:
    async with papers() as web:
        for x in (1, 2, 2):
            assert (await _get(client, f"{web.url}/s/by-x?x={x}"))[0] == 200
        assert web.counters["s_x"].lookups == {"1": 1, "2": 2}
        assert web.requests == 3
        web.reset()
        assert web.requests == 0


def test_a_thread_serves_callers_that_are_not_async() -> None:
    before = set(threading.enumerate())  # other tests of this process may have webs of their own
    with papers() as web:
        with urlopen(f"{web.url}/t/by-key?key=5") as reply:
            assert reply.read() == b'{"rows":[{"key":5}]}'
        assert web.counters["t_key"].requests == 1
    assert all(thread.name != "web" for thread in set(threading.enumerate()) - before)


def test_a_port_in_use_is_an_error_and_no_hang() -> None:
    with book_trade(5) as web:
        port = int(web.url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"), book_trade(5, port=port):
            pass


def test_an_unknown_endpoint_is_named() -> None:
    with pytest.raises(ValueError, match="no endpoint 'offers': there are books, authors, offers_north"):
        book_trade(5, behaviours={"offers": Behaviour()})
