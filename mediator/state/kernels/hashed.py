"""Open slots: an entry is the upper half of its code's hash, above the number of the code's newest row plus one.

Codes are probed for from their home on, one slot after another; the home is the hash's highest bits, so entries lie in
the order of their hashes, a table grows by one pass over it, and partitions are stretches of it. Other codes are passed
over without a look at their rows. What is empty is 0, as fresh memory is.

Keys are taken a block at a time: what is to be read at random is under way for all of them before any is looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.blocks import BLOCK, block_rows
from mediator.state.kernels.memory import prefetch
from mediator.state.kernels.text import SHORT, SIZE, long_code, same_bytes, word_code

Codes = NDArray[np.int64] | NDArray[np.int32]  # the numbers of strings are the narrower ones
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]
Words = NDArray[np.int64]
Heap = NDArray[np.uint8]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ROW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@njit(nogil=True, cache=True, inline="always")
def _hashed(code: int) -> np.uint64:
    return np.uint64(code) * _SPREAD >> _HALF


@njit(nogil=True, cache=True, inline="always")
def _row(entry: np.uint64) -> int:
    """The row that an entry names; -1 for an empty one."""
    return np.int64(entry & _ROW) - 1


@njit(nogil=True, cache=True, inline="always")
def walked(slots: Slots, last: int, hashed: np.uint64, shift: np.uint64) -> int:
    """From its home on the first slot that is a hash's, or empty."""
    slot = np.int64(hashed >> shift)
    while slots[slot] != 0 and slots[slot] >> _HALF != hashed:
        slot = slot + 1 if slot < last else 0
    return slot


@njit(nogil=True, cache=True)
def spread_out(old: Slots, new: Slots, shift: np.uint64) -> None:
    """Take every entry over into a larger table, which is empty."""
    last = len(new) - 1
    for entry in old:
        if entry == 0:
            continue
        slot = np.int64((entry >> _HALF) >> shift)
        while new[slot] != 0:
            slot = slot + 1 if slot < last else 0
        new[slot] = entry


@njit(nogil=True, cache=True)
def link_codes(
    slots: Slots,
    shift: np.uint64,
    following: Ids,
    codes: Codes,
    valid: Mask,
    nulls: bool,
    start: int,
    stop: int,
) -> tuple[int, bool]:
    """Put rows [start, stop) at the front of their chains; how many codes are new, and whether any had a row already.

    There must be empty slots.
    """
    fresh = 0
    again = False
    last = len(slots) - 1
    places = np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        beyond = min(first + BLOCK, stop)
        for row in range(first, beyond):
            prefetch(slots, np.int64(_hashed(codes[row]) >> shift))
        for row in range(first, beyond):
            places[row - first] = walked(slots, last, _hashed(codes[row]), shift)
            prefetch(codes, max(_row(slots[places[row - first]]), 0))
        for row in range(first, beyond):
            if nulls and not valid[row]:
                continue
            code = codes[row]
            hashed = _hashed(code)
            slot = places[row - first]
            before = np.int64(-1)
            while True:
                entry = slots[slot]
                if entry == 0:
                    fresh += 1
                    break
                if entry >> _HALF == hashed and codes[_row(entry)] == code:
                    before = _row(entry)
                    again = True
                    break
                slot = slot + 1 if slot < last else 0
            following[row] = before
            slots[slot] = hashed << _HALF | np.uint64(row + 1)
    return fresh, again


@njit(nogil=True, cache=True)
def find_codes(
    slots: Slots,
    shift: np.uint64,
    codes: Codes,
    wanted: Codes,
    valid: Mask,
    nulls: bool,
    ids: Ids,
    picked: bool,
    offset: int,
    start: int,
    stop: int,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    rows: Ids,
) -> int:
    """The newest row of each of the keys [start, stop), where the query has seen it, as pairs; returns how many."""
    n = 0
    last = len(slots) - 1
    keys, homes, places = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        count = block_rows(wanted, 1, ids, picked, offset, first, stop, keys)
        for k in range(count):
            homes[k] = _hashed(wanted[keys[k]])
            prefetch(slots, np.int64(homes[k] >> shift))
        for k in range(count):
            places[k] = walked(slots, last, homes[k], shift)
            prefetch(codes, max(_row(slots[places[k]]), 0))
        for k in range(count):
            key = keys[k]
            if nulls and not valid[key]:
                continue
            hashed, code = homes[k], wanted[key]
            slot = places[k]
            entry = slots[slot]
            while entry != 0:
                if entry >> _HALF == hashed and codes[_row(entry)] == code:
                    at[n] = first + k
                    rows[n] = _row(entry)
                    p = np.int64(position[_row(entry)]) if mapped else _row(entry)
                    n += (p >= since) & (p < limit)
                    break
                slot = slot + 1 if slot < last else 0
                entry = slots[slot]
    return n


@njit(nogil=True, cache=True)
def link_texts(
    slots: Slots,
    shift: np.uint64,
    following: Ids,
    words: Words,
    heap: Heap,
    valid: Mask,
    nulls: bool,
    start: int,
    stop: int,
) -> tuple[int, bool]:
    """`link_codes` for strings, which are compared themselves."""
    fresh = 0
    again = False
    last = len(slots) - 1
    homes, places = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        beyond = min(first + BLOCK, stop)
        for row in range(first, beyond):
            word, rest = words[2 * row], words[2 * row + 1]
            if word & SIZE > SHORT:
                rest = long_code(heap, rest, word & SIZE)
            homes[row - first] = word_code(word, rest) >> _HALF
            prefetch(slots, np.int64(homes[row - first] >> shift))
        for row in range(first, beyond):
            places[row - first] = walked(slots, last, homes[row - first], shift)
            prefetch(words, 2 * max(_row(slots[places[row - first]]), 0))
        for row in range(first, beyond):
            if words[2 * row] & SIZE > SHORT:
                prefetch(heap, words[2 * max(_row(slots[places[row - first]]), 0) + 1])
        for row in range(first, beyond):
            if nulls and not valid[row]:
                continue
            hashed, word, rest = homes[row - first], words[2 * row], words[2 * row + 1]
            slot = places[row - first]
            before = np.int64(-1)
            while True:
                entry = slots[slot]
                if entry == 0:
                    fresh += 1
                    break
                other = _row(entry)
                if entry >> _HALF == hashed and words[2 * other] == word:
                    place = words[2 * other + 1]
                    if (
                        same_bytes(heap, rest, heap, place, word & SIZE)
                        if word & SIZE > SHORT
                        else place == rest
                    ):
                        before = other
                        again = True
                        break
                slot = slot + 1 if slot < last else 0
            following[row] = before
            slots[slot] = hashed << _HALF | np.uint64(row + 1)
    return fresh, again


@njit(nogil=True, cache=True)
def find_texts(
    slots: Slots,
    shift: np.uint64,
    words: Words,
    heap: Heap,
    wanted: Words,
    wanted_heap: Heap,
    valid: Mask,
    nulls: bool,
    ids: Ids,
    picked: bool,
    offset: int,
    start: int,
    stop: int,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    rows: Ids,
) -> int:
    """`find_codes` for strings, which are compared themselves."""
    n = 0
    last = len(slots) - 1
    keys, homes, places = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        count = block_rows(wanted, 2, ids, picked, offset, first, stop, keys)
        for k in range(count):
            if wanted[2 * keys[k]] & SIZE > SHORT:
                prefetch(wanted_heap, wanted[2 * keys[k] + 1])
        for k in range(count):
            word, rest = wanted[2 * keys[k]], wanted[2 * keys[k] + 1]
            if word & SIZE > SHORT:
                rest = long_code(wanted_heap, rest, word & SIZE)
            homes[k] = word_code(word, rest) >> _HALF
            prefetch(slots, np.int64(homes[k] >> shift))
        for k in range(count):
            places[k] = walked(slots, last, homes[k], shift)
            prefetch(words, 2 * max(_row(slots[places[k]]), 0))
        for k in range(count):
            if wanted[2 * keys[k]] & SIZE > SHORT:
                prefetch(heap, words[2 * max(_row(slots[places[k]]), 0) + 1])
        for k in range(count):
            key = keys[k]
            if nulls and not valid[key]:
                continue
            hashed, word, rest = homes[k], wanted[2 * key], wanted[2 * key + 1]
            slot = places[k]
            entry = slots[slot]
            while entry != 0:
                row = _row(entry)
                if entry >> _HALF == hashed and words[2 * row] == word:
                    place = words[2 * row + 1]
                    if (
                        same_bytes(wanted_heap, rest, heap, place, word & SIZE)
                        if word & SIZE > SHORT
                        else place == rest
                    ):
                        at[n] = first + k
                        rows[n] = row
                        p = np.int64(position[row]) if mapped else row
                        n += (p >= since) & (p < limit)
                        break
                slot = slot + 1 if slot < last else 0
                entry = slots[slot]
    return n
