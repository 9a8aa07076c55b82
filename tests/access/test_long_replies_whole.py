"""Long replies that are read as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from access_kit import answered
from long_replies_kit import ALL, answer, declared, expected, says, serving, text

from mediator.access import Access

pytestmark = pytest.mark.usefixtures("short_stretches")


class TestWhatIsReadAsAWhole:
    async def test_a_document_may_be_as_large_as_is_declared(self, tmp_path: Path) -> None:
        document = json.dumps([[{"k": k, "v": "x" * 100} for k in range(1_000)]])
        async with serving(says(document)) as site:
            small = declared(site, tmp_path, kind="json, rows: '/0'", source=", largest_reply: 100kB")
            found, report = await answer("SELECT k FROM r", small)
            assert not found
            assert "larger than 100,000 bytes" in "\n".join(report.lines())
            large = declared(site, tmp_path, kind="json, rows: '/0'", source=", largest_reply: 1MB")
            found, report = await answer("SELECT k FROM r", large)
            assert len(found) == 1_000
            assert report.complete

    @pytest.mark.parametrize("rows", ["/", "/0", "/items/0", "/items/0/deep"])
    async def test_a_document_without_a_list_at_names(self, rows: str, tmp_path: Path) -> None:
        """One record, or a list that is found by its number."""
        record = {"k": 1, "v": "x" * 20_000}
        whole = {"/": record, "/0": [[record]], "/items/0": {"items": [[record]]}}
        body = json.dumps(whole.get(rows, {"items": [{"deep": [record]}]}))
        async with serving(says(body)) as site:
            catalog = declared(site, tmp_path, kind=f"json, rows: '{rows.rstrip('/')}'")
            found, report = await answer("SELECT k FROM r", catalog)
        assert (found, report.complete) == ([(1,)], True)

    async def test_so_is_what_comes_behind_the_list(self, tmp_path: Path) -> None:
        behind = {"beside": [{"k": -1, "v": "v"}] * 2_000}
        body = json.dumps({"items": [{"k": k, "v": "v"} for k in range(200)], **behind})
        async with serving(says(body)) as site:
            for most, complete in (("1MB", True), ("30kB", False)):
                catalog = declared(
                    site, tmp_path, kind="json, rows: items", source=f", largest_reply: {most}"
                )
                found, report = await answer("SELECT k FROM r", catalog)
                assert found[:100] == [(k,) for k in range(100)]
                assert report.complete == complete
                assert len(found) == 200 or not complete

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
