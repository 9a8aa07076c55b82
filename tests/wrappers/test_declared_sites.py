"""Queries over declared sites that misbehave: what is wrong is in the report, and what came is in the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

import sources
from mediator.answering import Mediator
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.output.report import Report
from tests.answering.kit import ask, failures, in_virtual_time

SITE = """\
sources:
  shop: {base: "https://shop.example", attempts: 3}
relations:
  books:
    key: [isbn]
    fields: {isbn: string, year: int32}
    methods:
      all:
        mirrors: [shop]
        request: {path: /books}
        pages: PAGES
        errors:
          - {status: 200, at: /error/code, says: ^quota$, means: rate_limited, after: 7}
          - {status: 404, says: no books, means: empty}
        reply: {kind: json, rows: /books}
"""


@dataclass
class Scripted:
    """A network of one site."""

    answer: Callable[[Request, int], Reply]
    asked: list[Request] = field(default_factory=list)

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        self.asked.append(request)
        return self.answer(request, len(self.asked))


def _query(
    folder: Path, answer: Callable[[Request, int], Reply], pages: str = "{next: /next}"
) -> tuple[pa.Table, Report, Scripted]:
    (folder / "shop.yaml").write_text(SITE.replace("PAGES", pages))
    network = Scripted(answer)

    async def run() -> tuple[pa.Table, Report]:
        catalog = sources.load(folder)
        async with Mediator(catalog, threads=1, transport=network) as mediator:
            return await ask(mediator, "SELECT isbn FROM books ORDER BY isbn")

    found, report = in_virtual_time(run())
    return found, report, network


def _said(body: str | bytes, status: int = 200, **headers: str) -> Reply:
    return Reply(status, headers, body if isinstance(body, bytes) else body.encode())


ONE = '{"books": [{"isbn": "1", "year": 1}]'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (ONE.replace("1}", "NaN}") + "}", "unreadable"),
        (ONE.replace('"year": 1', '"year": 1, "year": 2') + "}", "unreadable"),
        (ONE.replace('"year": 1', f'"year": {"9" * 10_000}') + "}", "unreadable"),
        (ONE.replace('"year": 1', '"year": 2147483648') + "}", "schema changed"),
        ("[" * 100_000, "unreadable"),
        (b"\xff", "unreadable"),
        ('{"books": [7]}', "schema changed"),
    ],
)
def test_a_hostile_body_is_a_cause_in_the_report(tmp_path: Path, body: str | bytes, kind: str) -> None:
    found, report, _ = _query(tmp_path, lambda request, nth: _said(body))
    assert (found.num_rows, report.complete) == (0, False)
    assert [failure.cause.kind for _, failure in failures(report)] == [kind]


@pytest.mark.parametrize(
    "pages", ["{next: /next}", "{cursor: /next, param: q}", "{rel: next}", "{param: page}"]
)
def test_pages_that_go_round_end_and_what_they_brought_is_kept(tmp_path: Path, pages: str) -> None:
    def going_round(request: Request, nth: int) -> Reply:
        return _said(f'{ONE}, "next": "/books?q={nth % 2}"}}', link=f"</books?q={nth % 2}>; rel=next")

    found, report, network = _query(tmp_path, going_round, pages)
    assert set(found["isbn"].to_pylist()) == {"1"}
    assert not report.complete
    assert [failure.cause.kind for _, failure in failures(report)] == ["endless"]
    assert len(network.asked) <= 4


@pytest.mark.parametrize(
    ("pages", "beside", "headers", "kind"),
    [
        ("{next: /next}", '"next": "/books"', {}, "endless"),
        ("{next: /next}", '"next": 7', {}, "schema changed"),
        ("{cursor: /next, param: after}", '"next": {}', {}, "schema changed"),
        ("{rel: next}", '"n": 1', {"link": "</books?p=2; rel=next"}, "schema changed"),
        ("{rel: next}", '"n": 1', {"link": "</books>; rel=next"}, "endless"),
        ("{param: page, total: /total}", '"total": -1', {}, "schema changed"),
        ("{offset: from, total: /total}", '"n": 1', {}, "schema changed"),
    ],
)
def test_rows_are_kept_where_only_what_stands_beside_them_is_wrong(
    tmp_path: Path, pages: str, beside: str, headers: dict[str, str], kind: str
) -> None:
    found, report, network = _query(tmp_path, lambda *_: _said(f"{ONE}, {beside}}}", **headers), pages)
    assert found["isbn"].to_pylist() == ["1"]
    assert not report.complete
    assert [failure.cause.kind for _, failure in failures(report)] == [kind]
    assert len(network.asked) == 1


def test_the_last_page_may_name_itself_and_keeps_its_rows(tmp_path: Path) -> None:
    def stays(request: Request, nth: int) -> Reply:
        return _said(f'{{"books": [{{"isbn": "{nth}", "year": 1}}], "next": "/books?n={min(nth + 1, 3)}"}}')

    found, report, network = _query(tmp_path, stays)
    assert found["isbn"].to_pylist() == ["1", "2", "3"]
    assert [failure.cause.kind for _, failure in failures(report)] == ["endless"]
    assert len(network.asked) == 3


def test_a_page_that_leads_astray_is_asked_for_anew_by_the_next_query(tmp_path: Path) -> None:
    """A site that knows the page again by its ETag might say for ever that it is as it was."""
    links = iter(("7", '"/books?n=2"', "null"))

    def mended(request: Request, nth: int) -> Reply:
        body = f'{{"books": [{{"isbn": "{nth}", "year": 1}}], "next": {next(links)}}}'
        return _said(body, etag='"1"')

    (tmp_path / "shop.yaml").write_text(SITE.replace("PAGES", "{next: /next}"))
    network = Scripted(mended)

    async def run() -> list[bool]:
        async with Mediator(sources.load(tmp_path), threads=1, transport=network) as mediator:
            return [(await ask(mediator, "SELECT isbn FROM books"))[1].complete for _ in range(2)]

    assert in_virtual_time(run()) == [False, True]
    assert not any(
        name.lower() == "if-none-match" for request in network.asked for name, _ in request.headers
    )


def test_links_of_a_page_to_which_the_request_was_led_begin_there(tmp_path: Path) -> None:
    def led(request: Request, nth: int) -> Reply:
        if request.path == "/v2/page2":
            return _said('{"books": [{"isbn": "2", "year": 1}]}')
        body = ONE + ', "next": "page2"}'
        return replace(_said(body), address="/v2/books")

    found, report, network = _query(tmp_path, led)
    assert (found["isbn"].to_pylist(), report.complete) == (["1", "2"], True)
    assert network.asked[-1].url("https://shop.example/base") == "https://shop.example/v2/page2"


def test_a_reply_that_is_declared_to_mean_later_is_asked_for_again(tmp_path: Path) -> None:
    def moody(request: Request, nth: int) -> Reply:
        return _said('{"error": {"code": "quota"}}' if nth == 1 else ONE + "}")

    found, report, network = _query(tmp_path, moody)
    assert (found.num_rows, report.complete, len(network.asked)) == (1, True, 2)


def test_a_reply_that_is_declared_to_mean_nothing_is_an_answer(tmp_path: Path) -> None:
    found, report, _ = _query(tmp_path, lambda request, nth: _said("no books", status=404))
    assert (found.num_rows, report.complete) == (0, True)
    _, report, _ = _query(tmp_path, lambda request, nth: _said("no page", status=404))
    assert not report.complete
