"""`delay(x, us)`: x as it is, after `us` microseconds of busy waiting for each row. For experiments.

A catalog has it only where its owner gives it, `functions=[DELAY]`: it makes queries slow on purpose, and who may ask
a server something must not be able to keep it busy by that.
"""

from __future__ import annotations

import zlib

import pyarrow as pa
import pyarrow.compute as pc

from mediator.catalog.functions import Function
from mediator.clock import monotonic

MOST = 1e6  # microseconds that one row may take
_BLOCK = bytes(1 << 16)  # large enough for its checksum to be taken without the GIL
_SHORT = 1e-4  # seconds that are waited for without giving the GIL away


def _delay(values: pa.Array, microseconds: pa.Array) -> pa.Array:
    began = monotonic()
    least, most = pc.min_max(microseconds).as_py().values()
    if not 0 <= least <= most <= MOST:
        raise ValueError(f"a row may take 0 to {MOST:,.0f} microseconds")
    until = began + pc.sum(microseconds).as_py() * 1e-6
    while monotonic() < until - _SHORT:
        zlib.crc32(_BLOCK)  # others may run Python meanwhile
    while monotonic() < until:
        pass
    return values


DELAY = Function("delay", (pa.int64(), pa.float64()), pa.int64(), _delay, apart=True)
