"""Strings and their numbers, in open slots of two words each.

The first word is the string's second one (`text.py`), or `long_code` for that; the second is its mark, which holds its
first four bytes and its length, and its number plus one. So a slot tells all of a string of at most twelve bytes, and
one trip to memory finds its number. Of a longer one the bytes are looked at too, where mark and code are the same: they
lie in the heap, behind their count.

As in `hashed.py` the home is the hash's highest bits, what is empty is 0, and keys are taken a block at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.blocks import BLOCK, block_rows
from mediator.state.kernels.memory import prefetch, read_word, write_word
from mediator.state.kernels.text import SHORT, SIZE, long_code, same_bytes, word_code

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]
Words = NDArray[np.int64]
Heap = NDArray[np.uint8]
Numbers = NDArray[np.int64]

MOST = (1 << 28) - 2  # strings that can have numbers
COUNTED = 8  # bytes before those of a string in the heap
_NUMBER = np.uint64((1 << 28) - 1)
_MARK = ~_NUMBER
_FIRST = np.uint64(0xFFFFFFFF00000000)
_HALF = np.uint64(32)


@njit(nogil=True, cache=True, inline="always")
def _marked(word: int) -> np.uint64:
    """A first word as a mark; all longer strings have one length there."""
    size = word & SIZE if word & SIZE <= SHORT else SHORT + 1
    return np.uint64(word) & _FIRST | np.uint64(size) << np.uint64(28)


@njit(nogil=True, cache=True, inline="always")
def _home(mark: np.uint64, rest: np.uint64, shift: np.uint64) -> int:
    return np.int64((word_code(int(mark), int(rest)) >> _HALF) >> shift)


@njit(nogil=True, cache=True)
def spread_pairs(old: Slots, new: Slots, shift: np.uint64) -> None:
    """Take every string over into a larger table, which is empty."""
    last = len(new) // 2 - 1
    for k in range(len(old) // 2):
        rest, entry = old[2 * k], old[2 * k + 1]
        if entry == 0:
            continue
        slot = _home(entry & _MARK, rest, shift)
        while new[2 * slot + 1] != 0:
            slot = slot + 1 if slot < last else 0
        new[2 * slot] = rest
        new[2 * slot + 1] = entry


@njit(nogil=True, cache=True)
def _same(heap: Heap, place: int, given: Heap, at: int, size: int) -> bool:
    """Whether a long string that has a number is this one."""
    return np.int64(read_word(heap, place)) == size and same_bytes(heap, place + COUNTED, given, at, size)


@njit(nogil=True, cache=True)
def number_texts(
    slots: Slots,
    shift: np.uint64,
    places: Words,
    heap: Heap,
    count: int,
    kept: int,
    words: Words,
    given: Heap,
    valid: Mask,
    nulls: bool,
    start: int,
    stop: int,
    numbers: Numbers,
) -> tuple[int, int]:
    """Give the strings [start, stop) their numbers, and those that have none yet the next ones; NULLs get -1.

    `count` strings have numbers, and `kept` bytes of `heap` are used; `places` says where in it a long one is. Returns
    how many and how much it is then. There must be room for all that are given.
    """
    last = len(slots) // 2 - 1
    marks, rests = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    homes = np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        beyond = min(first + BLOCK, stop)
        for row in range(first, beyond):
            word, rest = words[2 * row], words[2 * row + 1]
            if word & SIZE > SHORT:
                rest = long_code(given, rest, word & SIZE)
            k = row - first
            marks[k], rests[k] = _marked(word), np.uint64(rest)
            homes[k] = _home(marks[k], rests[k], shift)
            prefetch(slots, 2 * homes[k])
        for row in range(first, beyond):
            if nulls and not valid[row]:
                numbers[row] = -1
                continue
            mark, rest, slot = marks[row - first], rests[row - first], homes[row - first]
            size, at = words[2 * row] & SIZE, words[2 * row + 1]
            while True:
                entry = slots[2 * slot + 1]
                if entry == 0:
                    slots[2 * slot] = rest
                    slots[2 * slot + 1] = mark | np.uint64(count + 1)
                    if size > SHORT:
                        places[count] = kept
                        write_word(heap, kept, np.uint64(size))
                        for k in range(size):
                            heap[kept + COUNTED + k] = given[at + k]
                        kept += COUNTED + size
                    numbers[row] = count
                    count += 1
                    break
                if entry & _MARK == mark and slots[2 * slot] == rest:
                    number = np.int64(entry & _NUMBER) - 1
                    if size <= SHORT or _same(heap, places[number], given, at, size):
                        numbers[row] = number
                        break
                slot = slot + 1 if slot < last else 0
    return count, kept


@njit(nogil=True, cache=True)
def find_numbers(
    slots: Slots,
    shift: np.uint64,
    places: Words,
    heap: Heap,
    words: Words,
    given: Heap,
    ids: Ids,
    picked: bool,
    offset: int,
    stop: int,
    numbers: Numbers,
) -> None:
    """The numbers of the first `stop` keys, as far as `number_texts` has given them any; -1 for the others."""
    last = len(slots) // 2 - 1
    keys, homes = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    marks, rests = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    for first in range(0, stop, BLOCK):
        count = block_rows(words, 2, ids, picked, offset, first, stop, keys)
        for k in range(count):
            word, rest = words[2 * keys[k]], words[2 * keys[k] + 1]
            if word & SIZE > SHORT:
                rest = long_code(given, rest, word & SIZE)
            marks[k], rests[k] = _marked(word), np.uint64(rest)
            homes[k] = _home(marks[k], rests[k], shift)
            prefetch(slots, 2 * homes[k])
        for k in range(count):
            slot = homes[k]
            size, at = words[2 * keys[k]] & SIZE, words[2 * keys[k] + 1]
            numbers[first + k] = -1
            entry = slots[2 * slot + 1]
            while entry != 0:
                if entry & _MARK == marks[k] and slots[2 * slot] == rests[k]:
                    number = np.int64(entry & _NUMBER) - 1
                    if size <= SHORT or _same(heap, places[number], given, at, size):
                        numbers[first + k] = number
                        break
                slot = slot + 1 if slot < last else 0
                entry = slots[2 * slot + 1]
