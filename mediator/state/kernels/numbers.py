"""Strings and their numbers, in open slots as in `hashed.py`: half of a string's hash, and its number plus one.

The strings that have numbers are kept as pairs of words (`text.py`), one after another, the long ones' bytes in a heap.
A string that is new costs one trip to memory, to its slot; one that is not costs another, to be compared.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.blocks import BLOCK, block_rows
from mediator.state.kernels.hashed import walked
from mediator.state.kernels.memory import prefetch
from mediator.state.kernels.text import SHORT, SIZE, long_code, same_bytes, word_code

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]
Words = NDArray[np.int64]
Heap = NDArray[np.uint8]
Numbers = NDArray[np.int32]

MOST = (1 << 31) - 2  # strings that can have numbers
_NUMBER = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@njit(nogil=True, cache=True)
def number_texts(
    slots: Slots,
    shift: np.uint64,
    words: Words,
    heap: Heap,
    count: int,
    kept: int,
    given: Words,
    given_heap: Heap,
    valid: Mask,
    nulls: bool,
    start: int,
    stop: int,
    numbers: Numbers,
) -> tuple[int, int]:
    """Give the strings [start, stop) their numbers, and those that have none yet the next ones; NULLs get -1.

    `count` strings have numbers: they are `words`, and `kept` bytes of `heap` are theirs. Returns how many and how much
    it is then. There must be empty slots, and room for all that is given.
    """
    last = len(slots) - 1
    homes, places = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        beyond = min(first + BLOCK, stop)
        for row in range(first, beyond):
            word, rest = given[2 * row], given[2 * row + 1]
            if word & SIZE > SHORT:
                rest = long_code(given_heap, rest, word & SIZE)
            homes[row - first] = word_code(word, rest) >> _HALF
            prefetch(slots, np.int64(homes[row - first] >> shift))
        for row in range(first, beyond):
            places[row - first] = walked(slots, last, homes[row - first], shift)
            prefetch(words, 2 * np.int64(slots[places[row - first]] & _NUMBER) - 2)
        for row in range(first, beyond):
            if nulls and not valid[row]:
                numbers[row] = -1
                continue
            hashed, word, rest = homes[row - first], given[2 * row], given[2 * row + 1]
            slot = places[row - first]
            while True:
                entry = slots[slot]
                if entry == 0:
                    slots[slot] = hashed << _HALF | np.uint64(count + 1)
                    if word & SIZE > SHORT:
                        for k in range(word & SIZE):
                            heap[kept + k] = given_heap[rest + k]
                        rest = kept
                        kept += word & SIZE
                    words[2 * count], words[2 * count + 1] = word, rest
                    numbers[row] = count
                    count += 1
                    break
                number = np.int64(entry & _NUMBER) - 1
                if entry >> _HALF == hashed and words[2 * number] == word:
                    place = words[2 * number + 1]
                    if (
                        same_bytes(heap, place, given_heap, rest, word & SIZE)
                        if word & SIZE > SHORT
                        else place == rest
                    ):
                        numbers[row] = number
                        break
                slot = slot + 1 if slot < last else 0
    return count, kept


@njit(nogil=True, cache=True)
def find_numbers(
    slots: Slots,
    shift: np.uint64,
    words: Words,
    heap: Heap,
    given: Words,
    given_heap: Heap,
    ids: Ids,
    picked: bool,
    offset: int,
    stop: int,
    numbers: Numbers,
) -> None:
    """The numbers of the first `stop` keys, as far as `number_texts` has given them any; -1 for the others."""
    last = len(slots) - 1
    keys, homes, places = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for first in range(0, stop, BLOCK):
        count = block_rows(given, 2, ids, picked, offset, first, stop, keys)
        for k in range(count):
            word, rest = given[2 * keys[k]], given[2 * keys[k] + 1]
            if word & SIZE > SHORT:
                rest = long_code(given_heap, rest, word & SIZE)
            homes[k] = word_code(word, rest) >> _HALF
            prefetch(slots, np.int64(homes[k] >> shift))
        for k in range(count):
            places[k] = walked(slots, last, homes[k], shift)
            prefetch(words, 2 * np.int64(slots[places[k]] & _NUMBER) - 2)
        for k in range(count):
            hashed, word, rest = homes[k], given[2 * keys[k]], given[2 * keys[k] + 1]
            slot = places[k]
            entry = slots[slot]
            numbers[first + k] = -1
            while entry != 0:
                number = np.int64(entry & _NUMBER) - 1
                if entry >> _HALF == hashed and words[2 * number] == word:
                    place = words[2 * number + 1]
                    if (
                        same_bytes(heap, place, given_heap, rest, word & SIZE)
                        if word & SIZE > SHORT
                        else place == rest
                    ):
                        numbers[first + k] = number
                        break
                slot = slot + 1 if slot < last else 0
                entry = slots[slot]
