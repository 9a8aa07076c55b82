"""Replies that are too long to wait for: what has come is read and lands while the rest is on its way."""

from __future__ import annotations

import asyncio
import gzip
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from access_kit import answered
from aiohttp import web
from long_replies_kit import ALL, INDEXED, answer, declared, document, endless, expected, says, serving, text

from mediator.access import Access
from mediator.answering import answering
from mediator.flow.events import Exhausted
from pipeline.spread.portion import _page_of

pytestmark = pytest.mark.usefixtures("short_stretches")


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

    @pytest.mark.parametrize("place", ["", "/found/items"])
    @pytest.mark.parametrize("indent", [None, 1])
    async def test_a_document_of_json(self, place: str, indent: int | None, tmp_path: Path) -> None:
        body = json.dumps(document(300, place), indent=indent)
        async with serving(says(body)) as site:
            catalog = declared(site, tmp_path, kind=f"json, rows: '{place}'")
            async with Access(catalog) as access:
                heard = await answered(access, ALL)
        assert [row["k"] for x in heard.landings for row in x.rows.to_pylist()] == list(range(300))
        assert len(heard.landings) > 5

    async def test_a_limit_ends_a_document_that_never_would(self, tmp_path: Path) -> None:
        async def endless_list(response: web.StreamResponse) -> None:
            await response.write(b'{"count": 7, "found": {"items": [')
            for k in count():
                await response.write(json.dumps({"k": k, "v": "]}"}).encode() + b", ")

        async with serving(endless_list) as site:
            catalog = declared(site, tmp_path, kind="json, rows: /found/items")
            rows, report = await answer("SELECT k, v FROM r LIMIT 5", catalog)
            await asyncio.wait_for(site.left.wait(), 60)
        assert rows == [(k, "]}") for k in range(5)]
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
