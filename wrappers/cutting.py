"""Where a long text of lines may be cut in two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mediator.catalog.wrapper import Reply
from wrappers.parsed import charset

# Encodings in which a line ends where there is that byte, and nowhere else is one like it.
_ONE_BYTE = frozenset({"", "utf-8", "utf8", "us-ascii"})


@dataclass(frozen=True, slots=True)
class Lines:
    """Every line is a record, after the first where that is a `heading`. With `quotes`, none ends in one."""

    heading: bool = False
    quotes: bool = False

    def head(self, start: bytes) -> bytes:
        """The line with the names."""
        if not self.heading:
            return b""
        end = start.find(b"\n")
        while self.quotes and start.count(b'"', 0, end) % 2:
            end = start.find(b"\n", end + 1)
        return start[: end + 1]

    def whole(self, part: bytes) -> int:
        end = part.rfind(b"\n")
        inside = self.quotes and part.count(b'"', 0, max(end, 0)) % 2 == 1
        while end >= 0 and inside:
            before = part.rfind(b"\n", 0, end)
            inside ^= part.count(b'"', before + 1, end) % 2 == 1
            end = before
        return end + 1


def in_lines(headers: Mapping[str, str]) -> bool:
    """Whether the lines of a reply with these headers can be told before it is decoded."""
    return charset(Reply(200, headers, b"")) in _ONE_BYTE
