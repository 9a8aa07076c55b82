"""Names: from what an OpenAPI document calls things to names for SQL."""

from __future__ import annotations

import re
from collections.abc import Container

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST = 60


def snake(name: str) -> str:
    """`bookId`, `Book-ID` and `book.id` are `book_id`. Empty where nothing is left."""
    words = re.findall(r"[^\W_]+", _CAMEL.sub("_", name))
    found = "_".join(words).lower()[:_LONGEST].rstrip("_")
    return f"n{found}" if found[:1].isdigit() else found


def singular(name: str) -> str:
    """As far as one can tell without a dictionary; the same for a word and its plural is all that is needed."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.endswith(ending) and len(name) > len(ending) + 1:
            return name.removesuffix(ending) + instead
    return name.removesuffix("s") if not name.endswith(("ss", "us", "is")) and len(name) > 2 else name


def listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


def free(name: str, taken: Container[str]) -> str:
    """The name, or with a number where it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def one_line(text: object, most: int = 100) -> str:
    """A text from the document as it may stand in a comment: without anything that would end it."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: most * 4]).split())
    return words if len(words) <= most else words[: most - 3] + "..."
