"""What is on a cassette, and how it is written down: YAML, a request after the other in an order that stays.

A body that is text is written as text; where it is one long line, in pieces, so that a change of one row is a change
of one line. All other bodies are base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from mediator.access.web.quoting import plain
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import MediatorError

_LONG = 100  # characters of a line that is left whole
_PIECES = re.compile(r".*?\}, ?|.+\Z", re.DOTALL)
_TEXT = re.compile(
    r"[\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)


class CassetteError(MediatorError):
    """A cassette that cannot be read or written."""


@dataclass(frozen=True, order=True, slots=True)
class Asked:
    """A request, apart from where its source happens to be. `rooted`: its path begins at the host, not at the base."""

    source: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    rooted: bool = False

    @classmethod
    def of(cls, mirror: Mirror, request: Request, bases: Iterable[str] = ()) -> Asked:
        """A link to the mirror's own base, or to one that it had when it was recorded, is a path like any other."""
        url = without_login(request.url(mirror.base))
        path, rooted = url, False
        for base in map(without_login, (mirror.base, *bases)):
            root = base.rstrip("/")
            if url == root or url.startswith(f"{root}/"):
                path, rooted = url[len(root) :] or "/", False
                break
            if urlsplit(url)[:2] == urlsplit(base)[:2]:
                path, rooted = url[len(urljoin(base, "/")) - 1 :], True
        headers = tuple(sorted((name.lower(), value) for name, value in request.headers))
        path, query, body = path.partition("?")[0], request.pairs, request.body or b""
        return cls(mirror.source, path, query, request.method, headers, body, rooted)

    def line(self) -> str:
        """For people."""
        query = "&".join(f"{name}={value}" for name, value in self.query)
        body = f" {self.body[:100].decode('utf-8', 'replace')}" if self.body else ""
        return plain(f"{self.source}: {self.method} {self.path}{'?' if query else ''}{query}{body}")


@dataclass(frozen=True)
class Exchange:
    """One request, and what was answered each time that it was made."""

    asked: Asked
    replies: tuple[Reply, ...]


@dataclass
class Cassette:
    """`bases` are the addresses that the sources had."""

    bases: dict[str, str] = field(default_factory=dict)
    exchanges: dict[Asked, list[Reply]] = field(default_factory=dict)

    def add(self, asked: Asked, reply: Reply) -> None:
        self.exchanges.setdefault(asked, []).append(reply)

    def text(self) -> str:
        document = {
            "cassette": 1,
            "bases": dict(sorted(self.bases.items())),
            "exchanges": [_exchange(asked, self.exchanges[asked]) for asked in sorted(self.exchanges)],
        }
        return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))

    def write(self, path: Path) -> None:
        """Without what the last of several replies says by itself: it is played for ever."""
        for replies in self.exchanges.values():
            while len(replies) > 1 and replies[-1] == replies[-2]:
                replies.pop()
        try:
            path.write_text(self.text(), encoding="utf-8", newline="")
        except OSError as error:
            raise CassetteError(f"{path}: cannot be written: {error.strerror}") from None

    @classmethod
    def read(cls, path: Path) -> Cassette:
        try:
            return cls.parsed(path.read_bytes().decode("utf-8"))
        except UnicodeDecodeError:
            raise CassetteError(f"{path}: not UTF-8: it is no cassette") from None
        except OSError as error:
            raise CassetteError(f"{path}: cannot be read: {error.strerror}") from None
        except CassetteError as error:
            raise CassetteError(f"{path}: {error}") from None

    @classmethod
    def parsed(cls, text: str) -> Cassette:
        try:
            said = _File.model_validate(yaml.load(text, Loader=_Loader))
        except yaml.YAMLError as error:
            raise CassetteError(f"not YAML: {plain(str(error))}: record it again") from None
        except (ValidationError, RecursionError) as error:
            what = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "too deep"}
            place = ".".join(map(str, what["loc"])) or "file"
            raise CassetteError(
                f"{place}: {what['msg']}: it is no cassette, or was changed: record it again"
            ) from None
        cassette = cls(said.bases)
        for exchange in said.exchanges:
            for reply in exchange.replies:
                cassette.add(exchange.asked(), reply.reply())
        return cassette


def without_login(url: str) -> str:
    """The address without a name and password in it."""
    scheme, there, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{there}{host.rpartition('@')[2]}{slash}{path}"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    body: str | list[str] = ""
    base64: str = ""

    def content(self) -> bytes:
        if self.base64:
            try:
                return base64.b64decode(self.base64, validate=True)
            except ValueError:
                raise CassetteError("a body is not base64: record it again") from None
        return (self.body if isinstance(self.body, str) else "".join(self.body)).encode()


class _Reply(_Body):
    status: int
    address: str = ""
    headers: dict[str, str] = {}

    def reply(self) -> Reply:
        return Reply(self.status, self.headers, self.content(), address=self.address)


class _Exchange(_Body):
    source: str
    request: str
    rooted: bool = False
    query: list[tuple[str, str]] = []
    headers: list[tuple[str, str]] = []
    replies: list[_Reply]

    def asked(self) -> Asked:
        method, _, path = self.request.partition(" ")
        request = Request(path, tuple(self.query))
        return Asked(
            self.source,
            path.partition("?")[0],
            request.pairs,
            method,
            tuple(self.headers),
            self.content(),
            self.rooted,
        )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cassette: Literal[1]
    bases: dict[str, str] = {}
    exchanges: list[_Exchange] = []


def _exchange(asked: Asked, replies: list[Reply]) -> dict[str, Any]:
    return {
        "source": asked.source,
        "request": f"{asked.method} {asked.path}",
        **({"rooted": True} if asked.rooted else {}),
        **({"query": [_Flow(pair) for pair in asked.query]} if asked.query else {}),
        **({"headers": [_Flow(pair) for pair in asked.headers]} if asked.headers else {}),
        **_written(asked.body),
        "replies": [
            {
                "status": r.status,
                **({"address": r.address} if r.address else {}),
                "headers": dict(sorted(r.headers.items())),
                **_written(r.body),
            }
            for r in replies
        ],
    }


def _written(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if not _TEXT.fullmatch(text):
        return {"base64": base64.b64encode(body).decode()}
    if "\n" not in text and len(text) > _LONG and len(pieces := _PIECES.findall(text)) > 1:
        return {"body": pieces}
    return {"body": text}


class _Flow(list[str]):
    """A list that is written in one line."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """What YAML would take for the end of a line is escaped."""
    style = '"' if not _TEXT.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _line(dumper: yaml.SafeDumper, items: _Flow) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Flow, _line)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
