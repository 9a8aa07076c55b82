"""What a rate allows."""

from __future__ import annotations

import math

# A site that counts with a token bucket allows a burst, but seldom a whole second's worth.
_BURST = 0.25  # seconds


def burst(rate: float) -> int:
    """Requests that may go at once, where there may be so many a second."""
    return max(1, math.floor(rate * _BURST))
