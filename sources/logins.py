"""Checks that no secret is written in a declaration, and that the login of a source is shown to nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from sources.auth import KeyAuth, NoAuth, Oauth2Auth, looks_secret
from sources.complaint import Complaint, Where
from sources.declaration import MethodSpec, SourceSpec

_PLACE = re.compile(r"\{\w+\}")
_SCHEMES = ("http://", "https://")


def check_source(spec: SourceSpec, where: Where) -> None:
    """For web sites; what a database needs is checked with its table."""
    if not spec.base.startswith(_SCHEMES):
        if not isinstance(spec.auth, NoAuth):
            raise Complaint(
                (*where, "auth"), "only a web site takes it: a database's password goes in password_env"
            )
        return
    _check_address(spec.base, (*where, "base"))
    if isinstance(spec.auth, NoAuth):
        return
    if not spec.allow_private and not spec.base.startswith("https://"):
        raise Complaint(
            (*where, "base"),
            "with http, anybody on the way could read the secret that 'auth' sends: write https",
        )
    if isinstance(spec.auth, Oauth2Auth):
        _check_address(spec.auth.token_url, (*where, "auth", "token_url"))
        if not spec.allow_private and not spec.auth.token_url.startswith("https://"):
            raise Complaint(
                (*where, "auth", "token_url"),
                "with http, anybody on the way could read the secret: write https",
            )


def check_method(method: MethodSpec, sites: Mapping[str, SourceSpec], where: Where) -> None:
    """What shows who asks is said once, for the source, and only there."""
    request, inside = method.request, (*where, "request")
    for part, name, text in _said(method):
        if looks_secret(name) and not _PLACE.search(text):
            raise Complaint(
                (*inside, part),
                f"{name!r} would have a secret written in it: take it out, and declare {_instead(part, name)}",
            )
    for mirror in method.mirrors:
        header, parameter = _filled(sites[mirror])
        for name in request.headers:
            if name.lower() == header:
                raise Complaint(
                    (*inside, "headers"), f"{name!r} is filled by the auth of {mirror!r}: take it out"
                )
        turned = [getattr(method.pages, part, "") for part in ("param", "offset", "limit")]
        for part, names in (("request", request.query), ("pages", turned)):
            if parameter and parameter in names:
                raise Complaint(
                    (*where, part), f"{parameter!r} is filled by the auth of {mirror!r}: take it out"
                )


def _check_address(url: str, where: Where) -> None:
    try:
        parts = urlsplit(url)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        port_is_one = False
    if not port_is_one:
        raise Complaint(where, "not an address: write one like https://site.example/path")
    if "@" in parts.netloc:
        raise Complaint(
            where,
            "a name or a password is written here: take it out, and declare auth: {kind: basic, user: ..., "
            "password_env: ...}",
        )
    for name in (pair.partition("=")[0] for pair in parts.query.split("&")):
        if looks_secret(name):
            raise Complaint(
                where, f"{name!r} has a secret in it: take it out, and declare {_instead('query', name)}"
            )


def _said(method: MethodSpec) -> Iterator[tuple[str, str, str]]:
    """Every text of a request, with the part that it stands in and its name."""
    request = method.request
    for part, texts in (("headers", request.headers), ("query", request.query), ("form", request.form)):
        yield from ((part, name, text) for name, text in texts.items() if text)
    yield from (("json", name, text) for name, text in _texts("", request.json_body))


def _texts(name: str, part: Any) -> Iterator[tuple[str, str]]:
    if isinstance(part, str) and part:
        yield name, part
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from _texts(key, value)
    elif isinstance(part, list):
        for value in part:
            yield from _texts(name, value)


def _instead(part: str, name: str) -> str:
    if name.lower() == "authorization":
        return "auth: {kind: bearer, token_env: ...} for the source, or kind: basic"
    if part in ("headers", "query"):
        place = "header" if part == "headers" else "query"
        return f"auth: {{kind: key, {place}: {name}, key_env: ...}} for the source"
    return "auth for the source"


def _filled(site: SourceSpec) -> tuple[str, str]:
    """The header, in small letters, and the parameter that the source's auth fills."""
    if isinstance(site.auth, KeyAuth):
        return site.auth.header.lower(), site.auth.query
    return ("", "") if isinstance(site.auth, NoAuth) else ("authorization", "")
