"""Large arrays: their pages are used again when nobody looks at them any more, and not before."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fixtures import book_trade
from mediator import answering, turns
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.state import memory
from mediator.state.growable import Growable
from mediator.state.memory import LARGE, WAIT, Slabs, Spare, empty, zeros
from mediator.state.rowstore import RowStore

COUNT = LARGE // 8 + 5


class Scripted:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Telling(Spare):
    """Tells when it has given something back."""

    def __init__(self, most: int, now: Scripted) -> None:
        super().__init__(most, now)
        self.released = asyncio.Event()

    def release(self, wait: float = WAIT) -> None:
        super().release(wait)
        self.released.set()


@pytest.fixture
def clock() -> Scripted:
    return Scripted()


@pytest.fixture(autouse=True)
def spare(monkeypatch: pytest.MonkeyPatch, clock: Scripted) -> Iterator[Spare]:
    mine = Spare(8 * LARGE, clock)
    monkeypatch.setattr(memory, "SPARE", mine)
    yield mine
    gc.collect()


def test_pages_are_used_again_and_zeros_are_zeros(spare: Spare) -> None:
    first = empty(COUNT, np.int64)
    first.fill(7)
    address = first.ctypes.data
    assert not spare.size
    del first
    assert spare.size
    second = zeros(COUNT, np.int64)
    assert second.ctypes.data == address
    assert not second.any()
    assert not spare.size


def test_as_long_as_anything_looks_at_pages_they_are_not_spare(spare: Spare) -> None:
    whole = empty(COUNT, np.int64)
    whole[:] = np.arange(COUNT)
    piece = whole[5:9]
    del whole
    assert not spare.size
    shown = pa.array(piece)
    del piece
    gc.collect()
    assert not spare.size, "Arrow looks at it without a copy"
    others = [empty(COUNT, np.int64) for _ in range(3)]
    for other in others:
        other.fill(-1)
    assert shown.to_pylist() == [5, 6, 7, 8]
    del shown
    gc.collect()
    assert spare.size


def test_slabs_go_as_wholes(monkeypatch: pytest.MonkeyPatch, spare: Spare) -> None:
    monkeypatch.setattr(memory, "_SLAB", 2 * LARGE)
    slabs = Slabs()
    pieces = [slabs.empty(LARGE // 4, np.uint8) for _ in range(9)]  # eight make up a slab
    for number, piece in enumerate(pieces):
        piece.fill(number)
    assert [set(piece.tolist()) for piece in pieces] == [{n} for n in range(9)]
    del pieces[1:8], piece
    assert not spare.size
    del pieces[0]
    assert spare.size


def test_what_waits_long_enough_is_released(spare: Spare, clock: Scripted) -> None:
    early, late = empty(COUNT, np.int64), empty(COUNT, np.int64)
    del early
    clock.now = 6.0
    del late
    size = spare.size
    clock.now = 11.0
    spare.release()
    assert spare.size == size // 2
    clock.now = 16.0
    spare.release()
    assert spare.size == 0


def test_only_so_much_waits(spare: Spare) -> None:
    arrays = [np.asarray(zeros(COUNT, np.int64)) for _ in range(20)]
    for array in arrays:
        array.fill(1)
    del arrays, array
    gc.collect()
    assert 0 < spare.size <= 8 * LARGE


def test_memory_that_was_only_reserved_takes_no_room_where_it_waits(spare: Spare) -> None:
    reserved = [empty(64 * COUNT, np.int64) for _ in range(3)]  # far more than may wait
    for array in reserved:
        array[:COUNT] = 1
    addresses = {array.ctypes.data for array in reserved}
    del reserved, array
    assert LARGE <= spare.size <= 8 * LARGE
    assert {empty(64 * COUNT, np.int64).ctypes.data for _ in range(2)} <= addresses


def test_where_the_system_does_not_say_all_of_a_piece_counts(
    spare: Spare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_MINCORE", None)
    array = empty(COUNT, np.int64)
    del array
    assert spare.size >= 8 * COUNT


def test_what_grows_into_used_pages_begins_with_zeros() -> None:
    dirty = [empty(16 * (2 << k) * LARGE // 8, np.int64) for k in range(3)]
    for array in dirty:
        array[: 2 * LARGE].fill(9)
    del dirty, array
    growing: Growable[np.int64] = Growable(np.int64)
    for total in (10, COUNT, 2 * COUNT, 3 * COUNT):
        growing.grow(total)
        assert not growing.used.any()


def test_threads_never_share_a_piece() -> None:
    def work(number: int) -> bool:
        sound = True
        for _ in range(200):
            array = empty(COUNT, np.int64)
            array[::4096] = number
            sound &= bool((array[::4096] == number).all())
        return sound

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


async def test_a_mediator_gives_back_what_its_queries_have_left(
    monkeypatch: pytest.MonkeyPatch, clock: Scripted
) -> None:
    spare = Telling(64 * LARGE, clock)
    for room in (answering, turns, memory):
        monkeypatch.setattr(room, "SPARE", spare)
    monkeypatch.setattr(turns, "WAIT", 0.01)
    async with book_trade(size=30) as web, Mediator(web.catalog) as mediator:
        left = empty(COUNT, np.int64)
        async with mediator.answering("SELECT title FROM books") as answers:
            assert [batch async for batch in answers]
            del left
        assert spare.size
        clock.now = 60.0
        spare.released.clear()
        await spare.released.wait()
        assert not spare.size
        left, later = empty(COUNT, np.int64), empty(COUNT, np.int64)
        del left
        assert spare.size
        async with Mediator(web.catalog):
            pass
        assert not spare.size
        left = empty(COUNT, np.int64)
        del left
        assert spare.size, "there is one more who may use it"
    assert not spare.size
    del later
    assert not spare.size, "nobody is there who would use it, or give it back"


async def test_a_mediator_that_is_closed_leaves_nothing_even_if_python_does_not_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[weakref.ref[RowStore]] = []
    begin = RowStore.__init__

    def noted(store: RowStore, schema: pa.Schema) -> None:
        made.append(weakref.ref(store))
        begin(store, schema)

    monkeypatch.setattr(RowStore, "__init__", noted)
    async with book_trade(size=30) as web:
        await mediated(web.catalog)  # what is made once is made
        made.clear()
        gc.collect()
        gc.disable()
        try:
            await mediated(web.catalog)
            assert made
            assert not any(store() for store in made)
        finally:
            gc.enable()


async def mediated(catalog: Catalog) -> None:
    async with Mediator(catalog) as mediator:
        async with mediator.answering(
            "SELECT b.title, o.price FROM books b JOIN offers o USING (isbn)"
        ) as answers:
            assert [batch async for batch in answers]
        assert answers.report.complete
        del answers


def test_large_arrays_have_huge_pages_where_the_system_knows_them() -> None:
    there = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not there.exists() or "[never]" in there.read_text():
        pytest.skip("this system has no huge pages")
    array = zeros(COUNT, np.int64)
    flags, inside = "", False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= array.ctypes.data < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            flags = line
    assert "hg" in flags.split()


def test_a_system_that_cannot_be_told_of_huge_pages_gives_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MADVISE", None)
    assert not zeros(COUNT, np.int64).any()
