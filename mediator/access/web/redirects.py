"""Redirects, one by one: where a reply may send a request, and what the request may take along.

Pure: the transport sends each hop, and asks here for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yarl import URL

from mediator.access.web.quoting import quoted, shown
from mediator.errors import Refused

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_POST_BECOMES_GET = frozenset({301, 302, 303})
# Everything else may be a credential: sites put keys into headers of their own.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent"})
# What is known of the first address says nothing of another one.
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})
ADVICE = "declare the address where the redirects end as the base"


@dataclass(frozen=True, slots=True)
class Hop:
    """One request on its way to one address."""

    url: URL
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


class Trail:
    """The hops of one request. Raises `Refused` where the next one must not be made."""

    def __init__(self, first: Hop, most: int) -> None:
        self.hop = first
        self.at_home = True  # no hop so far has left the origin of the first
        self._most = most
        self._seen = {(first.method, first.url)}

    def follow(self, status: int, locations: Sequence[str]) -> bool:
        """Whether the reply is a redirect; `hop` is then the next one."""
        if status not in _REDIRECTS or not locations:
            return False
        if len(set(locations)) > 1:
            raise Refused("it redirects to several places at once: the site has to be mended")
        before, self.hop = self.hop, _next(self.hop, status, locations[0])
        self.at_home = self.at_home and origin(before.url) == origin(self.hop.url)
        if (self.hop.method, self.hop.url) in self._seen:
            raise Refused(f"its redirects go round in a circle at {shown(self.hop.url)}: {ADVICE}")
        if len(self._seen) > self._most:
            raise Refused(f"more than {self._most} redirects: {ADVICE}")
        self._seen.add((self.hop.method, self.hop.url))
        return True


def origin(url: URL) -> tuple[str, str | None, int | None]:
    return url.scheme, url.host, url.port


def with_login_of(url: URL, other: URL) -> URL:
    """The address with the name and password of another one of the same origin."""
    if other.raw_user is None or url.raw_user is not None:
        return url
    return url.with_user(other.user).with_password(other.password)


def _next(hop: Hop, status: int, location: str) -> Hop:
    url = _target(hop.url, location)
    as_get = status in _POST_BECOMES_GET and (
        hop.method == "POST" or (status == 303 and hop.method != "HEAD")
    )
    method, body = ("GET", None) if as_get else (hop.method, hop.body)
    if origin(url) == origin(hop.url):
        dropped = _CONDITIONS | ({"content-type", "content-length"} if as_get else set())
        headers = tuple(h for h in hop.headers if h[0].lower() not in dropped)
        return Hop(with_login_of(url, hop.url), method, headers, body)
    if body is not None:
        raise Refused(
            f"it redirects what was sent to another place, {shown(url)}: if that is right, {ADVICE}"
        )
    return Hop(url, method, tuple(h for h in hop.headers if h[0].lower() in _HARMLESS))


def _target(here: URL, location: str) -> URL:
    try:
        said = URL(location.strip())
        url = here.join(said).with_fragment(None)
        known = url.host is not None and url.port is not None
    except ValueError:
        known = False
    if not known:
        raise Refused(
            f"it redirects to {quoted(location.partition('?')[0])}, not an address that can be asked: {ADVICE}"
        )
    if url.scheme != here.scheme:
        raise Refused(f"it redirects from {here.scheme} to {shown(url)}: {ADVICE}")
    if said.raw_user is not None or said.raw_password is not None:
        raise Refused(f"it redirects to {shown(url)} with a name and password of its own: {ADVICE}")
    return url
