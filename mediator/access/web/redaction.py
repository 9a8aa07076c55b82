"""Secrets are blotted out of whatever is shown: messages, logs, recordings.

`Redaction` is told every secret when it is read (`add`), and takes them out of texts and bytes (`clean`,
`clean_bytes`), also where they are percent-encoded, escaped as in JSON, Python or HTML, or inside of base64, and where
only a part of one is left because somebody has shortened the text.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from typing import Protocol, runtime_checkable

from mediator.errors import SourceError

MARK = "***"

_PIECE = 8  # characters of a secret that are told apart from ordinary words; all of it where it is shorter
_PIECES = 16  # of one secret that are looked for, about
_SHORTEST_BASE64 = 6  # characters; fewer could be part of any word
_ESCAPED = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|\\+u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\+u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|\\+(?:u(?P<four>[0-9A-Fa-f]{4})|x(?P<two>[0-9A-Fa-f]{2})|U(?P<eight>00[01][0-9A-Fa-f]{5}))"
    r"|\\+"
    r"|(?P<entity>&#?\w{1,8};)"
)
_Span = tuple[int, int]


class Redaction:
    """Knows the secrets that have been read so far, and nothing of where they came from."""

    def __init__(self) -> None:
        self._secrets: dict[str, tuple[_Form, ...]] = {}

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._secrets)} secrets>"

    def add(self, secret: str) -> None:
        """From now on nobody is to see it. An empty one is none."""
        if not secret:
            return
        if secret not in self._secrets:
            self._secrets[secret] = tuple(map(_Form, _spellings(secret)))

    def forget(self, secret: str) -> None:
        """It is of no use to anybody any more."""
        self._secrets.pop(secret, None)

    def holds(self, text: str) -> bool:
        """Whether a secret, or a part of one, stands in the text. Those that are too short to tell do not count."""
        return any(True for _ in self._spans(text, _PIECE))

    def clean(self, text: str) -> str:
        """The text with every secret in it blotted out."""
        mark = MARK
        while spans := sorted(self._spans(text, 1)):
            text = _blotted(text, spans, mark)
            mark = ""  # should the mark and its neighbours be a secret once more
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """The same for what is not known to be text: a body, a line of a recording."""
        if not self._secrets:
            return data
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self.clean(text)
        return data if cleaned == text else cleaned.encode("utf-8", "surrogateescape")

    def cleaned(self, error: SourceError) -> SourceError:
        """The error, with no secret in what it says."""
        error.message = self.clean(error.message)
        error.args = (error.message,)
        return error

    def _spans(self, text: str, shortest: int) -> Iterator[_Span]:
        forms = [
            form for found in tuple(self._secrets.values()) for form in found if len(form.raw) >= shortest
        ]
        for form in forms:
            yield from _found(text, form.raw)
        if not forms:
            return
        there = _Unescaped(text)
        for form in forms:
            for plain in form.plain:
                for start, end in _found(there.plain, plain):
                    yield there(start), there(end)


@runtime_checkable
class Redacts(Protocol):
    """A transport that logs in, and so knows secrets; its recordings and its errors are cleaned with this."""

    @property
    def redaction(self) -> Redaction: ...


class _Form:
    """One spelling of a secret: as it is, and as it is found in a text without escapes.

    What looks like an escape in a secret may be one, or may have been escaped itself.
    """

    __slots__ = ("plain", "raw")

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.plain = {_Unescaped(raw).plain, raw.replace("\\", "").replace("+", " ")}


def _spellings(secret: str) -> Iterator[str]:
    """The secret, and what base64 makes of it wherever it stands in what is encoded."""
    yield secret
    data = secret.encode("utf-8", "surrogateescape")
    found: dict[str, None] = {}
    for before in range(3):
        first = -(-before * 8 // 6)  # characters that also depend on what stands before
        last = (before + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            found[encode(bytes(before) + data).decode()[first:last]] = None
    yield from (text for text in found if len(text) >= _SHORTEST_BASE64)


def _found(text: str, secret: str) -> Iterator[_Span]:
    """Where the secret stands in the text, or a part of it that is long enough.

    Some of its pieces are looked for, the first and the last among them, one of which is left where a text was cut off.
    """
    if not secret:
        return
    size = min(_PIECE, len(secret))
    step = max(size, len(secret) // _PIECES)
    for offset in sorted({*range(0, len(secret) - size + 1, step), len(secret) - size}):
        piece = secret[offset : offset + size]
        at = text.find(piece)
        while at >= 0:
            start, end = at, at + size
            left, right = offset, offset + size
            while left > 0 and start > 0 and text[start - 1] == secret[left - 1]:
                start, left = start - 1, left - 1
            while right < len(secret) and end < len(text) and text[end] == secret[right]:
                end, right = end + 1, right + 1
            yield start, end
            at = text.find(piece, max(end - size + 1, at + 1))


def _blotted(text: str, spans: list[_Span], mark: str) -> str:
    """The text with the mark in place of each span; those that touch or overlap are one."""
    parts: list[str] = []
    done, begun = 0, False
    for start, end in spans:
        if not begun or start > done:
            parts += [text[done:start], mark]
        done, begun = max(done, end), True
    return "".join([*parts, text[done:]])


class _Unescaped:
    """A text without its escapes, which knows where in the text each of its characters is written."""

    def __init__(self, text: str) -> None:
        self._pieces: list[str] = []
        self._at = [0]  # where a stretch begins in which a character here is one there
        self._there = [0]
        done = 0
        for match in _ESCAPED.finditer(text):
            self._keep(text[done : match.start()])
            for character, width in _meant(match):
                self._keep(character, width)
            done = match.end()
        self._keep(text[done:])
        # In an address, either means the other.
        self.plain = "".join(self._pieces).replace("+", " ")

    def __call__(self, position: int) -> int:
        stretch = bisect_right(self._at, position) - 1
        return self._there[stretch] + position - self._at[stretch]

    def _keep(self, piece: str, width: int | None = None) -> None:
        """A backslash is none even where it is meant: who escapes it twice, or once, must not make a difference."""
        width = len(piece) if width is None else width
        piece = "" if piece == "\\" else piece
        self._pieces.append(piece)
        self._at.append(self._at[-1] + len(piece))
        self._there.append(self._there[-1] + width)


def _meant(escape: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The characters that an escape stands for, and how wide each is where it is written."""
    whole, parts = escape[0], escape.groupdict()
    if parts["percent"]:
        characters = bytes.fromhex(whole.replace("%", "")).decode("utf-8", "surrogateescape")
        yield from ((c, 3 * len(c.encode("utf-8", "surrogateescape"))) for c in characters)
    elif parts["high"]:
        high, low = int(parts["high"], 16) - 0xD800, int(parts["low"], 16) - 0xDC00
        yield chr(0x10000 + (high << 10) + low), len(whole)
    elif code := parts["four"] or parts["two"] or parts["eight"]:
        yield chr(min(int(code, 16), 0x10FFFF)), len(whole)
    else:
        yield unescape(whole) if parts["entity"] else "", len(whole)
