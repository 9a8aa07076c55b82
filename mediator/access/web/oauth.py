"""Tokens of OAuth 2.0 client credentials (RFC 6749, 4.4): one at a time for each source, shared by all its lookups."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode

import orjson
from yarl import URL

from mediator.access.web.credential import Credential, basic, read
from mediator.access.web.quoting import quoted, shown
from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import Hop
from mediator.catalog.login import ClientLogin
from mediator.catalog.model import Source
from mediator.catalog.wrapper import Reply
from mediator.clock import Clock
from mediator.errors import RateLimited, Refused, SourceError, TimedOut, Unreadable

_EARLY = 60.0  # seconds before its end that a token is renewed, or a tenth of its life if that is less
_LONGEST_LIFE = 86_400.0  # seconds that a token is believed to live
_PATIENCE = 10.0  # seconds for one token, or a quarter of the source's deadline if that is less
_PAUSE = 30.0  # seconds before one that was refused is asked for again; or a client that was
_SOON = 5.0  # seconds before a renewal that failed is tried again, while the old token lives
_HIDDEN = 5  # tokens
_LONGEST_TOKEN = 16 << 10  # characters
_LONGEST_REPLY = 256 << 10  # bytes
_REFUSED = frozenset({400, 401, 403})  # statuses by which an endpoint does not know the client
_LATER = frozenset({408, 425, 500, 502, 503, 504})

# Sends one request to a token endpoint, for a source.
AskForToken = Callable[[Source, Hop], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    credential: Credential
    renewed_at: float
    ends_at: float


@dataclass(frozen=True, slots=True, repr=False)
class _Client:
    """The client's id and secret, as they were read."""

    id: str
    secret: str


class Tokens:
    """One source's login at work. Whoever needs a token while one is being fetched waits for that one."""

    def __init__(
        self, login: ClientLogin, source: Source, redaction: Redaction, clock: Clock, ask: AskForToken
    ) -> None:
        self._login = login
        self._source = source
        self._redaction = redaction
        self._clock = clock
        self._ask = ask
        self._lock = asyncio.Lock()
        self._token: _Token | None = None
        self._failure: SourceError | None = None  # of the last fetch
        # Who was not known to the endpoint, and until when it is left at that.
        self._refused: tuple[_Client, float] | None = None
        self._given: deque[str] = deque()  # the last tokens
        self._fetched = 0  # times that it was tried to the end
        self._renewable_from = float("-inf")
        self._early_from = float("-inf")

    async def credential(self) -> Credential:
        token, now = self._token, self._clock()
        if token is not None and now < token.renewed_at:
            return token.credential
        if token is not None and now < token.ends_at and (self._lock.locked() or now < self._early_from):
            return token.credential
        while True:
            before = self._fetched
            async with self._lock:
                # Cancelled on the way, a fetch is no fetch: the next in the line does it.
                if self._fetched == before:
                    await self._fetch()
            if self._failure is None and self._token is not None:
                return self._token.credential
            if self._token is not None and self._clock() < self._token.ends_at:
                return self._token.credential
            if (failure := self._failure) is not None:
                raise type(failure)(failure.message, again=failure.again, after=failure.after)

    def refused(self, credential: Credential) -> bool:
        """A token may be taken back before its end. But a site that takes none does not cost one for each lookup."""
        if self._token is not None and self._token.credential is credential:
            now = self._clock()
            if now < self._renewable_from:
                return False
            self._renewable_from = now + _PAUSE
            self._token = None
        return True

    async def _fetch(self) -> None:
        """Leaves a new token, or the failure; the old one stays."""
        try:
            client = self._client()
            if self._refused is not None and self._refused[0] == client and self._clock() < self._refused[1]:
                return
            self._refused = None
            self._token = await self._known(client)
            self._failure = None
        except SourceError as error:
            self._failure = error
            self._early_from = self._clock() + _SOON
        self._fetched += 1

    async def _known(self, client: _Client) -> _Token:
        """A token for the client, or for the one that has been put in its place meanwhile."""
        try:
            return await self._asked(client)
        except _NotKnown as error:
            changed, failure = self._client(), error
        if changed != client:
            return await self._known(changed)
        self._refused = client, self._clock() + _PAUSE
        raise failure

    def _client(self) -> _Client:
        return _Client(*(read(part, self._redaction) for part in (self._login.client, self._login.secret)))

    async def _asked(self, client: _Client) -> _Token:
        began = self._clock()
        where = f"its token endpoint {shown(URL(self._login.token_url))}"
        patience = min(_PATIENCE, self._source.deadline / 4)
        try:
            async with asyncio.timeout(patience):
                reply = await self._ask(self._source, self._hop(client))
            return self._token_of(reply, began)
        except TimeoutError:
            failure: SourceError = TimedOut(f"{where}: no reply within {patience:.3g} s", again=True)
        except SourceError as error:
            failure = type(error)(f"{where}: {error.message}", again=error.again, after=error.after)
        raise failure

    def _hop(self, client: _Client) -> Hop:
        parameters = [("grant_type", "client_credentials"), *self._login.parameters]
        headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
        if self._login.in_body:
            parameters += [("client_id", client.id), ("client_secret", client.secret)]
        else:
            headers.append(basic(quote_plus(client.id), quote_plus(client.secret), self._redaction))
        return Hop(URL(self._login.token_url), "POST", tuple(headers), urlencode(parameters).encode())

    def _token_of(self, reply: Reply, began: float) -> _Token:
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        if len(reply.body) > _LONGEST_REPLY:
            raise Unreadable(f"its reply is larger than {_LONGEST_REPLY:,} bytes: look at 'token_url'")
        if (said := _object(reply.body)) is None:
            raise Unreadable("its reply is no JSON object: look at 'token_url'")
        token, type_ = said.get("access_token"), said.get("token_type", "bearer")
        if isinstance(token, str):
            self._hide(token)
        if not (
            isinstance(token, str)
            and 0 < len(token) <= _LONGEST_TOKEN
            and token.isascii()
            and _printable(token)
        ):
            raise Unreadable("its reply has no access_token that could be sent: look at 'token_url'")
        if not (isinstance(type_, str) and type_.lower() == "bearer"):
            raise Unreadable(f"its tokens are of type {quoted(str(type_))}: only bearer tokens can be used")
        life = _life(said.get("expires_in"))
        return _Token(
            Credential((("Authorization", f"Bearer {token}"),)),
            began + life - min(_EARLY, life / 10),
            began + life,
        )

    def _hide(self, token: str) -> None:
        """Of tokens, which come anew for as long as the process lives, only the last may still be shown somewhere."""
        if token in self._given:
            self._given.remove(token)
        elif len(self._given) == _HIDDEN:
            self._redaction.forget(self._given.popleft())
        self._given.append(token)
        self._redaction.add(token)

    def _refusal(self, reply: Reply) -> SourceError:
        phrase = HTTPStatus(reply.status).phrase if reply.status in HTTPStatus._value2member_map_ else ""
        said = f"{reply.status} {phrase}".rstrip()
        if reply.status == HTTPStatus.TOO_MANY_REQUESTS:
            return RateLimited(said, again=True)
        if reply.status in _LATER:
            return Refused(said, again=True)
        if 300 <= reply.status < 400:
            return Refused(f"{said}: it has moved: declare the place where it is now as 'token_url'")
        error = (_object(reply.body) or {}).get("error")
        said += f", {quoted(error)}" if isinstance(error, str) else ""
        if reply.status in _REFUSED:
            places = " and ".join(map(str, self._login.secrets))
            return _NotKnown(
                f"{said}: it gives no token for {places}: look there, and at the other fields of 'auth'"
            )
        return Refused(f"{said}: look at 'token_url'")


class _NotKnown(Refused):
    """The endpoint does not give tokens to this client. To another it might."""


def _object(body: bytes) -> Mapping[str, object] | None:
    try:
        said = orjson.loads(body)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _printable(token: str) -> bool:
    return token.isprintable() and " " not in token


def _life(said: object) -> float:
    """Seconds that a token lives; a long time where nothing is said, for a 401 will tell."""
    if said is None:
        return _LONGEST_LIFE
    try:
        seconds = float(said) if isinstance(said, int | float | str) and not isinstance(said, bool) else -1.0
    except (ValueError, OverflowError):
        seconds = -1.0
    if not seconds > 0:
        raise Unreadable(
            f"its token lives for expires_in = {quoted(str(said))}: the endpoint has to be mended"
        )
    return min(seconds, _LONGEST_LIFE)
