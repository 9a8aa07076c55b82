"""Whatever a secret stands in, and however it is spelt there, it comes out without it."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mediator.access.web.redaction import MARK, Redaction
from mediator.errors import Unreadable

# What tokens, keys and passwords are made of, and more.
SECRETS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=60)
TEXTS = st.text(max_size=40)
AWKWARD = st.text(alphabet="a*%+\\/&;u41\"' =", min_size=1, max_size=20)
LONG = st.text(st.characters(min_codepoint=33, max_codepoint=0x24F), min_size=9, max_size=60)

SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in an address": quote,
    "in a parameter": lambda s: quote(s, safe=""),
    "in a form": quote_plus,
    "in small hexadecimals": lambda s: "".join(f"%{b:02x}" for b in s.encode()),
    "in JSON": lambda s: json.dumps(s)[1:-1],
    "in JSON as it is": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "in JSON in JSON": lambda s: json.dumps(json.dumps(s))[3:-3],
    "in Python": lambda s: repr(s)[1:-1],
    "in plain Python": lambda s: ascii(s)[1:-1],
    "in HTML": escape,
}


def knowing(*secrets: str) -> Redaction:
    redaction = Redaction()
    for secret in secrets:
        redaction.add(secret)
    return redaction


@given(SECRETS | AWKWARD, TEXTS | AWKWARD, TEXTS | AWKWARD)
@settings(max_examples=500)
def test_no_text_keeps_a_secret(secret: str, before: str, after: str) -> None:
    cleaned = knowing(secret).clean(before + secret + after)
    assert secret not in cleaned


@given(st.lists(SECRETS | AWKWARD, min_size=2, max_size=4), st.lists(TEXTS | AWKWARD, min_size=5, max_size=5))
@settings(max_examples=200)
def test_nor_one_of_several(secrets: list[str], texts: list[str]) -> None:
    text = "".join(text + secret for text, secret in zip(texts, secrets, strict=False))
    cleaned = knowing(*secrets).clean(text)
    assert not [secret for secret in secrets if secret in cleaned]


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=list(SPELLINGS))
@given(secret=SECRETS | AWKWARD)
@settings(max_examples=100)
def test_nor_one_that_is_spelt_otherwise(spelling: Callable[[str], str], secret: str) -> None:
    assume(secret.strip("\\"))  # one of backslashes alone is hidden where it stands as it is
    assert spelling(secret) not in knowing(secret).clean(f"<{spelling(secret)}>")


@given(before=st.text(max_size=10), secret=LONG, after=st.text(max_size=10), safe=st.booleans())
def test_nor_one_inside_of_base64(before: str, secret: str, after: str, safe: bool) -> None:
    encode = urlsafe_b64encode if safe else b64encode
    told = encode(f"{before}:{secret}{after}".encode()).decode()
    left = knowing(secret).clean(told).partition(MARK)
    assert left[1] == MARK
    # Of the characters at the edges, which also depend on what stands beside, nothing can be read.
    assert len(left[0]) <= len(encode(f"{before}:".encode())) + 1


@given(secret=LONG, cut=st.integers(8, 60))
def test_nor_a_part_of_one_that_was_cut_off(secret: str, cut: int) -> None:
    redaction = knowing(secret)
    for left in (secret[:cut], secret[-cut:]):
        assert left not in redaction.clean(f"it said {left}... and more")


def test_a_text_without_secrets_stays_as_it_is() -> None:
    redaction = knowing("s3cret-key-of-the-shop", "other")
    for text in ("", "404 Not Found", '100 % of a\\b & c+d: {"e": "\\u00e9"} &amp; %41'):
        assert redaction.clean(text) == text
        assert redaction.clean_bytes(text.encode()) == text.encode()


def test_bytes_that_are_no_text() -> None:
    redaction = knowing("s3cret-schlüssel")
    data = b"\xff\xfe" + "s3cret-schlüssel".encode() + b"\x00\xc3"
    assert redaction.clean_bytes(data) == b"\xff\xfe***\x00\xc3"
    assert redaction.clean_bytes(b"\xff\xfe") == b"\xff\xfe"


def test_an_empty_secret_is_none() -> None:
    redaction = knowing("")
    assert redaction.clean("abc") == "abc"
    assert redaction.clean_bytes(b"abc") == b"abc"


def test_what_is_too_short_to_tell_does_not_count_as_held() -> None:
    redaction = knowing("x", "a-long-secret-of-mine")
    assert not redaction.holds("http://example.test/x")
    assert redaction.holds("http://example.test/?key=a-long-secret-of-mine")
    assert redaction.holds("http://example.test/?key=a%2Dlong%2Dsecret%2Dof%2Dmine")


def test_what_is_of_no_use_any_more_is_forgotten() -> None:
    redaction = knowing("the-password-in-use", "token-number-1", "token-number-2", "token-number-2")
    redaction.forget("token-number-1")
    redaction.forget("never-known")
    assert redaction.clean("the-password-in-use, t-1-token, token-number-2!") == "***, t-1-token, ***!"
    assert repr(redaction) == "<Redaction of 2 secrets>"


def test_an_error_is_cleaned_in_all_that_it_says() -> None:
    error = Unreadable("found 's3cret-key' there", again=True, after=2.0)
    cleaned = knowing("s3cret-key").cleaned(error)
    assert (cleaned.message, str(cleaned), cleaned.again, cleaned.after) == ("found '***' there",) * 2 + (
        True,
        2.0,
    )
    assert "s3cret-key" not in repr(cleaned)


def test_a_large_text_takes_no_time_to_speak_of() -> None:
    redaction = knowing(*(f"secret-{n}-" + "y" * 1_000 for n in range(5)))
    text = "a%20b \\u00e9 " * 50_000 + "secret-3-" + "y" * 1_000
    assert redaction.clean(text).endswith(" ***")
