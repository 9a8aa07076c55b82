"""Long replies: what has come is read while the rest is on its way.

A reply is cut after so many bytes, at the last place before where a record ends. So where it is cut depends on nothing
but what it says: another attempt at it cuts it in the same places, and goes on behind what has landed already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from mediator.access.web.body import too_large
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import Unreadable

STRETCH = 4 << 20  # bytes: a reply that is no longer is read as a whole
_LONGEST = 8  # stretches that one record may be long


@dataclass
class Landed:
    """The stretches of one reply that have been read, whichever attempts brought them."""

    count: int = 0
    rows: int = 0
    size: int = 0  # bytes
    lines: int = 0
    head: bytes = b""
    seen: blake2b = field(default_factory=lambda: blake2b(digest_size=16))

    def followed(self, stretch: bytes) -> Landed:
        """What it will be when this stretch has landed too, but for its rows. Takes some milliseconds."""
        seen = self.seen.copy()
        seen.update(stretch)
        size, lines = self.size + len(stretch), self.lines + stretch.count(b"\n")
        return Landed(self.count + 1, self.rows, size, lines, self.head, seen)

    def become(self, later: Landed, rows: int) -> None:
        self.count, self.size, self.lines, self.seen = later.count, later.size, later.lines, later.seen
        self.rows += rows

    @property
    def place(self) -> str:
        """Where it goes on behind the stretches."""
        return f"line {self.lines:,}" if self.lines else f"byte {self.size:,}"

    def check(self, digest: bytes) -> None:
        """Raises `Unreadable` unless a reply that begins so is the one that the stretches are of."""
        if digest != self.seen.digest():
            raise Unreadable(
                f"it was read as far as {self.rows:,} rows and asked for again, and begins in another way now: the"
                " rows may be of two states of the site"
            )


@dataclass(frozen=True)
class Stretches:
    """How the reply to one request is read while it comes."""

    landed: Landed
    cutter: Callable[[Mapping[str, str]], Cutter | None]
    give: Callable[[Reply, bytes], Awaitable[None]]  # a stretch as a reply, and what of it is new

    async def rest(
        self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes], cutter: Cutter, most: int
    ) -> bytes:
        """The end of the reply, when all that was before has been given; `most` is for one that can't be cut."""
        landed, buffer, window = self.landed, bytearray(), STRETCH
        chunks = _behind(chunks, landed)
        async for chunk in chunks:
            buffer += chunk
            while len(buffer) > window:
                part = bytes(buffer[:window])
                size = await asyncio.to_thread(cutter.whole, part, landed.head)
                if size is None:
                    whole = await _whole(buffer, chunks, most)
                    return cutter.reply(whole, landed.head, True)
                if not size:  # there is no record that short
                    window *= 2
                    if window > _LONGEST * STRETCH:
                        raise Unreadable(
                            f"behind {landed.place} no record ends within {len(part):,} bytes: is it"
                            " what the declaration says it is, and every quotation closed?"
                        )
                    continue
                stretch = part[:size]
                del buffer[:size]
                body = await asyncio.to_thread(cutter.reply, stretch, landed.head, False)
                await self.give(Reply(status, headers, body), stretch)
                landed.head = landed.head or cutter.head(stretch)
                window = STRETCH
        return cutter.reply(bytes(buffer), landed.head, True)


async def _whole(begun: bytearray, chunks: AsyncIterator[bytes], most: int) -> bytes:
    async for chunk in chunks:
        if len(begun) > most:
            break
        begun += chunk
    if len(begun) > most:
        raise too_large(most)
    return bytes(begun)


async def _behind(chunks: AsyncIterator[bytes], landed: Landed) -> AsyncIterator[bytes]:
    """What comes after that which has landed. Raises `Unreadable` where something else comes before it."""
    left, seen = landed.size, blake2b(digest_size=16)
    async for chunk in chunks:
        if left:
            seen.update(chunk[:left])
            chunk, left = chunk[left:], max(0, left - len(chunk))
            if not left:
                landed.check(seen.digest())
        if chunk:
            yield chunk
    if left:
        landed.check(seen.digest())
