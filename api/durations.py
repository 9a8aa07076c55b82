"""Lengths of time, as people write and read them: `90`, `15m`, `2h`, `3d`."""

from __future__ import annotations

import math
import re

from api.exits import Mistake

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)


def seconds_of(option: str, text: str) -> float:
    """What was said with an option, in seconds."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise Mistake(f"{option} {text}: expected a length of time: 90 (seconds), 15m, 2h or 3d")
    return float(found[1]) * _UNITS[found[2] or "s"]


def length(seconds: float) -> str:
    """`4 s`, `15 min`, `2 h`, `3 days`: as exact as it needs to be."""
    if math.isinf(seconds):
        return "ever"
    for most, unit, name in ((90, 1, "s"), (5_400, 60, "min"), (172_800, 3_600, "h")):
        if seconds < most:
            return f"{max(seconds, 0) / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"
