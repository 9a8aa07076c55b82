"""Lengths of time, as people write and read them: `90`, `15m`, `2h`, `3d`."""

from __future__ import annotations

import math

from api.exits import Mistake
from sources.lengths import seconds_in


def seconds_of(option: str, text: str) -> float:
    """What was said with an option, in seconds."""
    try:
        return seconds_in(text)
    except ValueError as error:
        raise Mistake(f"{option} {text}: {error}") from None


def length(seconds: float) -> str:
    """`4 s`, `15 min`, `2 h`, `3 days`: as exact as it needs to be."""
    if math.isinf(seconds):
        return "ever"
    for most, unit, name in ((90, 1, "s"), (5_400, 60, "min"), (172_800, 3_600, "h")):
        if seconds < most:
            return f"{max(seconds, 0) / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"
