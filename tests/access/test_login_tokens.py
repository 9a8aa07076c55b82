"""Tokens of OAuth 2.0 by a scripted clock: one for all lookups, renewed in time, taken back, refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from login_kit import packed
from token_kit import CLIENT, Scripted, a_login, bearer, came, given_token

from mediator.access.web.oauth import Tokens
from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import Hop
from mediator.catalog.model import Source
from mediator.catalog.wrapper import Reply
from mediator.errors import Refused, SourceError

Env = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def the_secret(monkeypatch: Env) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT[1])


def numbered(count: int, **said: Any) -> list[Reply | SourceError]:
    return [given_token(f"token-{n}", **said) for n in range(count)]


class TestInTime:
    """A scripted clock."""

    async def test_one_is_used_until_shortly_before_its_end(self) -> None:
        script = Scripted(numbered(3, expires_in=600))
        tokens = script.tokens()
        for now, token in ((0, 0), (539, 0), (541, 1), (1080, 1), (1082, 2)):
            script.now = 1000.0 + now
            assert await bearer(tokens) == f"token-{token}"
        assert len(script.asked) == 3

    async def test_one_that_lives_shortly_is_renewed_after_nine_tenths(self) -> None:
        script = Scripted(numbered(2, expires_in="10"))
        tokens = script.tokens()
        for now, token in ((0, 0), (8.9, 0), (9.1, 1)):
            script.now = 1000.0 + now
            assert await bearer(tokens) == f"token-{token}"

    @pytest.mark.parametrize(
        "life", [{}, {"expires_in": 1e300}, {"expires_in": "9" * 400}, {"expires_in": None}]
    )
    async def test_one_that_says_nothing_sensible_is_renewed_after_a_day(self, life: dict[str, Any]) -> None:
        script = Scripted(numbered(2, **life))
        tokens = script.tokens()
        assert await bearer(tokens) == "token-0"
        script.now += 86_000
        assert await bearer(tokens) == "token-0"
        script.now += 400
        assert await bearer(tokens) == "token-1"

    async def test_one_that_is_over_when_it_comes_is_used_all_the_same(self) -> None:
        script = Scripted(numbered(2, expires_in=1e-9))
        tokens = script.tokens()
        assert await bearer(tokens) == "token-0"
        script.now += 1
        assert await bearer(tokens) == "token-1"

    async def test_while_it_is_renewed_the_old_one_serves(self) -> None:
        script = Scripted(numbered(2, expires_in=600))
        tokens = script.tokens()
        await bearer(tokens)
        script.now += 550
        script.wait = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(bearer(tokens))
            await asyncio.sleep(0)
            assert await bearer(tokens) == "token-0"
            assert not renewing.done()
            script.wait.set()
        assert renewing.result() == "token-1"

    async def test_where_it_cannot_be_renewed_the_old_one_serves_to_its_end(self) -> None:
        down = Reply(503, {}, b"")
        script = Scripted([given_token("token-0", expires_in=600), down, down, given_token("token-1")])
        tokens = script.tokens()
        await bearer(tokens)
        for now, asked in ((545, 2), (546, 2), (549, 2), (551, 3)):
            script.now = 1000.0 + now
            assert await bearer(tokens) == "token-0"
            assert len(script.asked) == asked, "and the endpoint is spared meanwhile"
        script.now = 1601.0
        assert await bearer(tokens) == "token-1"


async def test_the_last_tokens_are_hidden_and_those_before_them_forgotten() -> None:
    redaction = Redaction()
    script = Scripted(
        [given_token(f"{n}-of-the-tokens-given", expires_in=10) for n in (1, 2, 2, 3, 4, 5, 6, 7, 7)]
    )
    login = a_login("https://site.test", "https://login.test/token")
    tokens = Tokens(login, Source("site"), redaction, lambda: script.now, script.ask)
    for _ in range(50):
        script.now += 11
        await tokens.credential()
    assert redaction.clean(CLIENT[1]) == "***"
    # The client's secret, and what it is packed as; and five tokens.
    assert repr(redaction) == "<Redaction of 7 secrets>"


class TestTogether:
    async def test_all_that_need_one_wait_for_one(self) -> None:
        script = Scripted(numbered(5))
        tokens = script.tokens()
        found = await asyncio.gather(*(bearer(tokens) for _ in range(100)))
        assert set(found) == {"token-0"}
        assert len(script.asked) == 1

    async def test_a_failure_is_everybodys(self) -> None:
        script = Scripted([Reply(503, {}, b"")])
        tokens = script.tokens()
        found = await asyncio.gather(*(bearer(tokens) for _ in range(50)), return_exceptions=True)
        assert len(script.asked) == 1
        assert {str(error) for error in found} == {
            "its token endpoint https://login.test/token: 503 Service Unavailable"
        }
        assert len({id(error) for error in found}) == 50, "each may add to the message what it wants"
        assert all(isinstance(error, Refused) and error.again for error in found)

    async def test_who_leaves_in_the_middle_leaves_it_to_the_next(self) -> None:
        script = Scripted(numbered(5), wait=asyncio.Event())
        tokens = script.tokens()
        async with asyncio.TaskGroup() as group:
            first, *others = [group.create_task(bearer(tokens)) for _ in range(10)]
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)
            assert script.wait is not None
            script.wait.set()
        assert first.cancelled()
        assert {task.result() for task in others} == {"token-0"}
        assert len(script.asked) == 2

    @given(
        st.lists(
            st.tuples(st.sampled_from(["need", "leave", "refuse", "wait"]), st.floats(0, 200)), max_size=30
        ),
        st.lists(st.sampled_from([200, 200, 200, 401, 503]), min_size=1, max_size=10),
    )
    @settings(max_examples=150)
    def test_nobody_is_forgotten_whatever_happens(
        self, steps: list[tuple[str, float]], statuses: list[int]
    ) -> None:
        """Everybody ends, with a token or a failure; and never are two asked for at once."""

        async def run() -> None:
            script = Scripted([given_token(f"t-{n}", expires_in=300) for n in range(10)])
            inside = most = 0

            async def ask(source: Source, hop: Hop) -> Reply:
                nonlocal inside, most
                inside += 1
                most = max(most, inside)
                try:
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    status = statuses[len(script.asked) % len(statuses)]
                    reply = await script.ask(source, hop)
                    return reply if status == 200 else Reply(status, {}, b"")
                finally:
                    inside -= 1

            login = a_login("https://site.test", "https://login.test/token")
            tokens = Tokens(login, Source("site"), Redaction(), lambda: script.now, ask)
            last = None
            async with asyncio.TaskGroup() as group:
                tasks = []
                for step, seconds in steps:
                    if step == "need":
                        tasks.append(group.create_task(came(tokens)))
                    elif step == "leave" and tasks:
                        tasks[-1].cancel()
                    elif step == "refuse" and last is not None:
                        tokens.refused(last)
                    else:
                        script.now += seconds
                        await asyncio.sleep(0)
                    last = next(
                        (t.result() for t in tasks if t.done() and not t.cancelled() and t.result()), last
                    )
            assert all(task.done() for task in tasks)
            assert most <= 1

        asyncio.run(asyncio.wait_for(run(), 20))


class TestRefused:
    async def test_a_token_that_was_taken_back_is_renewed_once(self) -> None:
        script = Scripted(numbered(5))
        tokens = script.tokens()
        first = await tokens.credential()
        assert tokens.refused(first)
        assert tokens.refused(first), "for all that were under way with it there is a new one"
        second = await tokens.credential()
        assert not tokens.refused(second), "and a new one that is refused as well stays refused"
        assert await tokens.credential() is second
        assert len(script.asked) == 2
        script.now += 31
        assert tokens.refused(second)
        assert await bearer(tokens) == "token-2"

    async def test_a_client_that_is_not_known_is_left_at_that_for_a_while(self) -> None:
        unknown = Reply(401, {}, b'{"error": "invalid_client", "error_description": "s3cret/of+me"}')
        script = Scripted([unknown, given_token()])
        tokens = script.tokens()
        for _ in range(20):
            with pytest.raises(Refused) as caught:
                await tokens.credential()
        assert str(caught.value) == (
            "its token endpoint https://login.test/token: 401 Unauthorized, 'invalid_client': it gives no token for "
            "the client secret in the environment variable CLIENT_SECRET: look there, and at the other fields of 'auth'"
        )
        assert not caught.value.again
        assert len(script.asked) == 1
        script.now += 31
        assert await bearer(tokens) == "t0ken-of-the-shop"

    async def test_until_its_secret_is_changed(self, monkeypatch: Env) -> None:
        script = Scripted([Reply(401, {}, b""), given_token()])
        tokens = script.tokens()
        with pytest.raises(Refused):
            await tokens.credential()
        monkeypatch.setenv("CLIENT_SECRET", "another-secret")
        assert await bearer(tokens) == "t0ken-of-the-shop"
        assert [dict(hop.headers)["Authorization"] for hop in script.asked] == [
            packed("me", "s3cret%2Fof%2Bme"),
            packed("me", "another-secret"),
        ]

    async def test_a_secret_that_is_changed_meanwhile_is_tried_at_once(self, monkeypatch: Env) -> None:
        script = Scripted([Reply(400, {}, b""), given_token()], wait=asyncio.Event())
        tokens = script.tokens()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(bearer(tokens))
            await asyncio.sleep(0)
            monkeypatch.setenv("CLIENT_SECRET", "another-secret")
            assert script.wait is not None
            script.wait.set()
        assert task.result() == "t0ken-of-the-shop"

    async def test_a_secret_that_is_missing_is_told_without_asking(self, monkeypatch: Env) -> None:
        monkeypatch.delenv("CLIENT_SECRET")
        script = Scripted([given_token()])
        with pytest.raises(
            Refused, match="its client secret is missing: set the environment variable CLIENT_SECRET"
        ):
            await script.tokens().credential()
        assert script.asked == []
