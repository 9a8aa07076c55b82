"""Reading a reply to its end, but never more of it than is allowed, packed or unpacked."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Protocol

from mediator.errors import Unreachable, Unreadable

CHUNK = 1 << 16
_UNPACKED_AT_ONCE = 1 << 20  # a millisecond or two of unpacking: the loop breathes between two of them
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
ACCEPTED = "gzip, deflate"


class Content(Protocol):
    """Bytes as they come off the wire."""

    def iter_chunked(self, n: int, /) -> AsyncIterator[bytes]: ...


async def read_body(content: Content, encoding: str, most: int) -> bytes:
    """The whole body, unpacked. Raises `Unreadable` past `most` bytes, and for an unknown packing."""
    chunks = content.iter_chunked(CHUNK)
    names = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    for name in reversed(names):
        if name not in _WINDOW_BITS:
            raise Unreadable(f"the reply is packed as {name!r}, which was not asked for")
        chunks = _unpacked(_capped(chunks, most), name)
    return b"".join([chunk async for chunk in _capped(chunks, most)])


async def _capped(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise Unreadable(f"the reply is larger than {most:,} bytes")
        yield chunk


async def _unpacked(chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    unpacker = None
    async for chunk in chunks:
        left = chunk
        while left:
            if unpacker is None:
                unpacker = zlib.decompressobj(_bits(name, left))
            try:
                yield unpacker.decompress(left, _UNPACKED_AT_ONCE)
            except zlib.error as error:
                raise Unreadable(f"the reply cannot be unpacked: {error}", again=True) from None
            left = unpacker.unconsumed_tail
            if unpacker.eof:
                left, unpacker = unpacker.unused_data, None  # gzip allows one member after another
            if left:
                await asyncio.sleep(0)
    if unpacker is not None:
        raise Unreachable("the reply was cut off", again=True)


def _bits(name: str, start: bytes) -> int:
    """Some sites send bare deflate under the name of zlib's format, whose first byte always ends in 8."""
    if name == "deflate" and start[0] & 0x0F != 8:
        return -zlib.MAX_WBITS
    return _WINDOW_BITS[name]
