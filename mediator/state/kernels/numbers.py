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
from mediator.state.kernels.text import SHORT, SIZE, copy_bytes, long_code, same_bytes, word_code

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]
Words = NDArray[np.int64]
Heap = NDArray[np.uint8]
Numbers = NDArray[np.int32]

MOST = (1 << 31) - 2  # strings that can have numbers
_NUMBER = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
# Of what has a sign Numba looks at each access whether it is negative.
_NONE, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)


@njit(nogil=True, cache=True)
def number_texts(
    slots: Slots,
    shift: np.uint64,
    words: Words,
    heap: Heap,
    count: np.uint64,
    kept: int,
    given: Words,
    given_heap: Heap,
    valid: Mask,
    nulls: bool,
    start: np.uint64,
    stop: np.uint64,
    numbers: Numbers,
) -> tuple[int, int]:
    """Give the strings [start, stop) their numbers, and those that have none yet the next ones; NULLs get -1.

    `count` strings have numbers: they are `words`, and `kept` bytes of `heap` are theirs. Returns how many and how much
    it is then. There must be empty slots, and room for all that is given.
    """
    last = np.uint64(len(slots) - 1)
    homes, places = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    seeming, new = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    first = start
    while first < stop:
        size = min(np.uint64(BLOCK), stop - first)
        seem, fresh = _looked_up(
            slots, shift, words, given, given_heap, first, size, homes, places, seeming, new
        )
        for j in range(seem):
            k = seeming[j]
            if given[_TWO * (first + k)] & SIZE > SHORT:
                prefetch(heap, words[2 * np.int64(slots[places[k]] & _NUMBER) - 1])
        for j in range(seem):
            k = seeming[j]
            row = first + k
            number = (slots[places[k]] & _NUMBER) - _ONE
            if nulls and not valid[row]:
                numbers[row] = -1
            elif _same(words, heap, number, given, given_heap, row):
                numbers[row] = number
            else:
                new[fresh] = k
                fresh += _ONE
        for j in range(fresh):
            k = new[j]
            row = first + k
            if nulls and not valid[row]:
                numbers[row] = -1
                continue
            slot = places[k]
            while slots[slot] != 0:
                number = (slots[slot] & _NUMBER) - _ONE
                if slots[slot] >> _HALF == homes[k] and _same(words, heap, number, given, given_heap, row):
                    break
                slot = slot + _ONE if slot < last else _NONE
            if slots[slot] == 0:
                word, rest = given[_TWO * row], given[_TWO * row + _ONE]
                if word & SIZE > SHORT:
                    copy_bytes(given_heap, rest, heap, kept, word & SIZE)
                    rest = kept
                    kept += word & SIZE
                words[_TWO * count], words[_TWO * count + _ONE] = word, rest
                count += _ONE
                slots[slot] = homes[k] << _HALF | count
            numbers[row] = (slots[slot] & _NUMBER) - _ONE
        first += size
    return np.int64(count), kept


@njit(nogil=True, cache=True)
def _looked_up(
    slots: Slots,
    shift: np.uint64,
    words: Words,
    given: Words,
    given_heap: Heap,
    first: np.uint64,
    size: np.uint64,
    homes: Slots,
    places: Slots,
    seeming: Slots,
    new: Slots,
) -> tuple[np.uint64, np.uint64]:
    """Where the strings of a block have their slots; which of them seem to have a number, and which have none."""
    last = np.uint64(len(slots) - 1)
    for k in range(size):
        at = _TWO * (first + k)
        word, rest = given[at], given[at + _ONE]
        if word & SIZE > SHORT:
            rest = long_code(given_heap, rest, word & SIZE)
        homes[k] = word_code(word, rest) >> _HALF
        prefetch(slots, np.int64(homes[k] >> shift))
    # Which is which is left to chance, and a branch would be guessed wrong as often as not.
    seem, fresh = _NONE, _NONE
    for k in range(size):
        slot = _walked(slots, last, homes[k], shift)
        places[k] = slot
        prefetch(words, 2 * np.int64(slots[slot] & _NUMBER) - 2)
        seeming[seem], new[fresh] = k, k
        empty = slots[slot] == 0
        seem += np.uint64(not empty)
        fresh += np.uint64(empty)
    return seem, fresh


@njit(nogil=True, cache=True, inline="always")
def _walked(slots: Slots, last: np.uint64, hashed: np.uint64, shift: np.uint64) -> np.uint64:
    """As `walked` does it."""
    slot = hashed >> shift
    while slots[slot] != 0 and slots[slot] >> _HALF != hashed:
        slot = slot + _ONE if slot < last else _NONE
    return slot


@njit(nogil=True, cache=True, inline="always")
def _same(
    words: Words, heap: Heap, number: np.uint64, given: Words, given_heap: Heap, row: np.uint64
) -> bool:
    """Whether the string of this number is the given one of this row."""
    word, rest = given[_TWO * row], given[_TWO * row + _ONE]
    if words[_TWO * number] != word:
        return False
    place = words[_TWO * number + _ONE]
    if word & SIZE <= SHORT:
        return bool(place == rest)
    return bool(same_bytes(heap, place, given_heap, rest, word & SIZE))


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
            if given[2 * keys[k]] & SIZE > SHORT:
                prefetch(given_heap, given[2 * keys[k] + 1])
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
            if given[2 * keys[k]] & SIZE > SHORT:
                prefetch(heap, words[2 * max(np.int64(slots[places[k]] & _NUMBER), np.int64(1)) - 1])
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
