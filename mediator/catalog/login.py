"""How a source is told who asks, as data. What is secret in it is named, never written; nothing here is sent.

Each is for the origin of one address, `base`, and is shown to no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from mediator.catalog.secret import Secret


@dataclass(frozen=True, slots=True)
class KeyLogin:
    """A key or a token, in a header or else in a parameter of the query."""

    base: str
    key: Secret
    header: str = ""
    query: str = ""
    prefix: str = ""  # before it, in the header or the parameter

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (self.key,)


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """A name and a password. Sites that take a key for the name want no password."""

    base: str
    user: str | Secret
    password: Secret | None = None

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return tuple(part for part in (self.user, self.password) if isinstance(part, Secret))


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """OAuth 2.0 client credentials: a token endpoint gives tokens for a client's id and its secret (RFC 6749, 4.4)."""

    base: str
    token_url: str
    client: str | Secret
    secret: Secret
    parameters: tuple[
        tuple[str, str], ...
    ] = ()  # of the request for a token: scope, audience, and what else it takes
    in_body: bool = False  # the id and the secret are parameters as well, where they are usually a header

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return tuple(part for part in (self.client, self.secret) if isinstance(part, Secret))


Login = KeyLogin | BasicLogin | ClientLogin
