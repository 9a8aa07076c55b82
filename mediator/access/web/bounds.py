"""How much of one reply is taken in before its site is not believed any more."""

from __future__ import annotations

from dataclasses import dataclass

BODY = 32 << 20
LONG_BODY = 1 << 30
RATIO = 250  # text packs 10 to 50 times smaller, a bomb a thousand times
RATIO_FROM = 4 << 20  # what unpacks to less than this harms nobody, however well it was packed


@dataclass(frozen=True, slots=True)
class Bounds:
    """Held while a reply is read. Past any of them the request fails for good: the site would do it again."""

    body: int = BODY  # bytes, as they come and unpacked; a source may say otherwise
    long_body: int = LONG_BODY  # of one that is read stretch by stretch
    ratio: int = RATIO  # bytes unpacked for one that came
    headers: int = 128
    header_line: int = 8_190  # bytes of one header, or of the status line
    header_bytes: int = 64 << 10  # of all headers together
    redirects: int = 5
