"""The store alone: what goes in comes out, whatever happens in between."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from mediator.catalog.model import Field
from mediator.errors import StoreError
from mediator.store.distinct import distinct
from mediator.store.manifest import FILE, Manifest
from mediator.store.records import LISTED, LOOKUPS, Covered, Group
from mediator.store.store import Store, existing, fresh_rows, look
from tests.store.kit import (
    BAG,
    EVER,
    NOON,
    SET,
    Row,
    covered,
    files,
    listed,
    loaded,
    looked_up,
    scanned,
    sent,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as opened:
        yield opened


def test_rows_and_coverage_come_back(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a", "b"), looked_up(2)])
    with Store(tmp_path) as store:
        assert loaded(store, SET) == [(1, "a"), (1, "b")]
        assert covered(store, SET) == [(1,), (2,)]


def test_nothing_is_given_back_of_what_was_never_kept(store: Store) -> None:
    assert store.load(SET, NOON) is None


def test_a_row_that_two_lookups_brought_comes_back_once_and_is_of_both(store: Store) -> None:
    store.append([Group(SET, 0, [sent(SET, NOON + 1, (1, "a"), (1, "a"), lookup=7)], [])])
    covered = [Covered(("k",), (1,), NOON, EVER, 7), Covered(("v",), ("a",), NOON, EVER, 8)]
    store.append([Group(SET, 0, [sent(SET, NOON + 2, (2, "a"), (1, "a"), lookup=8)], covered)])
    kept = store.load(SET, NOON + 10)
    assert kept is not None
    rows = list(zip(*(c.to_pylist() for c in kept.rows.columns), strict=True))
    assert sorted(rows) == [(1, "a"), (2, "a")]
    assert {n: sorted(rows[i] for i in ids) for n, ids in kept.brought.items()} == {
        7: [(1, "a")],
        8: [(1, "a"), (2, "a")],
    }


def test_null_equals_null_among_rows(store: Store) -> None:
    rows = sent(SET, NOON, (1, None), (1, None))
    store.append([Group(SET, 0, [rows], [Covered(("k",), (1,), NOON, EVER, 1)])])
    assert loaded(store, SET) == [(1, None)]


def test_equal_rows_of_a_bag_stay_apart(store: Store) -> None:
    store.append([scanned((1, "a"), (1, "a"))])
    assert loaded(store, BAG) == [(1, "a"), (1, "a")]


def test_a_bag_is_kept_when_its_scan_has_ended_and_not_before(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([scanned((1, "a"), stem=1, ended=False)])
        assert store.load(BAG, NOON) is None
        store.append([scanned((2, "b"), stem=1)])
        assert loaded(store, BAG) == [(1, "a"), (2, "b")]
        store.append([scanned((3, "c"), stem=2, ended=False)])
        assert loaded(store, BAG) == [(1, "a"), (2, "b")]
    with Store(tmp_path) as store:
        assert store.swept == 1
        assert loaded(store, BAG) == [(1, "a"), (2, "b")]


def test_a_bag_that_is_scanned_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([scanned((1, "a"))])
        store.append([scanned((2, "b"))])
        assert loaded(store, BAG) == [(2, "b")]
        assert len(files(tmp_path)) == 1


def test_a_scan_that_was_broken_off_makes_room_for_the_next(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([scanned((1, "a"), stem=1, ended=False)])
        store.append([scanned((2, "b"), stem=2)])
        assert loaded(store, BAG) == [(2, "b")]
        assert len(files(tmp_path)) == 1


def test_a_second_end_of_one_scan_changes_nothing(store: Store) -> None:
    store.append([scanned((1, "a"), stem=1)])
    store.append([scanned(stem=1)])
    assert loaded(store, BAG) == [(1, "a")]


def test_what_has_expired_is_not_given_back(store: Store) -> None:
    store.append([looked_up(1, "a", until=NOON + 60), looked_up(2, "b", at=NOON + 5)])
    assert covered(store, SET, NOON + 60) == [(1,), (2,)]
    assert covered(store, SET, NOON + 61) == [(2,)]
    assert loaded(store, SET, NOON + 61) == [(2, "b")]


def test_what_is_stale_leaves_the_disk_when_it_is_most_of_what_is_there(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a", "b", "c", until=NOON + 60), looked_up(2, "d", at=NOON + 5)])
        assert loaded(store, SET, NOON + 61) == [(2, "d")]
        held = store.held(SET.name)
        assert (held.rows, [c.binding for c in held.covered]) == (1, [(2,)])
        store.load(SET, NOON + 10)
        store.discard(SET.name)
        assert not files(tmp_path)


def test_where_all_has_expired_nothing_is_left(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a", until=NOON + 60)])
        assert store.load(SET, NOON + 61) is None
        assert (store.names(), files(tmp_path)) == ([], [])


def test_many_segments_become_few_and_say_the_same(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for k in range(200):
            store.append([looked_up(k, f"v{k}", "shared")])
        assert len(files(tmp_path)) < 25
        assert len(files(tmp_path)) == len(store.held(SET.name).segments)
        assert len(loaded(store, SET)) == 400
    with Store(tmp_path) as store:
        assert store.swept == 0
        assert covered(store, SET) == [(k,) for k in range(200)]


def test_rows_come_back_when_their_end_came_later(store: Store) -> None:
    store.append([Group(SET, 0, [sent(SET, NOON + 1, (1, "a"))], [])])
    assert store.load(SET, NOON + 2) is None
    store.append([Group(SET, 0, [sent(SET, NOON + 2, (1, "b"))], [Covered(("k",), (1,), NOON, EVER, 1)])])
    assert loaded(store, SET) == [(1, "a"), (1, "b")]


def test_a_relation_that_is_declared_otherwise_does_not_suit(store: Store) -> None:
    store.append([looked_up(1, "a")])
    assert store.suits(SET)
    assert store.suits(BAG)
    k, v = SET.fields
    for other in (
        replace(SET, key=("k",)),
        replace(SET, fields=(v, k)),
        replace(SET, fields=(k, Field("v", pa.large_string()))),
        replace(SET, methods=BAG.methods),
    ):
        assert not store.suits(other)


def test_what_the_manifest_does_not_name_is_swept_and_nothing_else(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
    for name in ("0000000099.arrow", "0000000100.unfinished", "notes.txt"):
        (tmp_path / "segments" / name).write_text("left over")
    with Store(tmp_path) as store:
        assert store.swept == 2
        assert loaded(store, SET) == [(1, "a")]
        store.append([looked_up(2, "b")])
        assert loaded(store, SET) == [(1, "a"), (2, "b")]
    assert (tmp_path / "segments" / "notes.txt").exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
        with monkeypatch.context() as patch:
            patch.setattr(os, step, _full)
            with pytest.raises(OSError, match="No space left"):
                store.append([looked_up(2, "b")])
        assert covered(store, SET) == [(1,)]
        assert loaded(store, SET) == [(1, "a")]


def test_a_transaction_that_fails_claims_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
        with monkeypatch.context() as patch:
            patch.setattr(Manifest, "cover", _full)
            with pytest.raises(OSError, match="No space left"):
                store.append([looked_up(2, "b")])
        assert loaded(store, SET) == [(1, "a")]
        assert len(store.held(SET.name).segments) == 1


def test_a_segment_with_fewer_rows_than_it_should_have_is_a_fault(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
        store.append([looked_up(2, "b", "c")])
        one, two = sorted((tmp_path / "segments").iterdir())
        two.write_bytes(one.read_bytes())
        with pytest.raises(StoreError, match=r"of looked_up has 1 rows instead of 2"):
            store.load(SET, NOON)
        two.unlink()
        with pytest.raises(StoreError, match=r"of looked_up cannot be read"):
            store.load(SET, NOON)


def test_expiring_by_age_keeps_what_is_younger(store: Store) -> None:
    store.append([looked_up(1, "a", "b"), looked_up(2, "c", at=NOON + 100)])
    assert store.expire(SET.name, NOON + 50) == (1, 2)
    assert loaded(store, SET, NOON + 200) == [(2, "c")]


def test_expiring_everything_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a"), scanned((1, "a"))])
        assert store.expire(SET.name, EVER) == (1, 1)
        assert store.expire(BAG.name, EVER) == (1, 1)
        assert (store.names(), files(tmp_path)) == ([], [])


def test_a_table_has_only_rows_that_fresh_coverage_vouches_for(store: Store) -> None:
    store.append([looked_up(1, "dropped", "a"), looked_up(2, "b", until=NOON + 5)])
    store.append([looked_up(1, "a", at=NOON + 2)])
    assert listed(store.table(SET.name, NOON + 4)) == [(1, "a"), (2, "b")]
    assert listed(store.table(SET.name, NOON + 10)) == [(1, "a")]


def test_the_table_of_a_bag_has_its_equal_rows(store: Store) -> None:
    store.append([scanned((1, "a"), (1, "a"))])
    assert listed(store.table(BAG.name, NOON)) == [(1, "a"), (1, "a")]


def test_an_unknown_relation_is_told_what_there_is(store: Store) -> None:
    store.append([looked_up(1, "a")])
    with pytest.raises(StoreError, match=r"holds nothing of 'books'; there is looked_up"):
        store.table("books", NOON)


def test_a_second_writer_is_told_who_the_first_is(store: Store) -> None:
    with pytest.raises(StoreError, match=rf"in use by process {os.getpid()}: wait until that ends"):
        Store(store.folder)


def test_a_look_does_not_wait_for_the_writer(store: Store) -> None:
    store.append([looked_up(1, "a")])
    (held,) = look(store.folder)
    assert (held.declared.name, held.rows, len(held.covered)) == (SET.name, 1, 1)


def test_folders_that_are_no_stores_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(StoreError, match="is no store, and it is not empty: name another folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="is a file: name a folder"):
        Store(tmp_path / "letter.txt")
    with pytest.raises(StoreError, match="is no store: `mediator query --store"):
        existing(tmp_path)
    with pytest.raises(StoreError, match="is no store"):
        look(tmp_path / "nowhere")
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_somebody_elses_segments_are_not_swept(tmp_path: Path) -> None:
    theirs = tmp_path / "segments" / "1.arrow"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    with pytest.raises(StoreError, match="is no store, and it is not empty"):
        Store(tmp_path)
    assert theirs.read_text() == "mine"


def test_a_store_whose_making_was_broken_off_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "lock").touch()
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
        assert loaded(store, SET) == [(1, "a")]


def test_a_manifest_that_is_something_else_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    manifest = tmp_path / FILE
    manifest.write_bytes(b"not a database, but longer than the header of one" * 10)
    with pytest.raises(StoreError, match="is not a store's manifest"):
        Store(tmp_path)
    manifest.unlink()
    with sqlite3.connect(manifest) as other:
        other.execute("CREATE TABLE guests (name TEXT)")
    other.close()
    with pytest.raises(StoreError, match="is a database of something else"):
        Store(tmp_path)


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as manifest:
        manifest.execute("PRAGMA user_version = 7")
    manifest.close()
    with pytest.raises(StoreError, match=r"another version of the mediator \(format 7, not 2\)"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="another version"):
        look(tmp_path)


def test_what_an_earlier_version_kept_is_discarded_by_the_next_writer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Store(tmp_path) as store:
        store.append([looked_up(1, "a")])
    with sqlite3.connect(tmp_path / FILE) as manifest:
        manifest.execute("ALTER TABLE coverage DROP COLUMN lookup")
        manifest.execute("PRAGMA user_version = 1")
    manifest.close()
    (tmp_path / "requests.json").write_text("{}")
    with pytest.raises(
        StoreError, match=r"by an earlier version of the mediator \(format 1, not 2\): what it kept"
    ):
        look(tmp_path)
    with Store(tmp_path) as store:
        assert "What " in caplog.text
        assert "is discarded: an earlier version of the mediator wrote it (format 1, not 2)" in caplog.text
        assert (store.names(), store.swept, files(tmp_path)) == ([], 1, [])
        store.append([looked_up(2, "b")])
    caplog.clear()
    with Store(tmp_path) as store:
        assert loaded(store, SET) == [(2, "b")]
        assert (tmp_path / "requests.json").exists(), "how many requests were sent is no part of it"
    assert not caplog.text


def test_lookups_are_numbered_after_all_that_it_knows_of(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert store.numbered == 0
        store.append([Group(SET, 0, [], [Covered(("k",), (1,), NOON, EVER, 7)])])
        assert store.numbered == 7
        store.append([Group(SET, 0, [sent(SET, NOON, (1, "a"), lookup=9)], [])])
    with Store(tmp_path) as store:
        assert store.numbered == 9, "an end may never have come of it, and yet its rows are there"


def test_an_end_that_is_told_late_does_not_take_the_place_of_a_newer_one(store: Store) -> None:
    store.append([looked_up(1, "new", at=NOON + 5)])
    store.append([looked_up(1, "old")])
    assert loaded(store, SET) == [(1, "new")]


def _rescanned(number: int, *rows: Row) -> Group:
    at = NOON + number
    return Group(SET, 0, [sent(SET, at, *rows, lookup=number)], [Covered((), (), at, EVER, number)])


def test_rows_know_no_more_of_scans_in_whose_place_others_came(store: Store) -> None:
    for number in range(1, 100):
        store.append([_rescanned(number, (1, "a"), (number, "b"))])
    merged = [store._segments.read(s) for s in store.held(SET.name).segments]
    assert sum(len(lookups) for rows in merged for lookups in rows.column(LOOKUPS).to_pylist()) < 50
    assert loaded(store, SET, NOON + 200) == [(1, "a"), (99, "b")]


def test_a_table_has_what_was_heard_last_of_each_row(store: Store) -> None:
    """A scan, then a lookup that found another version, one that found nothing, and one that is of an earlier time."""
    store.append([_rescanned(500, (1, "a"), (2, "b"), (3, "c"), (4, "d"))])
    store.append([looked_up(1, "z", at=NOON + 600), looked_up(2, at=NOON + 600)])
    store.append([looked_up(4, "old", at=NOON + 400)])
    assert listed(store.table(SET.name, NOON + 700)) == [(1, "z"), (3, "c"), (4, "d")]
    assert fresh_rows(store.folder, store.held(SET.name), []).num_rows == 0


def test_expiring_what_is_newer_brings_back_what_is_older_as_it_was(store: Store) -> None:
    store.append([looked_up(1, "z", at=NOON + 600, until=NOON + 650)])
    store.append([_rescanned(500, (1, "a"), (2, "b"))])
    assert listed(store.table(SET.name, NOON + 640)) == [(1, "z"), (2, "b")]
    assert listed(store.table(SET.name, NOON + 700)) == [(1, "a"), (2, "b")]
    kept = store.load(SET, NOON + 700)
    assert kept is not None
    assert listed(kept.rows) == [(1, "a"), (2, "b")]


def test_rows_of_types_that_arrow_cannot_group_are_distinct_too() -> None:
    rows = pa.table({"v": [[1], [1], [2]], LOOKUPS: pa.array([[1], [2, 3], [2]], LISTED)})
    found = {tuple(r["v"]): sorted(r[LOOKUPS]) for r in distinct(rows).to_pylist()}
    assert found == {(1,): [1, 2, 3], (2,): [2]}
    assert distinct(rows, only={1}).to_pylist() == [{"v": [1], LOOKUPS: [1]}]
    assert len(distinct(rows, but={2})) == 1


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")
