"""The suite asks politely: no more than it may, no faster than declared, and it ends when it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from fixtures import book_trade_web
from fixtures.virtual import VirtualTransport, run
from mediator.access import Transport
from mediator.catalog.model import Catalog, Mirror
from mediator.catalog.wrapper import Binding, Reply, Request
from wrappers import DeclaredWrapper
from wrappers.conformance import Asker, Finding, findings_of

_ROBOTS = b"User-agent: *\nDisallow: /who-is-who/\n"


@dataclass
class Watched:
    """A transport that notes when it is asked, and may answer in place of the one below."""

    below: Transport
    instead: Callable[[Request], Reply | None] = lambda _: None
    times: list[float] = field(default_factory=list)
    inside: int = 0
    most: int = 0

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        self.times.append(asyncio.get_running_loop().time())
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            return self.instead(request) or await self.below.send(mirror, request)
        finally:
            self.inside -= 1


def _of(
    name: str, instead: Callable[[Request], Reply | None] = lambda _: None, **source: object
) -> tuple[Catalog, Watched]:
    """One relation of the book trade, whose sources are declared like this."""
    web = book_trade_web(60, book_page=20)
    catalog = web.catalog
    relation = catalog.relations[name]
    sources = {n: replace(s, **source) for n, s in catalog.sources.items()}  # type: ignore[arg-type]
    return replace(catalog, relations={name: relation}, sources=sources), Watched(
        VirtualTransport(web), instead
    )


def _found(catalog: Catalog, transport: Transport, **how: object) -> tuple[list[Finding], Asker]:
    async def ask() -> tuple[list[Finding], Asker]:
        asker = Asker(catalog, transport, **how)  # type: ignore[arg-type]
        return await findings_of(asker, catalog.relations.values()), asker

    return run(ask())


def _of_check(findings: list[Finding], check: str) -> Finding:
    (found,) = [f for f in findings if f.check == check]
    return found


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_requests_than_allowed(most: int) -> None:
    catalog, network = _of("reviews")
    findings, asker = _found(catalog, network, most_requests=most)
    assert len(network.times) == asker.sent["readers"] == most
    assert [f for f in findings if f.outcome == "fail"] == []
    assert any("--most-requests" in f.why for f in findings if f.outcome == "skip")


def test_what_was_not_asked_has_not_passed() -> None:
    catalog, network = _of("books")
    findings, _ = _found(catalog, network, most_requests=1)
    assert _of_check(findings, "paging-ends").outcome == "skip"
    assert _of_check(findings, "nothing-left-out").outcome == "skip"
    assert _of_check(findings, "site-answers").outcome == "pass"


def test_one_at_a_time_and_no_faster_than_declared() -> None:
    catalog, network = _of("books", rate=2.0)
    _found(catalog, network)
    gaps = [b - a for a, b in zip(network.times, network.times[1:], strict=False)]
    assert network.most == 1
    assert len(gaps) >= 4
    assert network.times[-1] - network.times[0] >= (len(gaps) - 1) / 2.0


def test_a_long_scan_is_read_a_little_and_at_its_end() -> None:
    web = book_trade_web(400, book_page=10)
    catalog = replace(web.catalog, relations={"books": web.catalog.relations["books"]})
    pages: list[str] = []

    def note(request: Request) -> None:
        pages.append(dict(request.query)["page"])

    findings, _ = _found(catalog, Watched(VirtualTransport(web), note))
    assert pages == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "40"]
    skipped = _of_check(findings, "paging-ends")
    assert skipped.outcome == "skip"
    assert "only 10 pages" in skipped.why


def test_the_sites_word_is_obeyed() -> None:
    replies = iter([Reply(429, {"Retry-After": "9"}, b"")])
    catalog, network = _of("prizes", lambda _: next(replies, None))
    findings, _ = _found(catalog, network)
    assert network.times[1] - network.times[0] >= 9
    assert _of_check(findings, "pace-borne").outcome == "fail"
    assert _of_check(findings, "site-answers").outcome == "pass"


def test_a_site_that_is_down_is_asked_three_times() -> None:
    catalog, network = _of("prizes", lambda _: Reply(503, {}, b""))
    findings, _ = _found(catalog, network)
    assert len(network.times) == 3
    assert [f.check for f in findings if f.outcome == "fail"] == ["site-answers"]
    assert "503" in _of_check(findings, "site-answers").why


def test_a_longer_wait_than_the_deadline_is_not_waited_for() -> None:
    catalog, network = _of("prizes", lambda _: Reply(429, {"Retry-After": "86400"}, b""))
    findings, _ = _found(catalog, network)
    assert len(network.times) == 1
    assert _of_check(findings, "pace-borne").outcome == "fail"


def test_robots_are_obeyed() -> None:
    def instead(request: Request) -> Reply | None:
        return Reply(200, {"Content-Type": "text/plain"}, _ROBOTS) if request.path == "/robots.txt" else None

    catalog, network = _of("authors", instead)
    findings, asker = _found(catalog, network)
    assert asker.sent["who_is_who"] == 1
    assert "robots.txt" in _of_check(findings, "site-answers").why


def test_the_pace_that_robots_ask_for_is_kept() -> None:
    def instead(request: Request) -> Reply | None:
        slow = Reply(200, {"Content-Type": "text/plain"}, b"User-agent: *\nCrawl-delay: 5\nAllow: /\n")
        return slow if request.path == "/robots.txt" else None

    catalog, network = _of("authors", instead)
    findings, asker = _found(catalog, network)
    assert _of_check(findings, "site-answers").outcome == "pass"
    assert asker.sent["who_is_who"] == 5
    assert network.times[-1] - network.times[1] >= 3 * 5


def test_it_ends_when_it_is_told_to() -> None:
    catalog, _ = _of("reviews")

    class Hanging:
        async def send(self, mirror: Mirror, request: Request) -> Reply:
            asker.stop("interrupted")
            await asyncio.Event().wait()
            raise AssertionError

    asker: Asker

    async def ask() -> list[Finding]:
        nonlocal asker
        asker = Asker(catalog, Hanging())
        async with asyncio.timeout(20):
            return await findings_of(asker, catalog.relations.values())

    findings = run(ask())
    assert asker.sent["readers"] == 1
    assert [f.check for f in findings if f.outcome == "fail"] == []
    assert [f.check for f in findings if f.outcome == "pass"] == []
    assert any(f.why == "interrupted" for f in findings)


def test_code_that_hangs_is_not_waited_for() -> None:
    catalog, network = _of("prizes", deadline=0.05)
    (method,) = catalog.relations["prizes"].methods
    let_go = threading.Event()

    class Hanging(DeclaredWrapper):
        may_be_slow = True

        def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
            let_go.wait(60)
            return super().request(bind_set, bindings)

    wrapper = method.wrapper
    assert isinstance(wrapper, DeclaredWrapper)
    hanging = Hanging(**{name: getattr(wrapper, name) for name in wrapper.__dataclass_fields__})
    relation = replace(catalog.relations["prizes"], methods=(replace(method, wrapper=hanging),))

    async def ask() -> list[Finding]:
        asker = Asker(replace(catalog, relations={"prizes": relation}), network)
        return await findings_of(asker, [relation])

    try:
        findings = asyncio.run(ask())
    finally:
        let_go.set()
    assert network.times == []
    assert [f.check for f in findings if f.outcome == "fail"] == ["request-written"]
    assert "no request was written within 0.05 s" in _of_check(findings, "request-written").why


def test_a_transport_that_breaks_is_a_finding() -> None:
    def broken(request: Request) -> Reply | None:
        raise RuntimeError("the cable")

    catalog, network = _of("prizes", broken)
    findings, _ = _found(catalog, network)
    assert [f.check for f in findings if f.outcome == "fail"] == ["site-answers"]
    assert "the cable" in _of_check(findings, "site-answers").why


def test_without_a_binding_to_try_everything_is_skipped_and_says_what_to_add() -> None:
    catalog, network = _of("offers")
    findings, _ = _found(catalog, network)
    assert network.times == []
    assert {f.outcome for f in findings} == {"skip", "does not apply"}
    skipped = _of_check(findings, "rows-found")
    assert skipped.why == "there is no binding of isbn to try"
    assert 'add examples: [{isbn: "..."}] to offers.by_isbn' in skipped.remedy


def test_bindings_are_borrowed_from_relations_that_are_not_under_test() -> None:
    web = book_trade_web(60, book_page=20)
    catalog = web.catalog

    async def ask() -> tuple[list[Finding], Asker]:
        asker = Asker(catalog, VirtualTransport(web))
        return await findings_of(asker, [catalog.relations["offers"]]), asker

    findings, asker = run(ask())
    assert {f.relation for f in findings} == {"offers"}
    assert [f for f in findings if f.outcome in ("fail", "skip")] == []
    assert asker.sent["catalogue"] == 3
