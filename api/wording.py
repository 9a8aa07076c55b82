"""Words that go with numbers."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
