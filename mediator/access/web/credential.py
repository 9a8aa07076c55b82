"""What a request carries to show who asks, and how the secrets for that are read."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

from yarl import URL

from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import Hop
from mediator.catalog.secret import Secret
from mediator.errors import Refused


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """What a request carries to show who asks. It has no `repr` that would show it."""

    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()

    def headers_of(self, hop: Hop) -> tuple[tuple[str, str], ...]:
        own = {name.lower() for name, _ in self.headers}
        return (*(h for h in hop.headers if h[0].lower() not in own), *self.headers)

    def url_of(self, hop: Hop) -> URL:
        """Links that the site gave may repeat the parameter: it is there once."""
        if any(name in hop.url.query for name, _ in self.query):
            return hop.url.update_query(self.query)
        return hop.url.extend_query(self.query) if self.query else hop.url


NOTHING = Credential()


def read(part: str | Secret, redaction: Redaction) -> str:
    """A secret that can stand in a header. Raises `Refused`, and does not say what the secret is."""
    if isinstance(part, str):
        return part
    found = part.read()
    redaction.add(found)
    if not found.isprintable():
        raise Refused(f"{part} has a line break or the like in it: write it on one line")
    return found


def basic(user: str, password: str, redaction: Redaction) -> tuple[str, str]:
    """The header of RFC 7617."""
    if ":" in user:
        raise Refused(
            "its user name has a colon in it, which no site could tell from the password's: look at 'auth'"
        )
    packed = b64encode(f"{user}:{password}".encode()).decode()
    redaction.add(packed)
    return "Authorization", f"Basic {packed}"
