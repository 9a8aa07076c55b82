"""What was measured of access methods, kept from one process to the next. Blocks.

It is worth having and not worth failing for: a file that cannot be read is discarded with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mediator.catalog.measured import Measured, Measurements, Place
from mediator.catalog.sketches import Distinct, Histogram, Moments
from mediator.store import notes

FILE = "statistics.json"
_VERSION = 1
_MOST = 1e18  # of anything
_BUCKETS = 1_000  # on either side of 1

_log = logging.getLogger(__name__)


def load(folder: Path, now: float) -> Measurements:
    """What was kept, as much as it still counts; nothing where there is none, or none that can be read."""
    try:
        return read(folder, now)
    except notes.Unreadable as error:
        _log.warning("%s. What was measured before is discarded.", error)
        return Measurements()


def read(folder: Path, now: float) -> Measurements:
    """As `load`, for a look at it; raises `Unreadable`."""
    found = notes.read(folder / FILE)
    if found is None:
        return Measurements()
    try:
        if found["version"] != _VERSION:
            raise ValueError(f"format {found['version']!r}, not {_VERSION}")
        measurements = Measurements(dict(map(entry, found["measured"])))
        measurements.age(now - _number(found["at"]))
        return measurements
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise notes.Unreadable(f"{folder / FILE} is damaged: {error!r}") from None


def save(folder: Path, measured: dict[str, Any]) -> None:
    """When it returns, it outlives the process; `measured` comes from `written`."""
    notes.replace(folder / FILE, measured)


def written(measurements: Measurements, now: float) -> dict[str, Any]:
    """As it is written down, of this moment."""
    measured = [written_entry(place, found) for place, found in measurements]
    return {"version": _VERSION, "at": now, "measured": measured}


def written_entry(place: Place, found: Measured) -> dict[str, Any]:
    return {
        "relation": place.relation,
        "method": place.method,
        "source": place.source,
        "latency": {
            "total": found.latency.total,
            "buckets": {str(bucket): weight for bucket, weight in sorted(found.latency.buckets.items())},
        },
        "requests": found.requests,
        "errors": found.errors,
        "rows": _moments(found.rows),
        "bytes": _moments(found.bytes),
        "pages": _moments(found.pages),
        "bindings": list(found.bindings.smallest),
    }


def _moments(moments: Moments) -> list[float]:
    return [moments.weight, moments.groups, moments.total, moments.squares]


def entry(said: Mapping[str, Any]) -> tuple[Place, Measured]:
    buckets = {int(bucket): _number(weight) for bucket, weight in said["latency"]["buckets"].items()}
    smallest = said["bindings"]
    if not all(type(h) is int and 0 <= h < 1 << 48 for h in smallest) or smallest != sorted(set(smallest)):
        raise ValueError("bindings are no hashes")
    if any(abs(bucket) > _BUCKETS for bucket in buckets):
        raise ValueError("a bucket that there is not")
    return Place(_text(said["relation"]), _text(said["method"]), _text(said["source"])), Measured(
        latency=Histogram(_number(said["latency"]["total"]), buckets),
        requests=_number(said["requests"]),
        errors={_text(kind): _number(weight) for kind, weight in said["errors"].items()},
        rows=_moments_of(said["rows"]),
        bytes=_moments_of(said["bytes"]),
        pages=_moments_of(said["pages"]),
        bindings=Distinct(tuple(smallest)),
    )


def _moments_of(said: Sequence[object]) -> Moments:
    weight, groups, total, squares = map(_number, said)
    if not (weight > 0.0 and groups > 0.0) and any((weight, groups, total, squares)):
        raise ValueError("moments of nothing")
    return Moments(weight, groups, total, squares)


def _number(said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0.0 <= said <= _MOST:
        raise ValueError(f"{said!r} is no measure")
    return float(said)


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise ValueError(f"{said!r} is no name")
    return said
