"""What a declaration says under `auth`: how a source is told who asks. What is secret is named, never written."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mediator.catalog.login import BasicLogin, ClientLogin, KeyLogin, Login
from mediator.catalog.secret import Secret

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)
_OWN = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"}
)
# Names of headers and parameters that are there to show who asks.
_SECRET_NAME = re.compile(
    r"^(proxy-)?authorization$|api-?key|access-?token|auth-?token|client-?secret|(^|-)(secret|password|passwd)(-|$)"
)
_GRANT = frozenset({"grant_type", "client_id", "client_secret", "scope", "audience"})


def _named(name: str) -> str:
    if name and not _VARIABLE.fullmatch(name):
        # What stands there is not repeated: it may be the secret.
        raise ValueError(
            "the name of an environment variable goes here, not what is in it: write one like SHOP_KEY"
        )
    return name


VariableName = Annotated[str, AfterValidator(_named)]


class _Auth(BaseModel):
    # What was written may be the secret itself.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class NoAuth(_Auth):
    """Nobody is told who asks."""

    kind: Literal["none"] = "none"


class KeyAuth(_Auth):
    """A key in a header or in a parameter of the query."""

    kind: Literal["key"] = "key"
    header: str = ""
    query: str = ""
    prefix: str = ""
    key_env: VariableName = ""
    key_file: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> KeyAuth:
        if bool(self.header) == bool(self.query):
            raise ValueError(
                "a key goes to one place: give header (such as X-Api-Key) or query (such as api_key)"
            )
        if self.header and (not _HEADER.fullmatch(self.header) or self.header.lower() in _OWN):
            raise ValueError("not a header that can carry a key: write its name, such as X-Api-Key")
        if not self.prefix.isprintable():
            raise ValueError("the prefix has a line break or the like in it: write it on one line")
        _one(self, "key")
        return self


class BasicAuth(_Auth):
    """A user's name and password. A site that takes a key for the name wants no password."""

    kind: Literal["basic"] = "basic"
    user: str = ""
    user_env: VariableName = ""
    user_file: str = ""
    password_env: VariableName = ""
    password_file: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> BasicAuth:
        _one(self, "user", written=True)
        _one(self, "password", needed=not (self.user_env or self.user_file))
        if ":" in self.user or not self.user.isprintable():
            raise ValueError(
                "a user's name has no colon and no line break in it: if this is a password, name it in password_env"
            )
        return self


class BearerAuth(_Auth):
    """A token that was given out once and for all."""

    kind: Literal["bearer"] = "bearer"
    token_env: VariableName = ""
    token_file: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> BearerAuth:
        _one(self, "token")
        return self


class Oauth2Auth(_Auth):
    """Tokens that a token endpoint gives for a client's id and secret (OAuth 2.0, client credentials)."""

    kind: Literal["oauth2"] = "oauth2"
    token_url: str = Field(pattern="^https?://[^/]")
    client_id: str = ""
    client_id_env: VariableName = ""
    client_id_file: str = ""
    client_secret_env: VariableName = ""
    client_secret_file: str = ""
    scopes: tuple[str, ...] = ()
    audience: str = ""
    extra: dict[str, str] = {}  # further parameters of the request for a token
    credentials: Literal["header", "body"] = "header"  # where the id and the secret go in that request

    @model_validator(mode="after")
    def _is_whole(self) -> Oauth2Auth:
        _one(self, "client_id", written=True)
        _one(self, "client_secret")
        for name in self.extra:
            if name in _GRANT:
                raise ValueError(
                    f"{name} has a field of its own in 'auth', or is written for you: take it out of extra"
                )
            if looks_secret(name):
                raise ValueError(
                    f"{name} looks like a secret: only the client's secret can be named, in client_secret_env"
                )
        if any(not scope or not scope.isprintable() or " " in scope for scope in self.scopes):
            raise ValueError("a scope is one word: write scopes as a list of words")
        return self


AuthSpec = Annotated[NoAuth | KeyAuth | BasicAuth | BearerAuth | Oauth2Auth, Field(discriminator="kind")]


def login(spec: AuthSpec, base: str) -> Login | None:
    """What the catalog has of it."""
    match spec:
        case KeyAuth():
            return KeyLogin(base, _secret(spec, "key", "key"), spec.header, spec.query, spec.prefix)
        case BearerAuth():
            return KeyLogin(base, _secret(spec, "token", "token"), "Authorization", prefix="Bearer")
        case BasicAuth():
            user = spec.user or _secret(spec, "user", "user name")
            has_password = spec.password_env or spec.password_file
            return BasicLogin(base, user, _secret(spec, "password", "password") if has_password else None)
        case Oauth2Auth():
            said = {"scope": " ".join(spec.scopes), "audience": spec.audience, **spec.extra}
            return ClientLogin(
                base,
                spec.token_url,
                spec.client_id or _secret(spec, "client_id", "client id"),
                _secret(spec, "client_secret", "client secret"),
                tuple((name, value) for name, value in said.items() if value),
                spec.credentials == "body",
            )
        case NoAuth():
            return None


def _one(spec: _Auth, name: str, *, written: bool = False, needed: bool = True) -> None:
    """There is one place for it, or none where it is not needed. `written` may be what is no secret by itself."""
    places = [*([name] if written else []), f"{name}_env", f"{name}_file"]
    given = [place for place in places if getattr(spec, place)]
    if len(given) > 1:
        raise ValueError(f"there are two of {' and '.join(given)}: leave out one of them")
    if needed and not given:
        raise ValueError(f"{name} is missing: add {' or '.join(places)}")


def _secret(spec: _Auth, name: str, what: str) -> Secret:
    return Secret(getattr(spec, f"{name}_env"), getattr(spec, f"{name}_file"), what)


def looks_secret(name: str) -> bool:
    """Whether a header or a parameter of this name is there to show who asks."""
    return bool(_SECRET_NAME.search(name.lower().replace("_", "-")))
