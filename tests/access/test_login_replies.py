"""What a token endpoint says is not believed."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_kit import CLIENT, Scripted, came, given_token

from mediator.catalog.wrapper import Reply
from mediator.errors import RateLimited, Refused, SourceError, TimedOut, Unreachable, Unreadable

Env = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def the_secret(monkeypatch: Env) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT[1])


NOT_BELIEVED: dict[str, tuple[Reply, str]] = {
    "no JSON": (Reply(200, {}, b"<html>hello</html>"), "its reply is no JSON object: look at 'token_url'"),
    "not UTF-8": (Reply(200, {}, b"\xff"), "no JSON object"),
    "a list": (Reply(200, {}, b'["access_token"]'), "no JSON object"),
    "nothing": (Reply(200, {}, b""), "no JSON object"),
    "NaN": (Reply(200, {}, b'{"access_token": "t", "expires_in": NaN}'), "no JSON object"),
    "deep": (Reply(200, {}, b"[" * 200_000), "no JSON object"),
    "no token": (Reply(200, {}, b'{"token_type": "bearer"}'), "no access_token that could be sent"),
    "an empty token": (given_token(""), "no access_token that could be sent"),
    "a token that is a number": (Reply(200, {}, b'{"access_token": 17}'), "no access_token"),
    "a token with a line break": (given_token("a\r\nX-Other: b"), "no access_token"),
    "a token with a space": (given_token("a b"), "no access_token"),
    "a token that is not ASCII": (given_token("tökén"), "no access_token"),
    "a long token": (given_token("t" * 20_000), "no access_token"),
    "a large reply": (given_token(beside="x" * 300_000), "its reply is larger than 262,144 bytes"),
    "another type": (
        given_token(token_type="mac"),
        "its tokens are of type 'mac': only bearer tokens can be used",
    ),
    "a type that is none": (given_token(token_type=[1]), "only bearer tokens can be used"),
    "a negative life": (given_token(expires_in=-5), "its token lives for expires_in = '-5'"),
    "no life": (given_token(expires_in=0), "its token lives for expires_in = '0'"),
    "a life of words": (given_token(expires_in="soon"), "its token lives for expires_in = 'soon'"),
    "a life that is no number": (given_token(expires_in={"s": 1}), "expires_in ="),
    "a life that is NaN": (given_token(expires_in="nan"), "expires_in ="),
    "a life that is true": (given_token(expires_in=True), "expires_in ="),
    "a redirect": (Reply(302, {"location": "http://elsewhere.test"}, b""), "it has moved: declare the place"),
    "not there": (Reply(404, {}, b""), "404 Not Found: look at 'token_url'"),
    "a strange status": (Reply(299 + 500, {}, b""), "799: look at 'token_url'"),
    "an error of another shape": (
        Reply(400, {}, b'{"error": {"a": 1}}'),
        "400 Bad Request: it gives no token",
    ),
    "a long error": (
        Reply(400, {}, json.dumps({"error": "e" * 5_000}).encode()),
        "eeee...': it gives no token",
    ),
}


@pytest.mark.parametrize("name", NOT_BELIEVED)
async def test_what_an_endpoint_says_is_not_believed(name: str) -> None:
    reply, said = NOT_BELIEVED[name]
    with pytest.raises(SourceError) as caught:
        await Scripted([reply]).tokens().credential()
    assert isinstance(caught.value, Refused | Unreadable)
    assert not caught.value.again
    assert caught.value.message.startswith("its token endpoint https://login.test/token: ")
    assert said in caught.value.message
    assert len(caught.value.message) < 500


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda d: json.dumps(d).encode(),
        st.dictionaries(
            st.sampled_from(["access_token", "token_type", "expires_in", "x"]),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
                lambda inner: st.lists(inner, max_size=3),
                max_leaves=5,
            ),
        ),
    )
)
@settings(max_examples=200)
def test_whatever_it_says_there_is_a_token_or_a_failure(body: bytes) -> None:
    script = Scripted([Reply(200, {}, body)])

    async def run() -> None:
        credential = await came(script.tokens())
        for _, token in credential.headers if credential is not None else ():
            assert token.startswith("Bearer ")
            assert token.isascii()
            assert token.isprintable()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("came", "kind"),
    [
        (Reply(429, {}, b""), RateLimited),
        (Reply(500, {}, b""), Refused),
        (Unreachable("the reply was cut off", again=True), Unreachable),
    ],
)
async def test_what_may_pass_may_be_tried_again(came: Reply | SourceError, kind: type[SourceError]) -> None:
    with pytest.raises(kind) as caught:
        await Scripted([came]).tokens().credential()
    assert caught.value.again


async def test_an_endpoint_that_hangs_is_named() -> None:
    tokens = Scripted([given_token()], wait=asyncio.Event()).tokens(deadline=0.04)
    with pytest.raises(
        TimedOut, match=r"its token endpoint https://login\.test/token: no reply within 0\.01 s"
    ):
        await tokens.credential()
