"""Strings as pairs of words, so that gathering or comparing one costs what a number costs.

String i has words 2 i and 2 i + 1. The first is the length (low 32 bits) and the first four bytes; the second holds the
next eight bytes of a string of at most twelve, or the place of a longer one in the heap.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.codes import mixed
from mediator.state.kernels.memory import AHEAD, prefetch, read_word, write_word

Words = NDArray[np.int64]
Heap = NDArray[np.uint8]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

SHORT = 12
SPARE = 12  # bytes that must be free behind gathered text
SIZE = np.int64(0xFFFFFFFF)  # of a first word
_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xC2B2AE3D27D4EB4F)
_C = np.uint64(0xFF51AFD7ED558CCD)


@njit(nogil=True, cache=True, inline="always")
def _low_bytes(word: np.uint64, count: int) -> np.uint64:
    """The first `count` bytes of a word, of at most eight."""
    if count >= 8:
        return word
    return word & ((np.uint64(1) << np.uint64(8 * count)) - np.uint64(1))


@njit(nogil=True, cache=True, inline="always")
def _packed(data: Heap, start: int, count: int) -> np.uint64:
    word = np.uint64(0)
    for k in range(count):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@njit(nogil=True, cache=True, inline="always")
def copy_bytes(source: Heap, p: int, target: Heap, q: int, size: int) -> None:
    """More than eight bytes from one heap to another."""
    for k in range(0, size - 8, 8):
        write_word(target, q + k, read_word(source, p + k))
    write_word(target, q + size - 8, read_word(source, p + size - 8))


@njit(nogil=True, cache=True)
def to_words(
    offsets: NDArray[np.int64] | NDArray[np.int32],
    data: Heap,
    first: int,
    count: int,
    words: Words,
    start: int,
    heap: Heap,
    used: int,
) -> int:
    """Write `count` strings at words[start:]; returns how much of the heap is used then."""
    for i in range(count):
        at = offsets[first + i]
        size = offsets[first + i + 1] - at
        if at + 12 <= len(data):
            prefix = _low_bytes(read_word(data, at), min(size, 4))
            more = _low_bytes(read_word(data, at + 4), size - 4) if size > 4 else np.uint64(0)
        else:
            prefix = _packed(data, at, min(size, 4))
            more = _packed(data, at + 4, min(size, 12) - 4) if size > 4 else np.uint64(0)
        words[2 * (start + i)] = np.int64(np.uint64(size) | (prefix << np.uint64(32)))
        if size <= SHORT:
            words[2 * (start + i) + 1] = np.int64(more)
        else:
            words[2 * (start + i) + 1] = used
            copy_bytes(data, at, heap, used, size)
            used += size
    return used


@njit(nogil=True, cache=True, inline="always")
def word_code(word: int, rest: int) -> np.uint64:
    """A 64-bit hash of a string's first word and its second, or `long_code` for that; equal strings have equal ones.

    It takes numbers and no array: Numba counts references to an array whenever it hands one on.
    """
    second = np.uint64(rest)
    code = np.uint64(word) * _A ^ (second ^ second >> np.uint64(29)) * _B
    return (code ^ code >> np.uint64(32)) * _C


@njit(nogil=True, cache=True)
def long_code(heap: Heap, at: int, size: int) -> int:
    """A hash of more than eight bytes in the heap."""
    code = np.uint64(size)
    for k in range(at, at + size - 8, 8):
        code = mixed(code ^ read_word(heap, k))
    tail = size - 1 & 7  # of the last eight bytes all but this many, less one, are in the words before them
    last = read_word(heap, at + size - 8) >> np.uint64(8 * (7 - tail))
    return np.int64(mixed(code ^ last))


@njit(nogil=True, cache=True)
def same_bytes(left: Heap, p: int, right: Heap, q: int, size: int) -> bool:
    """Whether stretches of two heaps, of more than eight bytes, are equal."""
    for k in range(0, size - 8, 8):
        if read_word(left, p + k) != read_word(right, q + k):
            return False
    return bool(read_word(left, p + size - 8) == read_word(right, q + size - 8))


@njit(nogil=True, cache=True)
def hash_words(words: Words, heap: Heap, start: int, stop: int, out: NDArray[np.int64]) -> None:
    """The codes of some strings."""
    for i in range(start, stop):
        word, rest = words[2 * i], words[2 * i + 1]
        if word & SIZE > SHORT:
            rest = long_code(heap, rest, word & SIZE)
        out[i - start] = np.int64(word_code(word, rest))


@njit(nogil=True, cache=True)
def same_words(
    left: Words, left_heap: Heap, at: Ids, right: Words, right_heap: Heap, rows: Ids, out: Mask
) -> None:
    """Clear `out` where the strings left[at] and right[rows] differ."""
    for i in range(len(out)):
        a, b = 2 * at[i], 2 * rows[i]
        word = left[a]
        if word != right[b]:
            out[i] = False
        elif word & SIZE <= SHORT:
            out[i] &= left[a + 1] == right[b + 1]
        elif not same_bytes(left_heap, left[a + 1], right_heap, right[b + 1], word & SIZE):
            out[i] = False


@njit(nogil=True, cache=True)
def gather_words(words: Words, rows: Ids, out: Words, offsets: NDArray[np.int64]) -> None:
    """The words of these strings, and where each will start and end among their bytes."""
    total = np.int64(0)
    offsets[0] = 0
    last = len(rows) - 1
    for i in range(len(rows)):
        prefetch(words, 2 * np.int64(rows[min(i + AHEAD, last)]))
        row = np.int64(rows[i])
        out[2 * i] = words[2 * row]
        out[2 * i + 1] = words[2 * row + 1]
    for i in range(len(rows)):
        total += out[2 * i] & SIZE
        offsets[i + 1] = total


@njit(nogil=True, cache=True)
def to_text(words: Words, heap: Heap, offsets: NDArray[np.int64], data: Heap) -> None:
    """Write strings one after another, short ones always as twelve bytes: what is too much is the next one's to write
    over. `data` must have room for that behind the last."""
    last = len(offsets) - 2
    for i in range(last + 1):
        soon = min(i + AHEAD, last)
        if words[2 * soon] & SIZE > SHORT:
            prefetch(heap, words[2 * soon + 1])
        at = offsets[i]
        word, rest = np.uint64(words[2 * i]), words[2 * i + 1]
        size = np.int64(word) & SIZE
        if size <= SHORT:
            write_word(data, at, (word >> np.uint64(32)) | (np.uint64(rest) << np.uint64(32)))
            write_word(data, at + 4, np.uint64(rest))
        else:
            copy_bytes(heap, rest, data, at, words[2 * i] & SIZE)
