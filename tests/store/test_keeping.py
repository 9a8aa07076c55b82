"""How news comes from SteMs to the store, and what is left when that is broken off."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from fixtures import Behaviour, Fixed, book_trade_web
from mediator.catalog.model import Relation
from mediator.flow.events import Landing
from mediator.state.coverage import Entry, Known
from mediator.state.stem import SteM
from mediator.store.news import News
from mediator.store.records import Covered
from mediator.store.store import Store, look_at
from tests.answering.kit import all_of, ask, in_virtual_time
from tests.store.kit import BAG, NOON, SET, Row, keeping, sent


def _landing(*rows: Row, lookup: int = 3) -> Landing:
    landing = Landing(sent(SET, 0.0, *rows).rows)
    landing.lookup = lookup
    return landing


def test_an_end_is_taken_with_the_rows_that_came_before_it() -> None:
    calls: list[int] = []
    stem, landing = SteM(SET, News(SET, lambda: calls.append(1), 100)), _landing((1, "a"))
    stem.receive(landing)
    stem.promise(("k",), [(1,)], Entry(Known.COMPLETE, 2.0, 60.0), [landing])
    assert calls
    group = stem.news(3.0, NOON)
    assert group is not None
    assert [(s.rows.num_rows, s.at, s.lookup) for s in group.rows] == [(1, NOON + 3, 103)]
    assert group.covered == [Covered(("k",), (1,), NOON + 2, NOON + 60, 103)]
    assert stem.news(4.0, NOON) is None


def test_a_landing_that_is_built_twice_is_news_once() -> None:
    stem, landing = SteM(SET, News(SET, lambda: None)), _landing((1, "a"))
    stem.build(landing, 1.0)
    stem.receive(landing)
    stem.build(landing, 2.0)
    group = stem.news(3.0, 0.0)
    assert group is not None
    assert [s.at for s in group.rows] == [1.0]


def test_a_stem_without_a_store_has_no_news() -> None:
    stem = SteM(SET)
    stem.receive(_landing((1, "a")))
    assert stem.news(1.0, 0.0) is None


@pytest.mark.parametrize("relation", [SET, BAG], ids=["a set", "a bag"])
def test_a_restored_stem_answers_from_what_was_kept(tmp_path: Path, relation: Relation) -> None:
    bind_set, binding = (("k",), (1,)) if relation is SET else ((), ())
    stem = SteM(relation, News(relation, lambda: None))
    landing = _landing((1, "a"), (1, "b"))
    stem.receive(landing)
    stem.promise(bind_set, [binding], Entry(Known.COMPLETE, 0.0), [landing])
    group = stem.news(1.0, NOON)
    assert group is not None
    with Store(tmp_path) as store:
        store.append([group])
        kept = store.load(relation, NOON + 10)
    assert kept is not None
    again = SteM(relation)
    again.restore(kept, -NOON)
    found = again.covered(bind_set, binding, 10.0, 10.0)
    assert found is not None
    assert len(again.vouched(*found)) == 2
    assert again.covered(bind_set, binding, 10.0, 9.0) is None


@pytest.mark.parametrize("first_ends", [False, True])
def test_of_a_bag_that_is_scanned_twice_one_scan_is_served_and_only_the_first_one_kept(
    tmp_path: Path, first_ends: bool
) -> None:
    stem = SteM(BAG, News(BAG, lambda: None))
    first, second = _landing((1, "a"), (2, "b")), _landing((1, "a"), (2, "b"), (2, "b"), lookup=4)
    stem.receive(first)
    if first_ends:
        stem.promise((), ((),), Entry(Known.COMPLETE, 0.0), [first])
    stem.receive(second)
    stem.promise((), ((),), Entry(Known.COMPLETE, 1.0), [second])
    found = stem.covered((), (), 2.0, 10.0)
    assert found is not None
    assert stem.vouched(*found) == second.ids == range(2, 5)
    group = stem.news(2.0, NOON)
    assert group is not None
    with Store(tmp_path) as store:
        store.append([group])
        kept = store.load(BAG, NOON + 3)
    assert (kept is not None) == first_ends
    assert kept is None or kept.rows.num_rows == 2


def test_what_comes_is_kept_without_being_asked_to(tmp_path: Path) -> None:
    """While a query still waits for one source, what another has answered is on the disk."""
    web = book_trade_web(60)
    web.behave("authors", Behaviour(latency=Fixed(30.0)))

    async def main() -> None:
        async with keeping(web, tmp_path) as mediator:
            async with mediator.answering("SELECT isbn FROM books") as answers:
                assert len(await all_of(answers)) == 60
            async with mediator.answering("SELECT name FROM authors WHERE id = 1001"):
                await asyncio.sleep(10)
                assert look_at(tmp_path, "books").rows == 60

    in_virtual_time(main())


def test_a_mediator_that_is_left_by_an_error_keeps_what_came_and_frees_the_store(tmp_path: Path) -> None:
    web = book_trade_web(60)

    async def main() -> None:
        with contextlib.suppress(ZeroDivisionError):
            async with keeping(web, tmp_path) as mediator:
                await ask(mediator, "SELECT isbn FROM books")
                raise ZeroDivisionError
        assert look_at(tmp_path, "books").rows == 60
        Store(tmp_path).close()

    in_virtual_time(main())


def test_an_opening_that_is_broken_off_frees_the_store(tmp_path: Path) -> None:
    web = book_trade_web(60)

    async def opened() -> None:
        async with keeping(web, tmp_path):
            await asyncio.sleep(0)

    async def main() -> None:
        for hops in range(12):
            async with asyncio.TaskGroup() as group:
                task = group.create_task(opened())
                for _ in range(hops):
                    await asyncio.sleep(0)
                task.cancel()
            store = Store(tmp_path)  # refused while anybody holds it
            assert store.folder == tmp_path
            store.close()

    asyncio.run(main())
