"""What an author begins with: a declaration of each kind, to be edited."""

from __future__ import annotations

import re
from pathlib import Path

KINDS = ("json", "html", "form", "csv", "graphql", "sql", "python")

_HERE = Path(__file__).parent
_PLACE = re.compile("@([A-Z]+)@")


def begun(kind: str, name: str, base: str, private: bool) -> str:
    """The text of a file that declares a source of this name at `base`, which may be a private address."""
    allowed = "    allow_private=True,\n" if kind == "python" else "    allow_private: true\n"
    said = {
        "NAME": name,
        "ENV": name.upper(),
        "BASE": base,
        "PRIVATE": allowed if private else "",
    }
    text = (_HERE / f"{kind}.template").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: said[place[1]], text)
