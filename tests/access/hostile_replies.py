"""What a site may send instead of an honest reply: each a script, and the kind of failure that it ends in."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from hostile_kit import MEGABYTE, Script, Wire

OK = b"HTTP/1.1 200 OK\r\n"
GOOD = json.dumps({"rows": [[1, "v1"]]}).encode()
UNREADABLE, UNREACHABLE, REFUSED, TIMED_OUT = "unreadable", "unreachable", "refused", "timed out"
BROKEN = (UNREADABLE, UNREACHABLE)  # whether it was cut off or garbled is a matter of taste


@dataclass(frozen=True, slots=True)
class Hostile:
    script: Script
    kinds: tuple[str, ...]
    says: str  # stands in the cause
    slow: bool = False  # ends by the deadline alone


REPLIES: dict[str, Hostile] = {}


def hostile(name: str, *kinds: str, says: str = "", slow: bool = False) -> Callable[[Script], Script]:
    def add(script: Script) -> Script:
        assert name not in REPLIES
        REPLIES[name] = Hostile(script, kinds, says, slow)
        return script

    return add


def bytes_of(name: str, raw: bytes, *kinds: str, says: str = "") -> None:
    """A reply that is just these bytes, after which the site hangs up."""

    async def script(wire: Wire) -> None:
        await wire.say(raw)

    hostile(name, *kinds, says=says)(script)


def head(*lines: str) -> bytes:
    return OK + b"".join(line.encode("latin-1") + b"\r\n" for line in lines) + b"\r\n"


def with_body(body: bytes, *lines: str) -> bytes:
    return head(*lines, f"Content-Length: {len(body)}") + body


# Packed


def pieces(bits: int, megabytes: int, pattern: bytes = b"\0") -> Iterator[bytes]:
    """So much of a pattern, packed, without ever holding it."""
    packer = zlib.compressobj(9, wbits=bits)
    plain = (pattern * (MEGABYTE // len(pattern) + 1))[:MEGABYTE]
    for _ in range(megabytes):
        yield packer.compress(plain)
    yield packer.flush()


def repacked(packed: Iterator[bytes], bits: int) -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=bits)
    for piece in packed:
        yield packer.compress(piece)
    yield packer.flush()


GZIP, ZLIB, BARE = 31, 15, -15


def bomb(name: str, encoding: str, packed: Callable[[], Iterator[bytes]], says: str) -> None:
    async def script(wire: Wire) -> None:
        await wire.say(head(f"Content-Encoding: {encoding}", "Connection: close"))
        for piece in packed():
            await wire.say(piece)
            await asyncio.sleep(0)  # the other side may have had enough

    hostile(name, UNREADABLE, says=says)(script)


TIMES, LARGER = (
    "unpacks to more than 250 times its size: ask for",
    "larger than 33,554,432 bytes: ask for less",
)
UNREQUESTED = "which was not asked for: the site has to heed"
bomb("gzip bomb of 1 GB", "gzip", lambda: pieces(GZIP, 1024), TIMES)
bomb("x-gzip bomb", "x-gzip", lambda: pieces(GZIP, 100), TIMES)
bomb("GZIP bomb in capitals", "GZIP", lambda: pieces(GZIP, 100), TIMES)
bomb("zlib bomb", "deflate", lambda: pieces(ZLIB, 100), TIMES)
bomb("bare deflate bomb", "deflate", lambda: pieces(BARE, 100), TIMES)
bomb("bomb in a bomb", "gzip, gzip", lambda: repacked(pieces(GZIP, 100), GZIP), TIMES)
bomb("zlib bomb in gzip", "deflate, gzip", lambda: repacked(pieces(ZLIB, 100), GZIP), TIMES)
bomb("bomb that is not named twice", "gzip,,identity", lambda: pieces(GZIP, 100), TIMES)
SPARSE = b"".join(Random(n).randbytes(64) + bytes(8_128) for n in range(128))  # packs about 100 times smaller
bomb("bomb under the ratio", "gzip", lambda: pieces(GZIP, 100, SPARSE), LARGER)
bomb("packed 3 times", "gzip, gzip, gzip", lambda: iter([GOOD]), "packed 3 times over, more than 2")
bomb("packed 900 times", ",".join(["gzip"] * 900), lambda: iter([GOOD]), "packed 900 times over")
bomb("brotli", "br", lambda: iter([GOOD]), f"'br', {UNREQUESTED}")
bomb("zstd", "zstd", lambda: iter([GOOD]), UNREQUESTED)
bomb("compress", "compress", lambda: iter([GOOD]), UNREQUESTED)
bomb("chunked as a packing", "chunked", lambda: iter([GOOD]), UNREQUESTED)
bomb("unknown packing of 5,000 letters", "x" * 5_000, lambda: iter([GOOD]), "xxx...', which")
bomb(
    "many bombs one after another",
    "gzip",
    lambda: (gzip.compress(bytes(MEGABYTE)) for _ in range(100)),
    TIMES,
)
EMPTY = gzip.compress(b"")
bomb("20,000 empty members", "gzip", lambda: (EMPTY * 1_000 for _ in range(20)), "more than 10,000 pieces")

packed = gzip.compress(GOOD)
for name, body, kind in (
    ("plain text as gzip", GOOD, UNREADABLE),
    ("gzip as deflate", packed, UNREADABLE),
    ("zlib as gzip", zlib.compress(GOOD), UNREADABLE),
    ("only a magic number", packed[:2], UNREACHABLE),
    ("half a gzip head", packed[:7], UNREACHABLE),
    ("half a gzip", packed[: len(packed) // 2], UNREACHABLE),
    ("gzip without its end", packed[:-8], UNREACHABLE),
    ("gzip with a wrong checksum", packed[:-8] + b"\1\2\3\4" + packed[-4:], UNREADABLE),
    ("gzip with a wrong length", packed[:-4] + b"\xff\xff\xff\xff", UNREADABLE),
    ("gzip and rubbish", packed + b"rubbish", UNREADABLE),
    ("gzip and half a gzip", packed + packed[:9], UNREACHABLE),
    ("gzip with unknown flags", packed[:3] + b"\xe0" + packed[4:], UNREADABLE),
    ("gzip of an unknown method", packed[:2] + b"\x09" + packed[3:], UNREADABLE),
):
    bytes_of(
        name, with_body(body, f"Content-Encoding: {'deflate' if 'as deflate' in name else 'gzip'}"), kind
    )
dictionary = zlib.compressobj(zdict=b"rows and rows")
for name, body in (
    ("zlib with a dictionary", dictionary.compress(GOOD) + dictionary.flush()),
    ("zlib with a wrong checksum", zlib.compress(GOOD)[:-4] + b"\0\0\0\0"),
    ("deflate with a block of no type", b"\x78\x9c\x07\x00\x00"),
    ("deflate that looks back too far", b"\x78\x9c\x4b\x04\x42\x00\xff\xff"),
):
    bytes_of(name, with_body(body, "Content-Encoding: deflate"), *BROKEN)


@hostile("a gzip name without end", UNREADABLE, says=LARGER)
async def _(wire: Wire) -> None:
    await wire.say(head("Content-Encoding: gzip"), b"\x1f\x8b\x08\x08" + bytes(6))
    await wire.without_end(b"n" * 65_536)


# Lengths


@hostile("a body without end", UNREADABLE, says=LARGER)
async def _(wire: Wire) -> None:
    await wire.say(head())
    await wire.without_end(b" " * 65_536)


@hostile("a body of no told length, reset behind its last row", UNREACHABLE, says="the reply was cut off")
async def reset_body(wire: Wire) -> None:
    await wire.say(OK + b"\r\n" + GOOD)
    await wire.reset()


@hostile("an error page without end", UNREADABLE, says=LARGER)
async def _(wire: Wire) -> None:
    await wire.say(b"HTTP/1.1 404 Not Found\r\n\r\n")
    await wire.without_end(b" " * 65_536)


@hostile("chunks without end", UNREADABLE, says=LARGER)
async def _(wire: Wire) -> None:
    await wire.say(head("Transfer-Encoding: chunked"))
    await wire.without_end(b"10000\r\n" + b" " * 65_536 + b"\r\n")


for name, length, kinds in (
    ("a terabyte announced", str(1 << 40), (UNREADABLE,)),
    ("a length of 30 digits", "9" * 30, BROKEN),
    ("a negative length", "-1", BROKEN),
    ("a length with a plus", f"+{len(GOOD)}", BROKEN),
    ("a length in hex", "0x10", BROKEN),
    ("a length in words", "twenty", BROKEN),
    ("a length with a blank", "2 3", BROKEN),
    ("a list of lengths", "5, 6", BROKEN),
    ("a length in other digits", "\u00b2\u00b3", BROKEN),
    ("a length with a point", "23.0", BROKEN),
    ("a length with NUL", "2\0", BROKEN),
    ("too long a length", str(len(GOOD) + 100), BROKEN),
    ("too short a length", str(len(GOOD) - 5), (UNREADABLE,)),
    ("a length of nothing", "0", (UNREADABLE,)),
):
    bytes_of(name, head(f"Content-Length: {length}") + GOOD, *kinds)
bytes_of("two lengths", head("Content-Length: 5", f"Content-Length: {len(GOOD)}") + GOOD, *BROKEN)
bytes_of(
    "a length and chunks", head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n", *BROKEN
)
bytes_of("204 with a body", b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n" + GOOD, *BROKEN)

# Chunks

for name, body in (
    ("a chunk of no size", b"\r\n" + GOOD),
    ("a chunk of negative size", b"-5\r\n" + GOOD),
    ("a chunk whose size is a word", b"size\r\n" + GOOD),
    ("a chunk of 2^64 bytes", b"10000000000000000\r\n" + GOOD),
    ("a chunk of 2^64-1 bytes", b"FFFFFFFFFFFFFFFF\r\n" + GOOD),
    ("a chunk with 0x", b"0x17\r\n" + GOOD + b"\r\n0\r\n\r\n"),
    ("a chunk that is cut", b"FF\r\n" + GOOD),
    ("a chunk that is longer than it said", b"2\r\n" + GOOD + b"\r\n0\r\n\r\n"),
    ("a chunk with NUL in its size", b"1\x007\r\n" + GOOD + b"\r\n0\r\n\r\n"),
    ("no last chunk", b"%x\r\n" % len(GOOD) + GOOD + b"\r\n"),
    ("no chunks", GOOD),
    ("nothing at all in chunks", b""),
    ("only the last chunk", b"0\r\n\r\n"),
    ("a bad trailer", b"0\r\nno colon\r\n\r\n"),
):
    bytes_of(name, head("Transfer-Encoding: chunked") + body, *BROKEN)
for coding in ("gzip, chunked", "chunked, gzip", "chunked, chunked", "xchunked", "identity", "chunked\x0b"):
    bytes_of(f"transfer {coding!r}", head(f"Transfer-Encoding: {coding}") + b"rubbish", *BROKEN)


@hostile("an extension of a chunk without end", TIMED_OUT, UNREADABLE, UNREACHABLE, slow=True)
async def _(wire: Wire) -> None:
    await wire.say(head("Transfer-Encoding: chunked"), b"5;")
    await wire.without_end(b"x" * 65_536)


@hostile("trailers without end", TIMED_OUT, UNREADABLE, UNREACHABLE)
async def _(wire: Wire) -> None:
    await wire.say(head("Transfer-Encoding: chunked"), b"0\r\n")
    await wire.without_end(b"A: b\r\n" * 10_000)


@hostile("chunks of one byte without end", TIMED_OUT, UNREADABLE, slow=True)
async def _(wire: Wire) -> None:
    await wire.say(head("Transfer-Encoding: chunked"))
    await wire.without_end(b"1\r\n \r\n" * 10_000)


# Headers

MANY, LONG = "it has more than 128 headers", "one of its header lines is longer than 8,190 bytes"


@hostile("a million headers", UNREADABLE, says=MANY)
async def _(wire: Wire) -> None:
    await wire.say(OK)
    for n in range(1_000_000 // 5_000):
        await wire.say(b"".join(b"H%d: x\r\n" % (n * 5_000 + i) for i in range(5_000)))
    await wire.say(b"\r\n" + GOOD)


@hostile("headers without end", UNREADABLE, says=MANY)
async def _(wire: Wire) -> None:
    await wire.say(OK)
    await wire.without_end(b"Same: again\r\n" * 5_000)


for part, start in (("value", b"Long: "), ("name", b"L")):

    @hostile(f"the {part} of a header without end", UNREADABLE, says=LONG)
    async def _(wire: Wire, start: bytes = start) -> None:
        await wire.say(OK + start)
        await wire.without_end(b"x" * 65_536)


@hostile("a reason without end", UNREADABLE, says=LONG)
async def _(wire: Wire) -> None:
    await wire.say(b"HTTP/1.1 200 ")
    await wire.without_end(b"O" * 65_536)


@hostile("folded lines without end", UNREADABLE, UNREACHABLE)
async def _(wire: Wire) -> None:
    await wire.say(OK + b"Folded: x\r\n")
    await wire.without_end(b" and more\r\n" * 5_000)


bytes_of("129 headers", head(*(f"H{n}: x" for n in range(129))) + GOOD, UNREADABLE, says=MANY)
bytes_of(
    "headers of 90 kB together",
    head(*(f"H{n}: {'x' * 7_500}" for n in range(12))) + GOOD,
    UNREADABLE,
    says="its headers are larger than 65,536 bytes",
)
for name, line in (
    ("NUL in a value", "A: b\0c"),
    ("NUL in a name", "A\0: b"),
    ("a bare CR in a value", "A: b\rContent-Length: 0"),
    ("no colon", "no colon here"),
    ("no name", ": value"),
    ("a blank in a name", "Content Length: 5"),
    ("a control character in a name", "A\x1b[2J: b"),
    ("bytes that are no text in a name", "\xff\xfe: b"),
    ("two hosts of a type", "Content-Type: a\r\nContent-Type: b\r\nTransfer-Encoding: nonsense"),
):
    bytes_of(f"header with {name}", head(line) + b"rubbish", *BROKEN)
for name, charset in (
    ("an unknown charset", "nonsense"),
    ("a charset of 4,000 letters", "x" * 4_000),
    ("a charset that runs code", "zip"),
    ("UTF-7", "utf-7"),
    ("an undefined charset", "undefined"),
    ("a charset with escapes", "\x1b[31mred"),
    ("UTF-32 that is not", "utf-32"),
):
    line = f"Content-Type: application/json; charset={charset}"
    bytes_of(f"body in {name}", with_body(b"\xff\xfe\xfd{\0", line), *BROKEN)

# First lines

for name, first in (
    ("HTTP/0.9", b"<html>hello</html>"),
    ("JSON without HTTP", GOOD),
    ("HTTP of the next century", b"HTTP/9.9 200 OK\r\n\r\n"),
    ("HTTP/2 by force", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("frames of HTTP/2", b"\0\0\x12\x04\0\0\0\0\0" + bytes(18)),
    ("a status in words", b"HTTP/1.1 fine OK\r\n\r\n"),
    ("a negative status", b"HTTP/1.1 -200 OK\r\n\r\n"),
    ("a status of five digits", b"HTTP/1.1 20000 OK\r\n\r\n"),
    ("a status of two digits", b"HTTP/1.1 20 OK\r\n\r\n"),
    ("no status", b"HTTP/1.1\r\n\r\n"),
    ("ICY", b"ICY 200 OK\r\n\r\n"),
    ("small letters", b"http/1.1 200 OK\r\n\r\n"),
    ("a request", b"GET / HTTP/1.1\r\nHost: you\r\n\r\n"),
    ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
    ("mail", b"220 mail.example ESMTP\r\n"),
    ("FTP", b"220 FTP ready\r\n"),
    ("Redis", b"-ERR unknown command\r\n"),
    ("TLS", b"\x15\x03\x03\x00\x02\x02\x46"),
    ("NUL bytes", bytes(10_000)),
    ("every byte", bytes(range(256)) * 8),
    ("escapes for a terminal", b"\x1b]0;pwned\x07\x1b[2J\r\n\r\n"),
    ("not a byte", b""),
    ("half a first line", b"HTTP/1.1 2"),
    ("half the headers", OK + b"Content-Le"),
    ("a blank first line only", b"\r\n\r\n"),
):
    bytes_of(name, first, *BROKEN)
for status in (0, 100, 101, 102, 199, 300, 304, 305, 306, 400, 401, 418, 451, 500, 599, 600, 999):
    raw = b"HTTP/1.1 %03d Whatever\r\nContent-Length: 0\r\n\r\n" % status
    bytes_of(f"status {status}", raw, REFUSED, UNREADABLE, UNREACHABLE)
for after in ("9" * 400, "-1", "NaN", "Tue, 99 Nov 2026 99:99:99 GMT", "\xff", "1e400"):
    for status in (429, 503):
        raw = f"HTTP/1.1 {status} Later\r\nRetry-After: {after}\r\nContent-Length: 0\r\n\r\n".encode(
            "latin-1"
        )
        bytes_of(f"{status} until {after[:30]!r}", raw, "rate limited", REFUSED)


@hostile("NUL bytes without end", UNREADABLE, UNREACHABLE)
async def _(wire: Wire) -> None:
    await wire.without_end(bytes(65_536))


@hostile("empty lines without end", TIMED_OUT, UNREADABLE, slow=True)
async def _(wire: Wire) -> None:
    await wire.without_end(b"\r\n" * 30_000)


@hostile("100 Continue without end", TIMED_OUT, UNREADABLE, slow=True)
async def _(wire: Wire) -> None:
    await wire.without_end(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


# Slowness


@hostile("silence", TIMED_OUT, slow=True)
async def _(wire: Wire) -> None:
    await wire.hang()


for where, before, drop in (
    ("first line", b"", b"H"),
    ("header", OK, b"x"),
    ("body", OK + b"Content-Length: 100000\r\n\r\n", b" "),
    ("chunk", OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFF\r\n", b" "),
    ("chunk's size", OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ("gzip", OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08" + bytes(6), b"n"),
):

    @hostile(f"a {where}, drop by drop", TIMED_OUT, *BROKEN, slow=True)
    async def _(wire: Wire, before: bytes = before, drop: bytes = drop) -> None:
        await wire.say(before)
        await wire.without_end(drop, 0.01)


for where, before in (
    ("a head", OK),
    ("half a body", OK + b"Content-Length: 100\r\n\r\n{"),
    ("nothing", b""),
):

    @hostile(f"a reset after {where}", UNREACHABLE)
    async def _(wire: Wire, before: bytes = before) -> None:
        await wire.say(before)
        wire.writer.transport.abort()


# Redirects


def redirect(name: str, location: str, says: str = "", *more: str, status: int = 302) -> None:
    lines = "".join(f"{line}\r\n" for line in (f"Location: {location}", *more, "Connection: close"))
    raw = f"HTTP/1.1 {status} Elsewhere\r\n{lines}Content-Length: 0\r\n\r\n".encode("latin-1")
    bytes_of(f"redirect {name}", raw, REFUSED, *(() if says else BROKEN), says=says)


CIRCLE, NOWHERE = "redirects go round in a circle", "not an address that can be asked"
for status in (301, 302, 303, 307, 308):
    redirect(f"to itself by {status}", "", CIRCLE, status=status)
redirect("to a fragment of itself", "#again", CIRCLE)
redirect("to a circle", "/a", CIRCLE)
redirect("to a file", "file:///etc/passwd", NOWHERE)
redirect("to a script", "javascript:alert(1)", NOWHERE)
redirect("to data", "data:application/json,{}", NOWHERE)
redirect("to FTP", "ftp://127.0.0.1/x", "redirects from http to ftp")
redirect("to HTTPS", "https://127.0.0.1/x", "redirects from http to https")
redirect("to a port of five nines", "http://127.0.0.1:99999/", NOWHERE)
redirect("to a port in words", "http://127.0.0.1:port/", NOWHERE)
redirect("to half an address", "http://[::1/", NOWHERE)
redirect("to no host", "http:///x")
redirect("with a login", "http://me:secret@127.0.0.1/x", "with a name and password of its own")
redirect("to two places", "/a", "redirects to several places at once", "Location: /b")
redirect("to what is no text", "http://\xff\xfe\xfd/")
redirect("to escapes", "http://\x1b[31m.example/")
redirect("to 7,000 letters", "x" * 7_000)
redirect("to a host of 7,000 letters", "http://" + "x" * 7_000 + "/")
bytes_of("redirect to nowhere", b"HTTP/1.1 302 Elsewhere\r\nContent-Length: 0\r\n\r\n", REFUSED)


@hostile("redirects without end", REFUSED, says="more than 5 redirects: declare")
async def _(wire: Wire) -> None:
    step = wire.head.split()[1].decode().count("x") + 1
    await wire.say(f"HTTP/1.1 302 On\r\nLocation: /{'x' * step}\r\nConnection: close\r\n\r\n".encode())


@hostile("redirects with bodies without end", REFUSED, says=CIRCLE)
async def _(wire: Wire) -> None:
    await wire.say(b"HTTP/1.1 302 On\r\nLocation: ?\r\n\r\n")
    await wire.without_end(b" " * 65_536)
