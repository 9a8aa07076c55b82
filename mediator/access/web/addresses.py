"""Which addresses a source may be at: a site must not be able to send the engine into its own house.

The lists follow the IANA registries of special-purpose addresses. They stand here, and not in Python's
`is_global`, because that differs from one patch release to the next, and lets site-local addresses through.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
SocketFactory = Callable[[AddressInfo], socket.socket]

_NOT_PUBLIC = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host, this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's translation; Alibaba's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's metadata: the address looks public
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata
        "192.0.2.0/24",  # examples, as are 198.51.100 and 203.0.113
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")  # nothing else has been given out
_NOT_PUBLIC_6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, identifiers
        "2001:db8::/32",  # examples
        "2002::/16",  # 6to4: wraps any IPv4 address, and is out of use
        "3fff::/20",  # examples
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the upper half of an interface's id that wraps an IPv4 address


def public_only(info: AddressInfo) -> socket.socket:
    """A socket for a public address; `PermissionError` for any other.

    This sees every address that is connected to: after DNS, on each redirect, and IP literals in all their
    spellings, which a guard in the resolver would not see.
    """
    host = str(info[4][0]).partition("%")[0]
    try:
        public = is_public(ip_address(host))
    except ValueError:
        public = False
    if not public:
        raise PermissionError(
            errno.EACCES,
            f"{host} is not a public address, and the source does not allow private ones:"
            " if it is meant to be there, declare `allow_private`",
        )
    return anywhere(info)


def anywhere(info: AddressInfo) -> socket.socket:
    family, kind, protocol, _, _ = info
    return socket.socket(family=family, type=kind, proto=protocol)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address belongs to the open Internet, and so does any IPv4 address wrapped in it."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    inner = _wrapped(address)
    if inner is not None and not is_public(inner):
        return False
    if address in _MAPPED or address in _NAT64:
        return True
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address in it, where the rest of the way may lead there."""
    upper, lower = int(address) >> 32 & 0xFFFF_FFFF, int(address) & 0xFFFF_FFFF
    wraps = address in _MAPPED or address in _NAT64 or upper in _ISATAP
    return IPv4Address(lower) if wraps else None
