"""What is recorded has no secret in it; what is replayed was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import sources
from fixtures import book_trade
from mediator.access import HttpTransport
from mediator.access.web.redaction import Redaction
from mediator.answering import Mediator
from mediator.catalog.model import Mirror
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Unreachable
from tests.conformance.shop import SECRET
from wrappers.cassettes import Cassette, NotRecorded, Recording, Replaying, offline

SHOP = Mirror("shop", "https://shop.example/api")


@dataclass
class Network:
    answer: Callable[[Request], Reply]
    redaction: Redaction = field(default_factory=Redaction)

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        return self.answer(request)


def _ok(request: Request) -> Reply:
    return Reply(200, {"Content-Type": "text/plain"}, request.path.encode())


def _replayed(recording: Recording) -> Replaying:
    return Replaying(Cassette.parsed(recording.cassette.text()))


async def test_a_query_that_the_site_wrote_is_scrubbed_and_found_again() -> None:
    def led(request: Request) -> Reply:
        return Reply(200, {}, b"fine", address="/v2/x?api_key=q-4713")

    recording = Recording(Network(led))
    request = Request("/x?q=M%FCller&api_key=q-4713")
    await recording.send(SHOP, request)
    assert "q-4713" not in recording.cassette.text()
    replaying = _replayed(recording)
    assert (await replaying.send(SHOP, request)).address == "/v2/x"
    with pytest.raises(NotRecorded):
        await replaying.send(SHOP, Request("/x?q=M%FEller&api_key=q-4713"))


async def test_secrets_and_what_changes_daily_are_left_out() -> None:
    def answer(request: Request) -> Reply:
        headers = {
            "Content-Type": "application/json",
            "Date": "Mon, 02 Mar 2026 10:00:00 GMT",
            "Set-Cookie": "id=c-4711",
            "X-Request-Id": "r-4712",
            "X-Echo": f"you are {SECRET}",
            "Link": '</x?page=2>; rel="next"',
        }
        return Reply(200, headers, f'{{"key": "{SECRET}", "next_page_token": "t-1"}}'.encode())

    network = Network(answer)
    network.redaction.add(SECRET)
    recording = Recording(network)
    request = Request(
        "/x",
        (("api_key", "q-4713"), ("page_token", "t-0"), ("q", "tea")),
        headers=(("Authorization", "Bearer b-4714"), ("Accept", "application/json")),
    )
    await recording.send(SHOP, request)
    text = recording.cassette.text()
    for secret in (SECRET, "c-4711", "r-4712", "q-4713", "b-4714", "02 Mar"):
        assert secret not in text
    assert "[page_token, t-0]" in text
    assert "t-1" in text
    assert 'rel="next"' in text
    assert "Accept".lower() in text
    reply = await _replayed(recording).send(SHOP, request)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert "link" in reply.headers


async def test_replies_to_one_request_come_in_their_order_and_the_last_for_ever() -> None:
    replies = [Reply(503, {}, b""), Reply(200, {}, b"one"), Reply(200, {}, b"two")]
    left = iter(replies)
    recording = Recording(Network(lambda _: next(left)))
    for _ in replies:
        await recording.send(SHOP, Request("/x"))
    player = _replayed(recording)
    came = [await player.send(SHOP, Request("/x")) for _ in range(5)]
    assert [r.body for r in came] == [b"", b"one", b"two", b"two", b"two"]
    assert came[0].status == 503


async def test_what_the_last_reply_says_again_is_not_written(tmp_path: Path) -> None:
    left = iter([b"a", b"a", b"b", b"b", b"b"])
    recording = Recording(Network(lambda _: Reply(200, {}, next(left))))
    for _ in range(5):
        await recording.send(SHOP, Request("/x"))
    recording.cassette.write(tmp_path / "x.cassette")
    cassette = Cassette.read(tmp_path / "x.cassette")
    assert [[r.body for r in replies] for replies in cassette.exchanges.values()] == [[b"a", b"a", b"b"]]


async def test_a_login_in_an_address_is_left_out() -> None:
    closed = Mirror("shop", "https://reader:k-4715@shop.example/api")
    recording = Recording(Network(_ok))
    await recording.send(closed, Request("https://shop.example/api/x"))
    await recording.send(closed, Request("/y"))
    text = recording.cassette.text()
    assert "k-4715" not in text
    assert "shop: https://shop.example/api" in text
    assert [asked.path for asked in recording.cassette.exchanges] == ["/x", "/y"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("/find", (("isbn", "2"),)), "the parameter 'isbn' is '1', not '2'"),
        (Request("/find", (("isbn", "1"), ("page", "2"))), "there is no parameter 'page'"),
        (Request("/find"), "there is a parameter 'isbn' besides"),
        (Request("/fund", (("isbn", "1"),)), "the path is '/find', not '/fund'"),
        (Request("/find", (("isbn", "1"),), "POST", body=b"a=1"), "the method is 'GET', not 'POST'"),
        (Request("/find", (("isbn", "1"),), "POST", body=b"a=1"), "the body is empty, not 'a=1'"),
        (
            Request("/find", (("isbn", "1"),), headers=(("Accept", "text/csv"),)),
            "there is no header 'accept'",
        ),
    ],
)
async def test_an_unknown_request_is_told_with_the_nearest(request_: Request, said: str) -> None:
    recording = Recording(Network(_ok))
    await recording.send(SHOP, Request("/find", (("isbn", "1"),)))
    await recording.send(SHOP, Request("/quite/another/thing", (("a", "b"), ("c", "d"))))
    player = _replayed(recording)
    with pytest.raises(NotRecorded) as error:
        await player.send(SHOP, request_)
    assert "nearest is shop: GET /find?isbn=1" in error.value.message
    assert said in error.value.message
    assert player.unknown == [error.value.message]
    assert not error.value.again


async def test_a_source_that_was_never_recorded() -> None:
    player = Replaying(Cassette())
    with pytest.raises(NotRecorded, match="it has nothing of shop: record it again"):
        await player.send(SHOP, Request("/x"))


async def test_what_was_never_asked_for_is_told() -> None:
    recording = Recording(Network(_ok))
    for path in ("/a", "/b", "/c"):
        await recording.send(SHOP, Request(path))
    player = _replayed(recording)
    await player.send(SHOP, Request("/b"))
    assert player.unused() == ["shop: GET /a", "shop: GET /c"]


async def test_links_to_the_recorded_address_are_found_at_another_one() -> None:
    recording = Recording(Network(_ok))
    await recording.send(SHOP, Request("https://shop.example/api/books", (("page", "2"),)))
    moved = Mirror("shop", "http://127.0.0.1:8080/api")
    player = _replayed(recording)
    for path in ("https://shop.example/api/books", "/books", "http://127.0.0.1:8080/api/books"):
        assert (await player.send(moved, Request(path, (("page", "2"),)))).status == 200


async def test_a_request_without_a_reply_is_counted_and_not_recorded() -> None:
    def fail(request: Request) -> Reply:
        raise Unreachable("no route", again=True)

    recording = Recording(Network(fail))
    with pytest.raises(Unreachable):
        await recording.send(SHOP, Request("/x"))
    assert recording.failures == 1
    assert recording.cassette.exchanges == {}


async def test_a_database_is_not_played() -> None:
    with pytest.raises(NotRecorded, match="shop is a database"):
        await Replaying(Cassette()).send(SHOP, Statement("t", sql="SELECT 1"))


_SQL = "SELECT b.title, r.reviewer FROM prizes p JOIN books b ON b.isbn = p.isbn JOIN reviews r ON r.isbn = b.isbn"


async def test_a_query_is_answered_from_a_cassette_as_from_the_sites(tmp_path: Path) -> None:
    async with book_trade(60, book_page=20) as web, HttpTransport(web.catalog.sources) as transport:
        recording = Recording(transport)
        live = await _answers(Mediator(web.catalog, threads=1, transport=recording), _SQL)
    recording.cassette.write(tmp_path / "trade.cassette")
    player = Replaying(Cassette.read(tmp_path / "trade.cassette"))
    catalog = offline(sources.load_book_trade("http://trade.example"))
    played = await _answers(Mediator(catalog, threads=1, transport=player), _SQL)
    assert live[0]
    assert (sorted(played[0]), played[1]) == (sorted(live[0]), [])
    assert player.unknown == []
    assert player.unused() == []


@pytest.mark.parametrize("obeyed", [False, True], ids=["recorded without robots.txt", "recorded with it"])
async def test_nobody_has_to_be_asked_for_leave_to_play(obeyed: bool) -> None:
    async with book_trade(60, book_page=20) as web, HttpTransport(web.catalog.sources) as transport:
        recording = Recording(transport)
        known = {n: replace(s, robots="obey" if obeyed else "ignore") for n, s in web.catalog.sources.items()}
        live = Mediator(replace(web.catalog, sources=known), threads=1, transport=recording)
        recorded = await _answers(live, "SELECT title FROM books")
    player = _replayed(recording)
    assert any(asked.path == "/robots.txt" for asked in recording.cassette.exchanges) == obeyed
    catalog = sources.load_book_trade("http://trade.example")
    obeying = {n: replace(s, robots="obey") for n, s in catalog.sources.items()}
    played = await _answers(
        Mediator(offline(replace(catalog, sources=obeying)), threads=1, transport=player),
        "SELECT title FROM books",
    )
    assert len(recorded[0]) == 60
    assert (sorted(played[0]), played[1]) == (sorted(recorded[0]), [])
    assert player.unknown == player.unused() == []


async def test_a_query_that_asks_more_than_was_recorded_is_partial_and_says_why(tmp_path: Path) -> None:
    async with book_trade(60, book_page=20) as web, HttpTransport(web.catalog.sources) as transport:
        recording = Recording(transport)
        await _answers(Mediator(web.catalog, threads=1, transport=recording), "SELECT * FROM prizes")
    player = _replayed(recording)
    catalog = offline(sources.load_book_trade("http://trade.example"))
    rows, missing = await _answers(Mediator(catalog, threads=1, transport=player), _SQL)
    assert rows == []
    assert any("not on the cassette: catalogue: GET /books?page=1" in line for line in missing)


async def _answers(mediator: Mediator, sql: str) -> tuple[list[str], list[str]]:
    """The rows, and what is missing."""
    async with mediator, mediator.answering(sql) as answers:
        rows = [str(row) async for batch in answers for row in batch.to_pylist()]
        failures = [f.line() for r in answers.report.relations for f in r.failures]
    return rows, failures
