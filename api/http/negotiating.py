"""Which format a client wants: by `?format=`, else by `Accept`."""

from __future__ import annotations

from typing import Literal

from api.http.problems import Problem

Format = Literal["ndjson", "sse", "arrow", "csv", "parquet", "json"]

_TYPES: dict[str, Format] = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/event-stream": "sse",
    "application/vnd.apache.arrow.stream": "arrow",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/json": "json",
}
STREAMS: frozenset[Format] = frozenset({"ndjson", "sse", "arrow", "csv"})


def wanted(format_: Format | None, accept: str | None) -> Format | None:
    """The format, or None where anything is welcome. Raises a `Problem` where there is none of those wanted."""
    if format_ is not None:
        return format_
    ranges = _ranges(accept or "*/*")
    for media, quality in ranges:
        if quality <= 0.0:
            continue
        if media in _TYPES:
            return _TYPES[media]
        if media in ("*/*", "application/*"):
            return None
        if media == "text/*":
            return "csv"
    raise Problem(
        406, "not-acceptable", f"There is no format among those wanted: {(accept or '')[:200]}",
        hint=f"there are {', '.join(_TYPES)}",
    )  # fmt: skip


def _ranges(accept: str) -> list[tuple[str, float]]:
    """Media ranges, the most wanted first; of equals the one that is named first."""
    found = []
    for part in accept.split(","):
        media, *parameters = (p.strip().lower() for p in part.split(";"))
        if media:
            found.append((media, _quality(parameters)))
    return sorted(found, key=lambda one: -one[1])


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return max(0.0, min(1.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
