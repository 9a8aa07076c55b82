"""Which addresses a source may be at: a site must not be able to send the engine into its own house."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
SocketFactory = Callable[[AddressInfo], socket.socket]

_NAT64 = IPv6Network("64:ff9b::/96")


def public_only(info: AddressInfo) -> socket.socket:
    """A socket for a public address; `PermissionError` for any other.

    This sees every address that is connected to: after DNS, on each redirect, and IP literals in all their
    spellings, which a guard in the resolver would not see.
    """
    host = str(info[4][0]).partition("%")[0]
    if not is_public(ip_address(host)):
        raise PermissionError(
            errno.EACCES, f"{host} is not a public address, and the source does not allow private ones"
        )
    return anywhere(info)


def anywhere(info: AddressInfo) -> socket.socket:
    family, kind, protocol, _, _ = info
    return socket.socket(family=family, type=kind, proto=protocol)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address belongs to the open Internet, and so does any IPv4 address wrapped in it."""
    if isinstance(address, IPv6Address) and (inner := _wrapped(address)) is not None:
        return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
