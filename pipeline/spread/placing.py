"""Which of Spark's partitions a cell is in: the key that leads there.

Spark puts rows where a hash of their key points. So that cells are spread evenly, each has a key that is known to point
to the partition that it should be in.
"""

from __future__ import annotations

from functools import cache

_WORD = 0xFFFFFFFF


def key_of(cell: int, partitions: int) -> int:
    """Cells that follow one another are in partitions that do."""
    keys = _keys(partitions, cell // partitions + 1)
    return keys[cell % partitions][cell // partitions]


def partition_of(key: int, partitions: int) -> int:
    """Where Spark puts the rows of an `int` key."""
    return murmur3(key) % partitions


def murmur3(number: int, seed: int = 42) -> int:
    """Of a 32 bit number, as Spark's hash partitioning has it: signed."""
    k = (number & _WORD) * 0xCC9E2D51 & _WORD
    k = (k << 15 | k >> 17) & _WORD
    k = k * 0x1B873593 & _WORD
    h = seed ^ k
    h = (h << 13 | h >> 19) & _WORD
    h = (h * 5 + 0xE6546B64) & _WORD
    h ^= 4  # the bytes of the number
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


@cache
def _keys(partitions: int, each: int) -> tuple[tuple[int, ...], ...]:
    """The first so many keys that lead to each partition."""
    found: list[list[int]] = [[] for _ in range(partitions)]
    key, left = 0, partitions * each
    while left:
        keys = found[partition_of(key, partitions)]
        if len(keys) < each:
            keys.append(key)
            left -= 1
        key += 1
    return tuple(map(tuple, found))
