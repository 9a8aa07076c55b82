"""What a site's replies mean beyond their status."""

from datetime import UTC, datetime
from typing import cast

import pytest
from pydantic import ValidationError

from mediator.access.method import Method
from mediator.access.mirrors.race import Race
from mediator.access.reading import understood
from mediator.catalog.model import AccessMethod, Relation
from mediator.catalog.wrapper import Page, Reply
from mediator.errors import RateLimited, Refused, SourceError
from tests.wrappers.replies import ISBN, reply
from wrappers import CsvReader, DeclaredWrapper, HtmlReader, JsonReader, Reader, Rule, Template

JSON = JsonReader(kind="json", rows="/rows")


def _rule(**said: object) -> Rule:
    return Rule.model_validate(said)


async def _read(
    sent: Reply, *rules: Rule, reader: Reader = JSON, empty: frozenset[int] = frozenset()
) -> Page:
    """The page that the access layer makes of a reply."""
    wrapper = DeclaredWrapper(
        "books", (ISBN,), Template(path="/b"), reader, empty_statuses=empty, rules=rules
    )
    declared = AccessMethod(name="all", kind="scan", mirrors=(), wrapper=wrapper)
    relation = Relation("books", (ISBN,), (declared,))
    method = Method(relation, declared, wrapper, cast(Race, None))  # reading needs none
    return await understood(
        method, wrapper.request((), [()]), (), ((),), sent, lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )


QUOTA = '{"error": {"code": "quota", "wait": 5}}'
GOOD = '{"rows": [{"isbn": "1"}]}'


@pytest.mark.parametrize(
    ("sent", "rule"),
    [
        (reply(QUOTA), _rule(at="/error/code", says="quota", means="rate_limited")),
        (reply(QUOTA), _rule(at="error.code", means="rate_limited")),
        (reply(QUOTA, status=403), _rule(status=403, means="rate_limited")),
        (reply(QUOTA, status=403), _rule(status="4xx", says="quota", means="rate_limited")),
        (reply(QUOTA, status=403), _rule(status=[402, "403"], means="rate_limited")),
        (Reply(200, {"X-Left": "0"}, b""), _rule(header="x-left", says="^0$", means="rate_limited")),
        (Reply(500, {"X-Left": "0"}, b"\xff"), _rule(header="X-LEFT", means="rate_limited")),
    ],
)
async def test_a_rule_applies_by_status_header_or_body(sent: Reply, rule: Rule) -> None:
    with pytest.raises(RateLimited, match="declared to mean too many requests") as caught:
        await _read(sent, rule)
    assert caught.value.again


@pytest.mark.parametrize(
    ("means", "kind", "again"),
    [("retry", Refused, True), ("fail", Refused, False), ("rate_limited", RateLimited, True)],
)
async def test_a_rule_says_what_becomes_of_the_lookup(
    means: str, kind: type[SourceError], again: bool
) -> None:
    with pytest.raises(kind, match=r"200, declared to mean .*: quota$") as caught:
        await _read(reply(QUOTA), _rule(at="/error/code", means=means))
    assert (type(caught.value), caught.value.again) == (kind, again)


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_a_rule_can_mean_no_rows_at_any_status(status: int) -> None:
    page = await _read(reply(QUOTA, status=status), _rule(at="/error", means="empty"))
    assert (page.rows.num_rows, page.then) == (0, ())


@pytest.mark.parametrize(
    "rule",
    [
        _rule(status=500, means="fail"),
        _rule(at="/error", means="fail"),
        _rule(at="/rows/0/isbn", says="^2", means="fail"),
        _rule(header="X-Left", says="0", means="fail"),
        _rule(says="error", means="fail"),
        _rule(status=200, says="error", means="fail"),
    ],
)
async def test_a_rule_that_does_not_apply_changes_nothing(rule: Rule) -> None:
    assert (await _read(reply(GOOD), rule)).rows.to_pylist() == [{"isbn": "1"}]


async def test_of_several_rules_the_first_that_applies_decides() -> None:
    rules = _rule(status=404, at="/error", means="fail"), _rule(status="4xx", means="empty")
    assert (await _read(reply("gone", status=404), *rules)).rows.num_rows == 0
    with pytest.raises(Refused):
        await _read(reply(QUOTA, status=404), *rules)


async def test_a_rule_goes_before_the_statuses_that_are_empty() -> None:
    rule = _rule(says="maintenance", means="retry")
    assert (await _read(reply("gone", status=404), rule, empty=frozenset({404}))).rows.num_rows == 0
    with pytest.raises(Refused) as caught:
        await _read(reply("maintenance", status=404), rule, empty=frozenset({404}))
    assert caught.value.again


@pytest.mark.parametrize(
    ("status", "kind", "again"),
    [(429, RateLimited, True), (500, Refused, True), (503, SourceError, True), (403, Refused, False)],
)
async def test_without_a_rule_the_status_decides(status: int, kind: type[SourceError], again: bool) -> None:
    with pytest.raises(kind) as caught:
        await _read(reply("", status=status), _rule(says="quota", means="empty"))
    assert caught.value.again == again


@pytest.mark.parametrize(("headers", "after"), [({}, 7.0), ({"Retry-After": "3"}, 3.0)])
async def test_how_long_to_wait_is_said_by_the_reply_or_else_by_the_rule(
    headers: dict[str, str], after: float
) -> None:
    with pytest.raises(RateLimited) as caught:
        await _read(Reply(403, headers, b""), _rule(status=403, means="rate_limited", after=7))
    assert caught.value.after == after


@pytest.mark.parametrize(
    ("reader", "body", "at"),
    [
        (HtmlReader(kind="html", table="//table"), "<p class=oops>no", "//p[@class='oops']"),
        (HtmlReader(kind="html", table="//table"), "<p class=oops>no", "css:p.oops"),
        (JSON, QUOTA, "/error/code"),
    ],
)
async def test_rules_look_at_web_pages_as_well(reader: Reader, body: str, at: str) -> None:
    with pytest.raises(Refused, match="declared to mean a failure"):
        await _read(reply(body), _rule(at=at, means="fail"), reader=reader)


@pytest.mark.parametrize("reader", [JSON, HtmlReader(kind="html", table="//table"), CsvReader(kind="csv")])
@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 2_000, b"\0"])
def test_a_body_that_cannot_be_read_has_nothing_at_any_place(reader: Reader, body: bytes) -> None:
    assert (
        _rule(at="/a", means="fail").meaning(reply(body), lambda path: reader.look(reply(body), path)) is None
    )


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"means": "fail"}, "this applies to every reply: give status, header, at or says"),
        ({"means": "fail", "status": 999}, "999 is not a status"),
        ({"means": "fail", "status": "5x"}, "'5x' is not a status"),
        ({"means": "fail", "says": "("}, r"'\(' is not a pattern"),
        ({"means": "fail", "header": "x", "at": "/y"}, "a rule looks at one thing"),
        ({"means": "fail", "status": 404, "after": 3}, "'fail' is for good: leave out after"),
        ({"means": "later", "status": 404}, "retry"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_told(said: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Rule.model_validate(said)
