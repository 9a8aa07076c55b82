"""What the tests of tokens share: a token endpoint without sockets, and a clock that is told the time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from mediator.access.web.credential import Credential
from mediator.access.web.oauth import Tokens
from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import Hop
from mediator.catalog.login import ClientLogin
from mediator.catalog.model import Source
from mediator.catalog.secret import Secret
from mediator.catalog.wrapper import Reply
from mediator.errors import SourceError

SECRET = Secret("CLIENT_SECRET", what="client secret")
CLIENT = ("me", "s3cret/of+me")


def a_login(base: str, url: str, **said: Any) -> ClientLogin:
    return ClientLogin(base, url, "me", SECRET, **said)


def given_token(token: str = "t0ken-of-the-shop", **said: Any) -> Reply:
    return Reply(200, {}, json.dumps({"access_token": token, "token_type": "bearer", **said}).encode())


@dataclass
class Scripted:
    """An endpoint without sockets, and a clock. The last of the replies is given for ever."""

    replies: list[Reply | SourceError]
    now: float = 1000.0
    asked: list[Hop] = field(default_factory=list)
    wait: asyncio.Event | None = None

    async def ask(self, source: Source, hop: Hop) -> Reply:
        self.asked.append(hop)
        if self.wait is not None:
            await self.wait.wait()
        await asyncio.sleep(0)
        came = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(came, SourceError):
            raise came
        return came

    def tokens(self, deadline: float = 30.0) -> Tokens:
        source = Source("site", deadline=deadline)
        login = a_login("https://site.test", "https://login.test/token")
        return Tokens(login, source, Redaction(), lambda: self.now, self.ask)


async def bearer(tokens: Tokens) -> str:
    ((name, value),) = (await tokens.credential()).headers
    assert name == "Authorization"
    return value.removeprefix("Bearer ")


async def came(tokens: Tokens) -> Credential | None:
    try:
        return await tokens.credential()
    except SourceError:
        return None
