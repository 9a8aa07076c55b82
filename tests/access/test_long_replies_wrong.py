"""What is wrong in a long reply is told with its place, and what was read before it stays."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web
from long_replies_kit import STRETCH, answer, declared, endless, expected, says, serving, text

pytestmark = pytest.mark.usefixtures("short_stretches")


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

    async def test_is_told_with_its_place_where_there_are_no_lines(self, tmp_path: Path) -> None:
        broken = json.dumps([{"k": k, "v": "v"} for k in range(300)]).replace('{"k": 250', '{"k": 2x50')
        async with serving(says(broken)) as site:
            found, report = await answer("SELECT k, v FROM r", declared(site, tmp_path, kind="json"))
        assert found == [(k, "v") for k in range(len(found))]
        assert 150 < len(found) <= 250
        said = "\n".join(report.lines())
        assert "not JSON" in said
        assert "(counted from byte " in said
        assert not report.complete

    async def test_a_key_twice_around_the_records(self, tmp_path: Path) -> None:
        """Which of the two lists is meant is not to be known, and the second comes when the first has landed."""
        some = json.dumps([{"k": k, "v": "v"} for k in range(300)])
        async with serving(says(f'{{"items": {some}, "items": []}}')) as site:
            catalog = declared(site, tmp_path, kind="json, rows: items")
            found, report = await answer("SELECT k, v FROM r", catalog)
        assert found == [(k, "v") for k in range(len(found))]
        assert "the key 'items' stands twice" in "\n".join(report.lines())
        assert not report.complete

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
