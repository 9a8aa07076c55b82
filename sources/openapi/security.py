"""Security schemes: from what a document asks of its visitors to `auth` of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sources.openapi.reading import Document, Unclear
from sources.openapi.words import one_line


@dataclass
class Auth:
    said: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def auth_of(document: Document, source: str) -> Auth:
    """The login of a source, by the first scheme that can be declared. Secrets are named, never written."""
    schemes = (
        document.part("securityDefinitions")
        if document.old
        else document.part("components", "securitySchemes")
    )
    wanted = _wanted(document.content.get("security"))
    names = [n for n in wanted if n in schemes] or list(schemes)
    prefix = source.upper()
    refused: list[str] = []
    for name in names[:20]:
        try:
            said = _auth(document.meant(schemes[name]), prefix)
        except Unclear as unclear:
            refused.append(f"{one_line(name, 30)}: {unclear}")
            continue
        others = [one_line(n, 30) for n in names if n != name]
        notes = [f"other ways to log in: {', '.join(others[:5])}"] if others else []
        return Auth(said, notes)
    return Auth(
        {}, [f"it asks for a login that cannot be declared ({'; '.join(refused[:3])})"] if refused else []
    )


def _wanted(security: Any) -> list[str]:
    """The schemes that are asked for everywhere, in their order."""
    return (
        [n for entry in security if isinstance(entry, dict) for n in entry]
        if isinstance(security, list)
        else []
    )


def _auth(scheme: dict[str, Any], prefix: str) -> dict[str, Any]:
    kind, name, place = (str(scheme.get(part) or "") for part in ("type", "name", "in"))
    form = "basic" if kind == "basic" else str(scheme.get("scheme") or "").lower()
    if kind == "apiKey" and name and place in ("header", "query"):
        return {
            "kind": "key",
            "header" if place == "header" else "query": name,
            "key_env": f"{prefix}_API_KEY",
        }
    if kind in ("http", "basic") and form == "basic":
        return {"kind": "basic", "user_env": f"{prefix}_USER", "password_env": f"{prefix}_PASSWORD"}
    if kind == "http" and form == "bearer":
        return {"kind": "bearer", "token_env": f"{prefix}_TOKEN"}
    if kind == "oauth2":
        return _oauth2(scheme, prefix)
    raise Unclear(f"{one_line(kind or 'no type', 20)} {one_line(form or place, 20)}".strip())


def _oauth2(scheme: dict[str, Any], prefix: str) -> dict[str, Any]:
    flows = scheme.get("flows")
    flow = flows.get("clientCredentials") if isinstance(flows, dict) else None
    if scheme.get("flow") == "application":
        flow = scheme
    if not isinstance(flow, dict) or not str(flow.get("tokenUrl") or "").startswith("https://"):
        # A person would have to log in. What comes of that is a token.
        return {"kind": "bearer", "token_env": f"{prefix}_TOKEN"}
    return {
        "kind": "oauth2",
        "token_url": str(flow["tokenUrl"]),
        "client_id_env": f"{prefix}_CLIENT_ID",
        "client_secret_env": f"{prefix}_CLIENT_SECRET",
    }
