"""Long replies over a scripted network, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pyarrow as pa
import pytest
from access_kit import Scripted, answered, scan
from long_replies_kit import FIELDS, STRETCH, text

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.web.stretches import Stretches
from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Unreachable
from mediator.flow.events import Landing
from pipeline.spread.portion import _page_of
from wrappers import CsvReader, DeclaredWrapper, Template

pytestmark = pytest.mark.usefixtures("short_stretches")


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
        return Reply(200, {}, await stretches.rest(200, {}, self._come(), cutter, 1 << 20))

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
