"""Where a document says that its site is."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sources.openapi.reading import Document
from sources.openapi.words import one_line

UNKNOWN = "https://site.example"
_VARIABLE = re.compile(r"\{([^{}]*)\}")


@dataclass
class Server:
    base: str
    notes: list[str] = field(default_factory=list)


def server_of(document: Document, servers: Any = None, wanted: str = "") -> Server:
    """The address that paths are added to: `wanted`, or the first usable one of `servers`, or of the document."""
    if wanted:
        return Server(wanted.rstrip("/"))
    if servers is None:
        servers = _old(document) if document.old else document.content.get("servers")
    found, relative = [], ""
    for server in servers[:50] if isinstance(servers, list) else ():
        url = _filled(server)
        if usable(url):
            found.append(url.rstrip("/"))
        elif url.startswith("/") and not url.startswith("//") and usable(UNKNOWN + url):
            relative = relative or url.rstrip("/")
    if not found:
        return Server(UNKNOWN + relative, ["the document does not say which host this is: write its address"])
    notes = [f"also at {', '.join(one_line(u, 60) for u in found[1:4])}"] if len(found) > 1 else []
    if is_private(found[0]):
        notes.append("this is a private address: if that is meant, add allow_private: true")
    return Server(found[0], notes)


def usable(url: str) -> bool:
    """Whether this is the address of a web site, and nothing more: no name, no password, no query."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
        and port != 0
        and url.isprintable()
        and not set(' {}$<>"\\') & set(url)
        and len(url) < 500
    )


def is_private(url: str) -> bool:
    """Whether an address is one that is refused unless a source allows it, as far as its spelling tells."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def _filled(server: Any) -> str:
    """The address of a server, with its variables as they are by default."""
    if not isinstance(server, dict) or not isinstance(url := server.get("url"), str):
        return ""
    variables = server.get("variables")

    def default(match: re.Match[str]) -> str:
        said = variables.get(match[1]) if isinstance(variables, dict) else None
        value = said.get("default") if isinstance(said, dict) else None
        return str(value) if isinstance(value, str | int) else match[0]

    return _VARIABLE.sub(default, url)


def _old(document: Document) -> list[dict[str, str]]:
    """Swagger 2.0 says it in three parts."""
    host, base = (str(document.content.get(part) or "") for part in ("host", "basePath"))
    schemes = document.content.get("schemes")
    scheme = "http" if isinstance(schemes, list) and schemes and "https" not in schemes else "https"
    return [{"url": f"{scheme}://{host}{base}" if host else base or "/"}]
