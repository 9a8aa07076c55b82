"""Replies that are too long to wait for: what has come is read and lands while the rest is on its way."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from access_kit import Scripted, answered, scan
from aiohttp import web

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.web import stretches
from mediator.access.web.stretches import Stretches
from mediator.answering import answering
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Unreachable
from mediator.flow.events import Ask, Exhausted, Landing
from mediator.output.report import Report
from pipeline.spread.portion import _page_of
from sources import load
from wrappers import CsvReader, DeclaredWrapper, Template

STRETCH = 1_000  # bytes, in these tests
FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
DECLARED = """\
sources:
  site: {{base: "{base}", allow_private: true{source}}}
relations:
  r:
    fields: {{k: int64, v: string}}
    methods:
      all: {{mirrors: [site], request: {{path: /all}}, reply: {{kind: {kind}}}{method}}}
{more}"""
INDEXED = """\
      by_k:
        mirrors: [site]
        required: [k]
        request: {path: /at, query: {k: "{k}"}}
        reply: {kind: csv}
"""
ALL = Ask(1, "r", "all", (), ((),))
Send = Callable[[web.StreamResponse], Awaitable[None]]


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH", STRETCH)


def line(k: int) -> str:
    return f'{k},"value, and\nits ""number"" {k}"\n'


def text(rows: int) -> str:
    return "k,v\n" + "".join(map(line, range(rows)))


def expected(rows: int) -> list[tuple[int, str]]:
    return [(int(k), v) for k, v in list(csv.reader(io.StringIO(text(rows))))[1:]]


@dataclass
class Site:
    """Answers `/all` as it is told, one way after another, the last for ever."""

    answers: list[Send]
    headers: dict[str, str] = field(default_factory=dict)
    base: str = ""
    requests: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)  # the headers of each request
    left: asyncio.Event = field(default_factory=asyncio.Event)  # somebody has not heard us out

    async def all(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        self.asked.append(dict(request.headers))
        response = web.StreamResponse(headers=self.headers)
        await response.prepare(request)
        try:
            await self.answers[min(len(self.requests), len(self.answers)) - 1](response)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        await response.write_eof()
        return response

    async def at(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        return web.Response(text=f"k,v\n{request.query['k']},looked up\n")


@asynccontextmanager
async def serving(*answers: Send, headers: dict[str, str] | None = None) -> AsyncIterator[Site]:
    site = Site(list(answers), headers or {})
    app = web.Application()
    app.router.add_get("/all", site.all)
    app.router.add_get("/at", site.at)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    tcp = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp.start()
    assert tcp._server is not None
    site.base = f"http://127.0.0.1:{tcp._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    try:
        yield site
    finally:
        await runner.cleanup()


def says(body: str | bytes, cut_after: int | None = None) -> Send:
    """All of this, in writes of an odd size; or the beginning, and then the connection is gone."""
    data = body.encode() if isinstance(body, str) else body

    async def send(response: web.StreamResponse) -> None:
        for start in range(0, cut_after or len(data), 701):
            await response.write(data[start : min(start + 701, cut_after or len(data))])
        if cut_after is not None:
            assert response._req is not None
            assert response._req.transport is not None
            response._req.transport.close()

    return send


async def endless(response: web.StreamResponse) -> None:
    await response.write(b"k,v\n")
    for start in count(0, 1_000):
        await response.write("".join(map(line, range(start, start + 1_000))).encode())


def declared(site: Site, folder: Path, **said: str) -> Catalog:
    said = {"kind": "csv", "source": "", "method": "", "more": ""} | said
    path = folder / "site.yaml"
    path.write_text(DECLARED.format(base=site.base, **said))
    return load(path)


async def answer(sql: str, catalog: Catalog) -> tuple[list[tuple[Any, ...]], Report]:
    async with answering(sql, catalog) as answers:
        rows = [tuple(row.values()) async for batch in answers for row in batch.to_pylist()]
    return rows, answers.report


class TestWhatHasComeIsRead:
    async def test_a_limit_ends_a_reply_that_never_would(self, tmp_path: Path) -> None:
        async with serving(endless) as site:
            rows, report = await answer("SELECT k, v FROM r LIMIT 5", declared(site, tmp_path))
            await asyncio.wait_for(site.left.wait(), 60)
        assert rows == expected(5)
        assert report.complete
        assert site.requests == ["/all"]

    async def test_rows_are_answered_before_the_reply_has_come(self, tmp_path: Path) -> None:
        go_on = asyncio.Event()

        async def waits(response: web.StreamResponse) -> None:
            data = text(200).encode()
            await response.write(data[:5_000])
            await go_on.wait()
            await response.write(data[5_000:])

        async with (
            serving(waits) as site,
            answering("SELECT k, v FROM r", declared(site, tmp_path)) as answers,
        ):
            rows: list[tuple[Any, ...]] = []
            async for batch in answers:
                rows += [tuple(row.values()) for row in batch.to_pylist()]
                go_on.set()  # which only a first answer does
        assert rows == expected(200)
        assert answers.report.complete

    @pytest.mark.parametrize("rows", [0, 1, 20, 500])
    @pytest.mark.parametrize("packed", [False, True])
    async def test_all_rows_come_once(self, rows: int, packed: bool, tmp_path: Path) -> None:
        body = gzip.compress(text(rows).encode()) if packed else text(rows).encode()
        headers = {"Content-Encoding": "gzip"} if packed else {}
        async with serving(says(body), headers=headers) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found == expected(rows)
        assert report.complete

    async def test_a_quote_within_a_value_is_one(self, tmp_path: Path) -> None:
        """Only at its beginning it begins a quotation, in which lines may end."""
        rows = [(k, f'{k}" wide' if k % 7 == 0 else f"first\nsecond {k}") for k in range(300)]
        body = "".join(f"{k},{v}\n" if k % 7 == 0 else f'{k},"{v}"\n' for k, v in rows)
        async with serving(says("k,v\n" + body)) as site, Access(declared(site, tmp_path)) as access:
            heard = await answered(access, ALL)
        assert [tuple(row.values()) for x in heard.landings for row in x.rows.to_pylist()] == rows
        assert len(heard.landings) > 5

    async def test_equal_rows_are_kept(self, tmp_path: Path) -> None:
        async with serving(says("k,v\n" + "1,same\n" * 1_000)) as site:
            found, _ = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found == [(1, "same")] * 1_000

    async def test_lines_of_json(self, tmp_path: Path) -> None:
        body = "".join(json.dumps({"k": k, "v": f"number {k} – so"}) + "\n" for k in range(300))
        async with serving(says(body)) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path, kind="ndjson"))
        assert found == [(k, f"number {k} – so") for k in range(300)]
        assert report.complete

    async def test_it_covers_what_came_in_all_stretches(self, tmp_path: Path) -> None:
        """Where rows may come by lookups too, a scan vouches for those that it brought itself."""
        async with serving(says(text(300))) as site:
            catalog = declared(site, tmp_path, more=INDEXED)
            async with Access(catalog) as access:
                heard = await answered(access, ALL)
            assert sum(landing.rows.num_rows for landing in heard.landings) == 300
            assert len(heard.landings) > 3
            (ended,) = [event for _, event in heard.events if isinstance(event, Exhausted)]
            assert [id(x) for x in ended.landings] == [id(x) for x in heard.landings]
            assert len({(x.page, x.stretch) for x in heard.landings}) == len(heard.landings)
            assert len(set(map(_page_of, heard.landings))) == len(heard.landings)


class TestAnotherAttempt:
    async def test_goes_on_behind_what_has_landed(self, tmp_path: Path) -> None:
        whole = text(400)
        async with serving(says(whole, cut_after=7_000), says(whole, cut_after=9_000), says(whole)) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found == expected(400)
        assert report.complete
        assert len(site.requests) == 3

    @pytest.mark.parametrize(
        "then", [text(400).replace("value", "other"), text(10)], ids=["of other rows", "of fewer rows"]
    )
    async def test_must_begin_in_the_same_way(self, then: str, tmp_path: Path) -> None:
        async with serving(says(text(400), cut_after=7_000), says(then)) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found
        assert found == expected(400)[: len(found)], "what was found before stays, once"
        assert not report.complete
        said = "\n".join(report.lines())
        assert (
            f"it was read as far as {len(found)} rows and asked for again, and begins in another way" in said
        )
        assert len(site.requests) == 2

    async def test_is_asked_for_as_a_whole(self, tmp_path: Path) -> None:
        """On condition that something is new the site might answer that nothing is, and nothing would come."""
        tags = {"ETag": '"1"'}
        whole = text(400)
        async with serving(says(whole, cut_after=7_000), says(whole), headers=tags) as site:
            catalog = declared(site, tmp_path, method=", fresh_for: 0.000001")
            async with Access(catalog) as access:
                for _ in range(2):
                    heard = await answered(access, ALL)
                    assert sum(landing.rows.num_rows for landing in heard.landings) == 400
        assert len(site.requests) == 3
        assert not any("If-None-Match" in headers for headers in site.asked), "parts are not remembered"


class TestWhatIsWrongInIt:
    async def test_is_told_with_its_line(self, tmp_path: Path) -> None:
        broken = text(300) + "1,2,3\n" + text(5).partition("\n")[2]
        async with serving(says(broken)) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found == expected(300)[: len(found)]
        assert 200 < len(found) <= 300
        said = "\n".join(report.lines())
        assert "not CSV" in said
        assert "(counted from line " in said
        assert not report.complete

    async def test_a_record_without_end(self, tmp_path: Path) -> None:
        async def endless_value(response: web.StreamResponse) -> None:
            await response.write(b'k,v\n1,"')
            while True:
                await response.write(b"x\n" * 5_000)

        async with serving(endless_value) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert not found
        assert site.requests == ["/all"]
        said = f"behind line 1 no record ends within {8 * STRETCH:,} bytes: is it what the declaration says it is"
        assert said in "\n".join(report.lines())

    async def test_a_reply_without_end(self, tmp_path: Path) -> None:
        async with serving(endless) as site:
            catalog = declared(site, tmp_path, source=", largest_reply: 500kB")
            found, report = await answer("SELECT k, v FROM r", catalog)
            assert site.requests == ["/all"], "it would do so again"
        assert found == expected(len(found))
        assert len(found) > 1_000
        assert "declare a larger `largest_reply` of the source" in "\n".join(report.lines())

    async def test_what_a_query_may_spend_ends_it(self, tmp_path: Path) -> None:
        async with serving(endless) as site:
            catalog = declared(site, tmp_path, source=", per_query: {bytes: 20kB}")
            found, report = await answer("SELECT k, v FROM r", catalog)
            await asyncio.wait_for(site.left.wait(), 60)
            assert site.requests == ["/all"]
        assert found == expected(len(found))
        assert 20_000 <= len(text(len(found))) < 20_000 + 2 * STRETCH
        assert "ceiling" in "\n".join(report.lines())

    async def test_one_that_is_announced_is_read_as_far_as_it_may_be(self, tmp_path: Path) -> None:
        async with serving(endless, headers={"Content-Length": str(1 << 40)}) as site:
            rows, report = await answer("SELECT k, v FROM r LIMIT 5", declared(site, tmp_path))
        assert rows == expected(5)
        assert report.complete


class TestWhatIsReadAsAWhole:
    async def test_a_document_may_be_as_large_as_is_declared(self, tmp_path: Path) -> None:
        document = json.dumps([{"k": k, "v": "x" * 100} for k in range(1_000)])
        async with serving(says(document)) as site:
            small = declared(site, tmp_path, kind="json", source=", largest_reply: 100kB")
            found, report = await answer("SELECT k FROM r", small)
            assert not found
            assert "larger than 100,000 bytes" in "\n".join(report.lines())
            large = declared(site, tmp_path, kind="json", source=", largest_reply: 1MB")
            found, report = await answer("SELECT k FROM r", large)
            assert len(found) == 1_000
            assert report.complete

    @pytest.mark.parametrize(
        "method",
        [
            ", order: [k]",
            ", at_most: 1000",
            ", pages: {rel: next}",
            ", errors: [{status: [418], means: fail}]",
        ],
    )
    async def test_where_more_hangs_on_a_page_than_its_rows(self, method: str, tmp_path: Path) -> None:
        rows = "k,v\n" + "".join(f"{k},v\n" for k in range(400))
        async with serving(says(rows)) as site, Access(declared(site, tmp_path, method=method)) as access:
            heard = await answered(access, ALL)
        (landing,) = heard.landings
        assert landing.rows.num_rows == 400

    async def test_text_of_which_lines_cannot_be_told_in_bytes(self, tmp_path: Path) -> None:
        body = text(200).encode("utf-16")
        kind = {"Content-Type": "text/csv; charset=utf-16"}
        async with serving(says(body), headers=kind) as site:
            found, _ = await answer("SELECT k, v FROM r", declared(site, tmp_path))
        assert found == expected(200)


class Slow(Scripted):
    """A network whose replies come in pieces, each so many seconds after the one before."""

    def __init__(self, chunks: list[bytes], seconds: float) -> None:
        async def whole(mirror: Mirror, request: Request) -> Reply:
            raise AssertionError("it can be read while it comes")

        super().__init__(whole)
        self.chunks, self.seconds = chunks, seconds

    async def stream(self, mirror: Mirror, request: Request, stretches: Stretches) -> Reply:
        self.sent.append((asyncio.get_running_loop().time(), mirror.source, request))
        cutter = stretches.cutter({})
        assert cutter is not None
        return Reply(200, {}, await stretches.rest(200, {}, self._come(), cutter))

    async def _come(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            await asyncio.sleep(self.seconds)
            yield chunk
        if not self.chunks:
            raise Unreachable("nothing")


def _chunks(rows: int) -> list[bytes]:
    data = text(rows).encode()
    return [data[start : start + STRETCH] for start in range(0, len(data), STRETCH)]


def _waited_for(seconds: float, deadline: float, chunks: list[bytes]) -> tuple[int, str]:
    """How many rows land, and what is said, of a reply of which so much comes at a time."""
    return _landed(Slow(chunks, seconds), "site", deadline=deadline)


def _landed(network: Scripted, *names: str, deadline: float = 30.0, twice: bool = False) -> tuple[int, str]:
    wrapper = DeclaredWrapper("r", FIELDS, Template(path="/all"), CsvReader())
    mirrors = tuple(Mirror(name, "http://site.test") for name in names)
    method = AccessMethod("scan", "scan", mirrors, wrapper)
    sources = {name: Source(name, deadline=deadline, attempts=1, twice=twice) for name in names}
    catalog = Catalog({"r": Relation("r", FIELDS, (method,))}, sources)

    async def main() -> tuple[int, str]:
        async with Access(catalog, transport=network) as access:
            heard = await answered(access, scan())
        return sum(landing.rows.num_rows for landing in heard.landings), "".join(heard.failed.values())

    return run(main())


@pytest.mark.parametrize(
    ("names", "twice"), [(("a", "b"), False), (("a",), True)], ids=["of two mirrors", "of one asked twice"]
)
def test_what_several_requests_may_bring_is_read_as_a_whole(names: tuple[str, ...], twice: bool) -> None:
    """What came of one cannot be gone on with in another."""

    class Whole(Slow):
        async def stream(self, mirror: Mirror, request: Request, stretches: Stretches) -> Reply:
            raise AssertionError("rows of two replies would land")

    async def whole(mirror: Mirror, request: Request) -> Reply:
        return Reply(200, {}, text(300).encode())

    network = Whole([], 0.0)
    network.answer = whole
    assert _landed(network, *names, twice=twice) == (300, "")


class TestDeadline:
    def test_each_stretch_has_as_long_as_a_reply(self) -> None:
        chunks = _chunks(300)
        assert len(chunks) > 8
        assert _waited_for(4.0, 9.0, chunks) == (300, "")

    def test_a_stretch_that_is_late_ends_it(self) -> None:
        rows, said = _waited_for(10.0, 9.0, _chunks(300))
        assert rows == 0
        assert "within 9 s" in said

    def test_what_came_before_stays(self) -> None:
        chunks = _chunks(300)
        rows, said = _waited_for(4.0, 9.0, [*chunks[:5], b"", b"", b"", *chunks[5:]])
        assert 0 < rows < 300
        assert "within 9 s" in said


def test_a_landing_of_one_page_is_known_by_its_stretch() -> None:
    rows = pa.RecordBatch.from_pydict({"k": [1]})
    request = Request("/all")
    names = [_page_of(Landing(rows, page=request, stretch=n)) for n in range(3)]
    assert len(set(names)) == 3
    assert names[0] == _page_of(Landing(rows, page=replace(request)))
