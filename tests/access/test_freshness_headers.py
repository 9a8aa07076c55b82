"""What headers say of freshness and of versions: as RFC 9111 and 9110 have it, and whatever rubbish they may be."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.access.fresh.freshness import Vouched, directives, vouched
from mediator.access.fresh.http_date import http_date
from mediator.access.fresh.validators import Validators, conditional, validators_of
from mediator.access.limits.backoff import retry_after
from mediator.catalog.wrapper import Request

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def date(seconds: float) -> str:
    """The moment so many seconds from now, as headers write it."""
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


def said(took: float = 0.0, **headers: str) -> Vouched:
    return vouched({name.replace("_", "-"): value for name, value in headers.items()}, took, lambda: NOW)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"cache_control": "public"}, None),
        ({"cache_control": "must-revalidate"}, None),
        ({"cache_control": "max-age=60"}, 60),
        ({"cache_control": 'Max-Age="60"'}, 60),
        ({"cache_control": " , ,public,  MAX-AGE = 60 ,"}, 60),
        ({"cache_control": "private, max-age=60"}, 60),
        ({"cache_control": "max-age=60, s-maxage=10"}, 10),
        ({"cache_control": "s-maxage=60, max-age=10"}, 10),
        ({"cache_control": "max-age=60, max-age=20"}, 20),
        ({"cache_control": "max-age=60, must-revalidate"}, 60),
        ({"cache_control": "max-age=0"}, 0),
        ({"cache_control": "max-age=99999999999999999999999"}, 2**31),
        ({"cache_control": "max-age=60, no-cache"}, 0),
        ({"cache_control": 'max-age=60, no-cache="set-cookie"'}, 0),
        ({"cache_control": 'community="a, max-age=5", max-age=60'}, 60),
        ({"cache_control": "max-age=-1"}, 0),
        ({"cache_control": "max-age=soon"}, 0),
        ({"cache_control": "max-age=1.5"}, 0),
        ({"cache_control": "max-age"}, 0),
        ({"cache_control": "max-age=٣"}, 0),
        ({"cache_control": "max-age=60", "age": "45"}, 15),
        ({"cache_control": "max-age=60", "age": "100"}, 0),
        ({"cache_control": "max-age=60", "age": "45, 7"}, 15),
        ({"cache_control": "max-age=60", "age": "-45"}, 60),
        ({"cache_control": "max-age=60", "age": "old"}, 60),
        ({"cache_control": "max-age=60", "date": date(-40)}, 20),
        ({"cache_control": "max-age=60", "date": date(-40), "age": "50"}, 10),
        ({"cache_control": "max-age=60", "date": date(+40)}, 60),
        ({"cache_control": "max-age=60", "date": "yesterday"}, 60),
        ({"cache_control": "max-age=60", "expires": date(-1)}, 60),
        ({"expires": date(30), "date": date(0)}, 30),
        ({"expires": date(30), "date": date(-10)}, 30),
        ({"expires": date(30)}, 30),
        ({"expires": date(-30)}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "-1"}, 0),
        ({"expires": f"{date(30)}, {date(60)}"}, 30),
        ({"expires": date(30), "cache_control": "public"}, 30),
        ({"expires": "Sun Mar  1 12:00:30 2026"}, 30),
        ({"pragma": "no-cache"}, None),
    ],
)
def test_how_long_a_reply_stays_fresh(headers: dict[str, str], seconds: float | None) -> None:
    assert said(**headers) == Vouched(seconds)


def test_the_time_on_the_way_is_part_of_the_age() -> None:
    assert said(2.5, cache_control="max-age=60").seconds == 57.5
    assert said(2.5, cache_control="max-age=60", age="10").seconds == 47.5
    assert said(90.0, cache_control="max-age=60").seconds == 0


@pytest.mark.parametrize("text", ["no-store", "max-age=60, NO-STORE", "private,no-store, no-cache"])
def test_what_must_not_be_stored_is_stale_at_once(text: str) -> None:
    assert said(cache_control=text) == Vouched(0.0, stored=False)


def test_directives_keep_all_that_they_were_given() -> None:
    assert directives('a, B=1, b="x, \\"y", =3, c d, e=') == {"a": [""], "b": ["1", 'x, "y'], "e": [""]}


@pytest.mark.parametrize("text", ['"' * 8_000, "a=" + " " * 8_000 + '"', 'x=",' * 2_000, "\\" * 8_000])
def test_the_longest_headers_are_read_at_once(text: str) -> None:
    """None of them makes the pattern go back over what it has read: that would take minutes."""
    assert isinstance(directives(text), dict)


RUBBISH = st.text(st.characters(exclude_characters="\r\n"), max_size=60)
WORDS = st.sampled_from(
    ["max-age", "s-maxage", "no-cache", "no-store", "=", '"', ",", " ", "\\", "-", "9" * 30, "0"]
)
MADE = st.lists(WORDS | RUBBISH, max_size=12).map("".join)
DATES = st.sampled_from(
    ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999999999", date(5)]
)


@given(
    st.dictionaries(
        st.sampled_from(["cache-control", "age", "expires", "date", "etag", "last-modified", "vary"]),
        MADE | DATES | RUBBISH,
    ),
    st.floats(0, 1e6),
)
def test_rubbish_is_never_more_than_rubbish(headers: dict[str, str], took: float) -> None:
    found = vouched(headers, took, lambda: NOW)
    assert found.seconds is None or (math.isfinite(found.seconds) and found.seconds >= 0)
    assert found.stored or found.seconds == 0
    validators = validators_of(200, headers)
    if validators is not None:
        request = validators.condition(Request("/"))
        assert all(value.isascii() and value.isprintable() and value for _, value in request.headers)
        assert validators.contradicted(headers) is False
        assert validators.contradicted({"etag": headers.get("cache-control", "")}) in (True, False)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_reply_never_stays_fresh_for_longer_than_it_says(lifetime: int, age: int, since: int) -> None:
    found = said(cache_control=f"max-age={lifetime}", age=str(age), date=date(-since)).seconds
    assert found == max(0, lifetime - max(age, since))


@given(RUBBISH | MADE | DATES)
def test_a_date_is_a_moment_or_nothing(text: str) -> None:
    found = http_date(text)
    assert found is None or found.tzinfo is not None
    assert retry_after({"retry-after": text}, lambda: NOW) is None or text.strip()


@pytest.mark.parametrize(
    ("tag", "believed"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ('""', True),
        ('  "a"  ', True),
        ('"' + "x" * 1_024 + '"', True),
        ('"' + "x" * 1_025 + '"', False),
        ("a", False),
        ('w/"a"', False),
        ('"a" "b"', False),
        ('"a", "b"', False),
        ('"a b"', False),
        ('"é"', False),
        ("", False),
        ('"', False),
    ],
)
def test_a_tag_is_believed_when_it_is_one(tag: str, believed: bool) -> None:
    found = validators_of(200, {"etag": tag})
    assert found == (Validators(tag=tag.strip()) if believed else None)


@pytest.mark.parametrize(
    ("headers", "believed"),
    [
        ({"last-modified": date(-10), "date": date(0)}, True),
        ({"last-modified": date(-1), "date": date(0)}, True),
        ({"last-modified": date(0), "date": date(0)}, False),  # it may change again within this second
        ({"last-modified": date(10), "date": date(0)}, False),
        ({"last-modified": date(-10)}, False),
        ({"last-modified": "long ago", "date": date(0)}, False),
        ({"last-modified": date(-10), "date": "today"}, False),
    ],
)
def test_a_date_tells_versions_apart_when_it_can(headers: dict[str, str], believed: bool) -> None:
    found = validators_of(200, headers)
    assert found == (Validators(date=headers["last-modified"]) if believed else None)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"etag": '"a"', "cache-control": "no-store"}),
        (200, {"etag": '"a"', "vary": "*"}),
        (200, {"etag": '"a"', "vary": "accept, *"}),
        (206, {"etag": '"a"'}),
        (203, {"etag": '"a"'}),
        (404, {"etag": '"a"'}),
        (200, {"date": date(0)}),
    ],
)
def test_what_is_not_remembered(status: int, headers: dict[str, str]) -> None:
    assert validators_of(status, headers) is None


@pytest.mark.parametrize(
    "headers", [{"cache-control": "no-cache"}, {"cache-control": "private"}, {"vary": "accept"}]
)
def test_what_has_to_be_checked_each_time_is_remembered(headers: dict[str, str]) -> None:
    assert validators_of(200, {"etag": '"a"', **headers}) == Validators(tag='"a"')


def test_a_condition_says_both() -> None:
    request = Validators('W/"a"', date(-10)).condition(Request("/x", headers=(("Accept", "text/csv"),)))
    assert request.headers == (
        ("Accept", "text/csv"),
        ("If-None-Match", 'W/"a"'),
        ("If-Modified-Since", date(-10)),
    )
    assert Validators(date=date(-10)).condition(Request("/")).headers == (("If-Modified-Since", date(-10)),)


def test_only_a_get_without_a_condition_of_its_own_is_asked_under_one() -> None:
    assert conditional(Request("/", headers=(("Accept", "a"),)))
    assert not conditional(Request("/", method="POST", body=b"x"))
    for name in (
        "If-None-Match",
        "if-modified-since",
        "RANGE",
        "If-Match",
        "If-Range",
        "If-Unmodified-Since",
    ):
        assert not conditional(Request("/", headers=((name, "x"),)))


def test_a_304_of_another_version_is_no_confirmation() -> None:
    known = Validators(tag='"a"')
    assert known.contradicted({"etag": '"b"'})
    assert not known.contradicted({"etag": 'W/"a"'})
    assert not known.contradicted({})
    assert not known.contradicted({"etag": "a"})  # no tag at all
    assert not Validators(date=date(-10)).contradicted({"etag": '"b"'})
