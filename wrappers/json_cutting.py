"""Where a long JSON document may be cut in two: between the records of its list."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import orjson

_SPACE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"  # that a document may begin with
# What a document is made of, as far as it matters here. A text that does not end is one that is still on its way.
_TOKEN = re.compile(rb'("(?:[^"\\]++|\\.)*+")(\s*+:)?|[\[\]{}]|(")', re.DOTALL)
_SIGN = re.compile(rb"\s*+(\S)")

_QUOTE = 2
_SIGNS = bytes(
    {ord('"'): _QUOTE, **dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", 255)}.get(n, 0) for n in range(256)
)


@dataclass(frozen=True, slots=True)
class Records:
    """The records are objects in the list at the end of a path, of names of objects."""

    path: tuple[str, ...]

    def whole(self, part: bytes, head: bytes) -> int | None:
        start = 0
        if not head:
            opening = _opening(part, self.path)
            if not opening:
                return opening
            start = opening
        end = _last_end(part[start:])
        return start + end if end else end

    def head(self, first: bytes) -> bytes:
        return first[: _opening(first, self.path)]

    def reply(self, stretch: bytes, head: bytes, last: bool) -> bytes:
        end = b"" if last else b"]" + b"}" * len(self.path)
        if not head:
            return stretch + end
        if not last:  # what stands before the list is read once with its beginning, and once with its end
            head = b"".join(b"{%b:" % orjson.dumps(name) for name in self.path) + b"["
        records = stretch.lstrip(_SPACE)
        if records.startswith(b","):
            records = records[1:].lstrip(_SPACE)
            sound = not records.startswith(b"]")
        else:
            sound = records.startswith(b"]")
        # What is wrong behind a record is so behind any value.
        return head + (records if sound else b"0 " + stretch) + end


def _opening(text: bytes, path: tuple[str, ...]) -> int | None:
    """Where the list at the end of the path begins: 0 where that has not come yet, None where there is no list."""
    start = len(_MARK) if text.startswith(_MARK) else 0
    if (sign := _SIGN.match(text, start)) is None:
        return 0
    if sign[1] != (b"{" if path else b"["):
        return None
    if not path:
        return sign.end()
    depth = found = 0
    for token in _TOKEN.finditer(text, start):
        if token[3]:
            return 0
        if token[1] is None:
            depth += 1 if token[0] in b"[{" else -1
            if depth <= found:
                return None
        elif token[2] and depth == found + 1 and _name(token[1]) == path[found]:
            found += 1
            if (sign := _SIGN.match(text, token.end())) is None:
                return 0
            if found == len(path):
                return sign.end() if sign[1] == b"[" else None
            if sign[1] != b"{":
                return None
    return 0


def _name(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _last_end(text: bytes) -> int | None:
    """Where the last whole record ends, in a text that begins within the list: 0 where none does, and None where the
    list has ended before."""
    if b"\\" in text:  # what is escaped is no sign
        text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    signs = np.frombuffer(text.translate(_SIGNS), np.int8)
    places = np.flatnonzero(signs)
    signs = signs[places]
    quotes = signs == _QUOTE
    signs[quotes | (np.cumsum(quotes) & 1).astype(np.bool_)] = 0
    depth = np.cumsum(signs, dtype=np.int64)
    over = np.flatnonzero(depth < 0)  # there the list ends
    stop = over[0] if len(over) else len(depth)
    ends = np.flatnonzero((depth[:stop] == 0) & (signs[:stop] < 0))
    if len(ends):
        return int(places[ends[-1]]) + 1
    return None if len(over) else 0
