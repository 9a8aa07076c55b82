"""How sources are told who asks: what each request carries, and what is done when that is not taken any more.

Only the transport uses this, just before it sends. So nothing above it (requests, replies, recordings) has a secret in
it, but for what a site repeats.
"""

from __future__ import annotations

from typing import Protocol

from yarl import URL

from mediator.access.web.credential import NOTHING, Credential, basic, read
from mediator.access.web.oauth import AskForToken, Tokens
from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import origin
from mediator.catalog.login import BasicLogin, ClientLogin, KeyLogin
from mediator.catalog.model import Source
from mediator.clock import Clock
from mediator.errors import Refused, SourceError

UNAUTHORIZED = 401
FORBIDDEN = 403


class Outdated(Refused):
    """A 401 to a secret or a token in whose place there is another one by now: worth one more request."""


class ActiveLogin(Protocol):
    """One source's login at work, shared by all its lookups."""

    async def credential(self) -> Credential:
        """What the next request carries. Raises a `SourceError` where there is nothing to carry."""
        ...

    def refused(self, credential: Credential) -> bool:
        """The site said 401 to it. Whether there is, or will be, another one."""
        ...


class Logins:
    """The logins of all sources, at work. Every secret that is read on the way is made known to the redaction."""

    def __init__(self, redaction: Redaction, clock: Clock, ask: AskForToken) -> None:
        self._redaction = redaction
        self._clock = clock
        self._ask = ask
        self._active: dict[str, ActiveLogin] = {}

    async def credential(self, source: Source, url: URL) -> Credential:
        """What a request to this address carries: nothing, unless the address is the source's own."""
        if source.login is None or origin(url) != origin(URL(source.login.base)):
            return NOTHING
        return await self._of(source).credential()

    def check(self, source: Source, credential: Credential, status: int) -> None:
        """Raises `Outdated` for a 401 that another credential may turn into an answer."""
        if status == UNAUTHORIZED and credential is not NOTHING and self._of(source).refused(credential):
            raise Outdated(refused_as("401 Unauthorized", status, source))

    def _of(self, source: Source) -> ActiveLogin:
        if source.name not in self._active:
            match source.login:
                case KeyLogin() | BasicLogin() as login:
                    self._active[source.name] = _Unchanging(login, self._redaction)
                case ClientLogin() as login:
                    self._active[source.name] = Tokens(login, source, self._redaction, self._clock, self._ask)
                case None:
                    raise AssertionError(f"{source.name} has no login")
        return self._active[source.name]


class _Unchanging:
    """A login that is the same for every request, until somebody changes the variable or the file."""

    def __init__(self, login: KeyLogin | BasicLogin, redaction: Redaction) -> None:
        self._login = login
        self._redaction = redaction

    async def credential(self) -> Credential:
        return self._read()

    def refused(self, credential: Credential) -> bool:
        try:
            return self._read() != credential
        except SourceError:
            return False

    def _read(self) -> Credential:
        login = self._login
        if isinstance(login, BasicLogin):
            user = read(login.user, self._redaction)
            password = read(login.password, self._redaction) if login.password else ""
            return Credential((basic(user, password, self._redaction),))
        key = read(login.key, self._redaction)
        said = login.prefix + (" " if login.prefix[-1:].isalnum() else "") + key
        if login.header:
            return Credential(headers=((login.header, said),))
        return Credential(query=((login.query, said),))


def refused_as(said: str, status: int, source: Source) -> str:
    """What a site said to a login, and where to look."""
    if status not in (UNAUTHORIZED, FORBIDDEN) or (status == FORBIDDEN and source.login is None):
        return said
    if source.login is None:
        return f"{said}: it wants to know who asks: declare 'auth' for the source {source.name}"
    places = " and ".join(map(str, source.login.secrets))
    if status == FORBIDDEN:
        return f"{said}: it knows who asks, and does not allow it: look at what {places} may do"
    return f"{said}: it does not take {places}: look there"
