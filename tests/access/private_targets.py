"""Hundreds of ways to spell an address in the engine's own house, as bases, links and redirects may.

`{port}` stands for the port where the canary sits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Address

# One of each kind, and the corners of their networks.
PRIVATE = (
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",  # Alibaba's metadata
    "168.63.129.16",  # Azure's
    "169.254.169.254",  # most others'
    "169.254.170.2",  # of containers at Amazon
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.192",  # Oracle's
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
)

Spelling = Callable[[IPv4Address], str]


def _parts(a: IPv4Address) -> list[int]:
    return list(a.packed)


def _two(a: IPv4Address) -> str:
    return f"{_parts(a)[0]}.{int(a) & 0xFF_FFFF}"


def _three(a: IPv4Address) -> str:
    first, second, *_ = _parts(a)
    return f"{first}.{second}.{int(a) & 0xFFFF}"


def _wide(a: IPv4Address) -> str:
    return str(a).translate({ord("0") + n: 0xFF10 + n for n in range(10)})


def _circled(a: IPv4Address) -> str:
    return str(a).translate({ord("0"): 0x24EA} | {ord("0") + n: 0x2460 + n - 1 for n in range(1, 10)})


def _groups(a: IPv4Address) -> str:
    return f"{int(a) >> 16:x}:{int(a) & 0xFFFF:x}"


SPELLINGS: dict[str, Spelling] = {
    "dotted": str,
    "decimal": lambda a: str(int(a)),
    "hex": lambda a: hex(int(a)),
    "loud hex": lambda a: f"0X{int(a):08X}",
    "octal": lambda a: f"0{int(a):o}",
    "dotted hex": lambda a: ".".join(map(hex, _parts(a))),
    "dotted octal": lambda a: ".".join(f"0{p:o}" for p in _parts(a)),
    "padded octal": lambda a: ".".join(f"{p:07o}" for p in _parts(a)),
    "hex and octal": lambda a: "{:#x}.0{:o}.{}.{}".format(*_parts(a)),
    "two parts": _two,
    "three parts": _three,
    "trailing dot": lambda a: f"{a}.",
    "decimal, trailing dot": lambda a: f"{int(a)}.",
    "wide digits": _wide,
    "circled digits": _circled,
    "ideographic dots": lambda a: str(a).replace(".", "\u3002"),
    "half-width dots": lambda a: str(a).replace(".", "\uff61"),
    "escaped": lambda a: "".join(f"%{ord(c):02x}" for c in str(a)),
    "mapped": lambda a: f"[::ffff:{a}]",
    "mapped, hex": lambda a: f"[::ffff:{_groups(a)}]",
    "mapped, long": lambda a: f"[0:0:0:0:0:FFFF:{_groups(a)}]",
    "mapped, zone": lambda a: f"[::ffff:{a}%25lo]",
    "compatible": lambda a: f"[::{a}]",
    "translated": lambda a: f"[::ffff:0:{a}]",
    "nat64": lambda a: f"[64:ff9b::{a}]",
    "nat64, local": lambda a: f"[64:ff9b:1::{a}]",
    "6to4": lambda a: f"[2002:{_groups(a)}::1]",
    "teredo": lambda a: f"[2001:0:808:808::{(int(a) ^ 0xFFFF_FFFF) >> 16:x}:{~int(a) & 0xFFFF:x}]",
    "isatap": lambda a: f"[2606:2800:220:1:0:5efe:{a}]",
    "user": lambda a: f"www.example.org@{a}",
    "user and password": lambda a: f"www.example.org:443@{a}",
}

IPV6 = (
    "::1",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "::",
    "::2",
    "fe80::1",
    "fe80::1%25lo",
    "fe80::a9fe:a9fe%251",
    "febf::1",
    "fec0::1",
    "feff::1",
    "fc00::1",
    "fdff::1",
    "fd00:ec2::254",  # Amazon's metadata
    "FD00:EC2:0::254",
    "fd20:ce::254",  # Google's
    "ff01::1",
    "ff02::1",
    "ff0e::1",
    "100::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "e000::1",
)

# Where a name and an address stand in one another's place, or parsers disagree on which is which.
ODD_BASES = (
    "http://127.0.0.1:{port}#@www.example.org/",
    "http://127.0.0.1:{port}?@www.example.org/",
    "http://127.0.0.1:{port}\\@www.example.org/",
    "http://www.example.org:80@127.0.0.1:{port}/",
    "http://www.example.org%40127.0.0.1:{port}/",
    "http://www.example.org%2f@127.0.0.1:{port}/",
    "http://a@b@127.0.0.1:{port}/",
    "http://www.example.org#@127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}\\",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "HTTP://127.0.0.1:{port}/",
    "hTTps://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET",
    "file:///proc/net/tcp",
    "unix:///var/run/docker.sock",
    "dict://127.0.0.1:{port}/info",
    "ws://127.0.0.1:{port}/",
    "http+unix://127.0.0.1:{port}/",
    " http://127.0.0.1:{port}/",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\r\n:{port}/",
    "http://127.0.0.1\x00.example.org:{port}/",
    "http://127.0.0.1%00.example.org:{port}/",
    "http://127.0.0.1%0d%0a:{port}/",
    "http://[::1]:{port}/",
    "http://[::1]@127.0.0.1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.0.0.1..:{port}/",
    "http://127.000.000.001:{port}/",
    "http://0:{port}/",
    "http://0x0:{port}/",
    "http://00:{port}/",
    "http://1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.1:{port}/",
    "http://4294967295:{port}/",
    "http://4294967296:{port}/",
    "http://6425673729:{port}/",
    "http://256.0.0.1:{port}/",
    "http://383.0.0.1:{port}/",
    "http://-1:{port}/",
    "http://127.0.0.1:00{port}/",
    "http://127.0.0.1:+{port}/",
    "http://127.0.0.1:99999/",
)

# Names for which the resolver has an answer in the house.
NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "localhost": (("127.0.0.1", "::1"),),
    "www.localhost": (("127.0.0.1",),),
    "localtest.example": (("127.0.0.1",),),
    "six.example": (("::1",),),
    "both.example": (("::1", "127.0.0.1"),),
    "mapped.example": (("::ffff:127.0.0.1",),),
    "many.example": (("10.0.0.1", "192.168.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"),),
    "metadata.google.internal": (("169.254.169.254",),),
    "instance-data": (("169.254.169.254",),),
    "127.0.0.1.example": (("127.0.0.1",),),
    "7f000001.c0a80001.example": (("192.168.0.1",), ("127.0.0.1",)),
    "intranet": (("10.1.2.3",),),
    "xn--lcalhost-n0a.example": (("127.0.0.1",),),
    "xn--80ak6aa92e.example": (("127.0.0.1",),),
    "xn--bcher-kva.example": (("127.0.0.1",),),
    "nat64.example": (("64:ff9b::7f00:1",),),
    "site-local.example": (("fec0::1",),),
    "zero.example": (("0.0.0.0",),),
}
NAMES_AS_WRITTEN = (
    *NAMES,
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "\uff4cocalhost",
    "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3",
    "b\u00fccher.example",
    "B\u00dcCHER.EXAMPLE.",
    "user@localtest.example",
    "localtest\u3002example",
)


def spelt() -> Iterator[tuple[str, str]]:
    """Every spelling of every address, with what it is."""
    for address in PRIVATE:
        for name, spell in SPELLINGS.items():
            yield f"{address}, {name}", f"http://{spell(IPv4Address(address))}:{{port}}/"
    for address in IPV6:
        yield address, f"http://[{address}]:{{port}}/"
