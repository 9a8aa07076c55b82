"""Where a long text of records may be cut in two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mediator.catalog.wrapper import Reply
from wrappers.parsed import charset

# Encodings in which a byte that is a sign of ASCII is that sign, and no part of another.
_ONE_BYTE = frozenset({"", "utf-8", "utf8", "us-ascii"})
_AT_ONCE = 1 << 16  # bytes: while they are looked through, nothing else runs


@dataclass(frozen=True, slots=True)
class Lines:
    """Every line is a record."""

    def whole(self, part: bytes, head: bytes) -> int:
        return part.rfind(b"\n") + 1

    def head(self, first: bytes) -> bytes:
        return b""

    def reply(self, stretch: bytes, head: bytes, last: bool) -> bytes:
        return stretch


@dataclass(frozen=True, slots=True)
class Table:
    """Every line is a record, below one with the names; but where a value is a quotation, lines may end in it."""

    delimiter: str

    def whole(self, part: bytes, head: bytes) -> int:
        if b'"' not in part:
            return part.rfind(b"\n") + 1
        records = _records(self.delimiter, "*")
        done, width = 0, _AT_ONCE
        while done < len(part):
            end = _end(records, part, done, done + width)
            if end > done:
                done, width = end, _AT_ONCE
            elif done + width < len(part):
                width *= 2
            else:
                break
        return done

    def head(self, first: bytes) -> bytes:
        return first[: _end(_records(self.delimiter, "?"), first, 0, len(first))]

    def reply(self, stretch: bytes, head: bytes, last: bool) -> bytes:
        return head + stretch


@lru_cache
def _records(delimiter: str, many: str) -> re.Pattern[bytes]:
    """As many records as there are whole ones. A quotation begins and ends with its value, elsewhere a quote is one."""
    apart = re.escape(delimiter) + r"\r"
    quoted = rf'"[^"]*+(?:""[^"]*+)*+"(?=[{apart}\n])'
    line = rf'(?:\xef\xbb\xbf)?+(?:{quoted}|[^"{apart}\n][^{apart}\n]*+|[{apart}]++)*+\n'
    return re.compile(f"(?:{line}){many}+".encode("latin-1"))


def _end(records: re.Pattern[bytes], text: bytes, start: int, stop: int) -> int:
    found = records.match(text, start, stop)
    return start if found is None else found.end()


def in_bytes(headers: Mapping[str, str]) -> bool:
    """Whether the records of a reply with these headers can be told before it is decoded."""
    return charset(Reply(200, headers, b"")) in _ONE_BYTE
