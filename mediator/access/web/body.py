"""Reading a reply to its end, but never more of it than is allowed, packed or unpacked."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Protocol

from mediator.access.web.bounds import RATIO, RATIO_FROM
from mediator.access.web.quoting import quoted
from mediator.errors import Unreachable, Unreadable

CHUNK = 1 << 16
_UNPACKED_AT_ONCE = 1 << 20  # a millisecond or two of unpacking: the loop breathes between two of them
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_LAYERS = 2  # packings around one another
_MEMBERS = 10_000  # gzip streams one after another: an empty one costs as much work as a full one
ACCEPTED = "gzip, deflate"


class Content(Protocol):
    """Bytes as they come off the wire."""

    def iter_chunked(self, n: int, /) -> AsyncIterator[bytes]: ...


async def read_body(content: Content, encoding: str, most: int, ratio: int = RATIO) -> bytes:
    """The whole body, unpacked. Raises `Unreadable` past a bound, and for an unknown packing."""
    body = BytesIO()  # which grows in place, and gives its bytes away without copying them
    async for chunk in unpacked(content, encoding, most, ratio):
        body.write(chunk)
    return body.getvalue()


def unpacked(content: Content, encoding: str, most: int, ratio: int = RATIO) -> AsyncIterator[bytes]:
    """The same as it comes."""
    chunks = content.iter_chunked(CHUNK)
    for name in reversed(_packings(encoding)):
        chunks = _unpacked(_capped(chunks, most), name, ratio)
    return _capped(chunks, most)


def too_large(most: int) -> Unreadable:
    return Unreadable(
        f"the reply is larger than {most:,} bytes: ask for less at once, in smaller pages, or declare a"
        " larger `largest_reply` of the source"
    )


def _packings(encoding: str) -> list[str]:
    names = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    for name in names:
        if name not in _WINDOW_BITS:
            raise Unreadable(
                f"the reply is packed as {quoted(name)}, which was not asked for: the site has to heed"
                f" 'Accept-Encoding: {ACCEPTED}'"
            )
    if len(names) > _LAYERS:
        raise Unreadable(
            f"the reply is packed {len(names)} times over, more than {_LAYERS}: the site has to be mended"
        )
    return names


async def _capped(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """As much as is allowed, always: how much of it comes at once is chance, and what is found is not to hang on it."""
    left = most
    async for chunk in chunks:
        if len(chunk) > left:
            yield chunk[:left]
            raise too_large(most)
        left -= len(chunk)
        yield chunk


async def _unpacked(chunks: AsyncIterator[bytes], name: str, ratio: int) -> AsyncIterator[bytes]:
    unpacker = None
    came = given = members = 0
    async for chunk in chunks:
        left = chunk
        while left:
            if unpacker is None:
                members += 1
                unpacker = zlib.decompressobj(_bits(name, left))
            try:
                piece = unpacker.decompress(left, _UNPACKED_AT_ONCE)
            except zlib.error as error:
                raise Unreadable(f"the reply cannot be unpacked: {error}", again=True) from None
            rest = unpacker.unconsumed_tail
            if unpacker.eof:
                rest, unpacker = unpacker.unused_data, None  # gzip allows one member after another
            came += len(left) - len(rest)
            given += len(piece)
            _check_for_bombs(came, given, members, ratio)
            yield piece
            left = rest
            if left:
                await asyncio.sleep(0)
    if unpacker is not None:
        raise Unreachable("the reply was cut off", again=True)


def _check_for_bombs(came: int, given: int, members: int, ratio: int) -> None:
    if given > RATIO_FROM and given > ratio * came:
        raise Unreadable(
            f"the reply unpacks to more than {ratio:,} times its size: ask for it unpacked, or for less at once"
        )
    if members > _MEMBERS:
        raise Unreadable(
            f"the reply is packed in more than {_MEMBERS:,} pieces: ask for it unpacked, or for less at once"
        )


def _bits(name: str, start: bytes) -> int:
    """Some sites send bare deflate under the name of zlib's format, whose first byte always ends in 8."""
    if name == "deflate" and start[0] & 0x0F != 8:
        return -zlib.MAX_WBITS
    return _WINDOW_BITS[name]
