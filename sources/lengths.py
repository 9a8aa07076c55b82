"""Lengths of time as people write them: `90`, `15m`, `2h`, `3d`."""

from __future__ import annotations

import re

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)


def seconds_in(text: str) -> float:
    """What was written, in seconds. Raises `ValueError`."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError("expected a length of time: 90 (seconds), 15m, 2h or 3d")
    return float(found[1]) * _UNITS[found[2] or "s"]
