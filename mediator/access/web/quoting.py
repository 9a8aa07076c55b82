"""What a site said, as it may appear in our own sentences: short, printable, without secrets.

Causes are shown on terminals and web pages, and a site decides what stands in its headers and links.
"""

from __future__ import annotations

import re

from yarl import URL

_LONGEST = 120
_PASSWORD = re.compile(r"^(\w+://[^/?#:@]*:)[^/?#]*@")


def quoted(text: str) -> str:
    """One line in quotation marks; whatever does not print is spelt out."""
    return ascii(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


def plain(text: str) -> str:
    """The first line of a library's message, shortened, with nothing in it that a terminal would obey."""
    line = next(iter(text.splitlines()), "")[:_LONGEST]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def bare(address: str) -> str:
    """A base address without a password: catalogs that are written in Python may have one in it."""
    return _PASSWORD.sub(r"\1***@", address)


def shown(url: URL) -> str:
    """An address without what may be secret: name, password, query and fragment."""
    bare = url.with_query(None).with_fragment(None)
    return plain(str(bare.with_user(None) if bare.raw_user is not None or bare.raw_password else bare))
