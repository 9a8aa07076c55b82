"""A long reply that is asked for once more: to go on with it, or to see what has become of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from access_kit import answered
from long_replies_kit import ALL, Site, answer, declared, document, expected, says, serving, text

from mediator.access import Access
from mediator.access.fresh.remembered import Memory

pytestmark = pytest.mark.usefixtures("short_stretches")


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


class TestAskedForAgain:
    @staticmethod
    async def asked_twice(site: Site, folder: Path, kind: str) -> tuple[int, list[int]]:
        """How many landings there are the second time, and their rows."""
        async with Access(declared(site, folder, kind=kind, method=", fresh_for: 0.000001")) as access:
            first = await answered(access, ALL)
            assert len(first.landings) > 5
            second = await answered(access, ALL)
        rows = [k for landing in second.landings for k in landing.rows.column("k").to_pylist()]
        return len(second.landings), rows

    @pytest.mark.parametrize("kind", ["csv", "json"])
    async def test_it_may_be_as_it_was(self, kind: str, tmp_path: Path) -> None:
        body = text(400) if kind == "csv" else json.dumps(document(400, ""))
        async with serving(says(body), headers={"ETag": '"1"'}) as site:
            assert await self.asked_twice(site, tmp_path, kind) == (1, list(range(400)))
        assert [headers.get("If-None-Match") for headers in site.asked] == [None, '"1"']

    async def test_it_may_have_become_another(self, tmp_path: Path) -> None:
        tags = [{"ETag": '"1"'}, {"ETag": '"2"'}]
        async with serving(says(text(400)), says(text(300)), headers=tags) as site:
            assert (await self.asked_twice(site, tmp_path, "csv"))[1] == list(range(300))
        assert [headers.get("If-None-Match") for headers in site.asked] == [None, '"1"']

    async def test_too_much_to_be_remembered_is_asked_for_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Memory, "largest", 5_000)
        async with serving(says(text(400)), headers={"ETag": '"1"'}) as site:
            assert (await self.asked_twice(site, tmp_path, "csv"))[1] == list(range(400))
        assert [headers.get("If-None-Match") for headers in site.asked] == [None, None]
