"""What is served was true at one moment, whatever the site did since; and a search that finds it if it was not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mediator.answering import Mediator
from mediator.catalog.bindfields import facts
from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.batch import as_ids
from mediator.flow.events import Landing
from mediator.state.coverage import Entry
from mediator.state.stem import SteM
from mediator.store.manifest import Manifest
from tests.answering.changing_site import FIELDS, Asking, Tale, run
from tests.answering.kit import ask, in_virtual_time, listed

SEEDS = range(60)
MIRRORS = (Mirror("site", "http://site.test"),)
SCAN = AccessMethod("scan", "scan", MIRRORS, Asking())
BY_K = AccessMethod("by_k", "index", MIRRORS, Asking(), required=("k",))
LISTED = "SELECT k, v FROM r WHERE k IN (1, 2)"


class Site:
    """Answers lookups by what it holds; scans too, until it does so no more."""

    def __init__(self) -> None:
        self.rows = [(1, "a"), (2, "b")]
        self.scanned = True

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        said = dict(request.query)
        fields, bindings = json.loads(said["fields"]), json.loads(said["bindings"])
        if not fields and not self.scanned:
            return Reply(403, {}, b"")
        rows = [row for row in self.rows if not fields or [row[0]] in bindings]
        return Reply(200, {}, json.dumps({"rows": rows, "more": False}).encode())


def _catalog(key: tuple[str, ...]) -> Catalog:
    return Catalog({"r": Relation("r", FIELDS, (SCAN, BY_K), key)}, {"site": Source("site")})


async def _asked(mediator: Mediator, sql: str, **said: float) -> list[tuple[object, ...]]:
    table, report = await ask(mediator, sql, **said)
    assert report.complete
    return sorted(listed(table), key=repr)


@pytest.mark.parametrize("key", [(), ("k",)], ids=["without a key", "with a key"])
@pytest.mark.parametrize("kept", [False, True], ids=["in one process", "across restarts"])
def test_old_and_new_versions_of_a_row_are_not_served_together(
    key: tuple[str, ...], kept: bool, tmp_path: Path
) -> None:
    site = Site()

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def mediating() -> Mediator:
            store = tmp_path if kept else None
            return Mediator(
                _catalog(key), threads=1, transport=site, store=store, wall=lambda: 1.8e9 + loop.time()
            )

        mediator = await mediating().__aenter__()
        try:
            assert await _asked(mediator, "SELECT k, v FROM r") == [(1, "a"), (2, "b")]
            await asyncio.sleep(100)
            site.rows, site.scanned = [(1, "z"), (2, "b")], False
            assert await _asked(mediator, LISTED, max_age=50) == [(1, "z"), (2, "b")]
            if kept:
                await mediator.__aexit__(None, None, None)
                mediator = await mediating().__aenter__()
            await asyncio.sleep(1)
            assert await _asked(mediator, LISTED) == [(1, "a"), (2, "b")], "the scan, as it was"
            assert await _asked(mediator, "SELECT k, v FROM r WHERE k = 1") == [(1, "z")], "what is newer"
            assert await _asked(mediator, LISTED, max_age=50) == [(1, "z"), (2, "b")]
        finally:
            await mediator.__aexit__(None, None, None)

    in_virtual_time(main())


def _searched(folder: Path, seeds: range = SEEDS, stop: bool = False) -> Tale:
    tale = Tale()
    for seed in seeds:
        run(seed, folder / str(seed) if seed % 2 else None, tale)
        if stop and tale.wrong:
            break
    return tale


def test_every_answer_is_what_the_site_held_at_one_moment(tmp_path: Path) -> None:
    tale = _searched(tmp_path)
    assert tale.wrong == []
    assert tale.checked > 500
    assert tale.served > 250


def _all_sent_since(patch: pytest.MonkeyPatch) -> None:
    """An entry vouches for whatever was sent since it was asked."""
    sent: dict[SteM, dict[int, float]] = {}
    build, vouched = SteM.build, SteM.vouched

    def built(self: SteM, landing: Landing, now: float) -> Any:
        new = landing.ids is None
        ids = build(self, landing, now)
        if new:
            sent.setdefault(self, {}).update(dict.fromkeys(as_ids(ids).tolist(), now))
        return ids

    def since(self: SteM, bind_set: tuple[str, ...], binding: tuple[object, ...], entry: Entry) -> Any:
        times = sent.get(self, {})
        late = [row for row in range(self.store.n) if times.get(row, np.inf) >= entry.at]
        brought = np.array(late, np.int32)
        return vouched(self, bind_set, binding, Entry(entry.known, entry.at, brought=brought))

    patch.setattr(SteM, "build", built)
    patch.setattr(SteM, "vouched", since)


def _all_stored(patch: pytest.MonkeyPatch) -> None:
    """An entry vouches for all rows that match."""
    vouched = SteM.vouched
    patch.setattr(SteM, "vouched", lambda self, b, v, e: vouched(self, b, v, Entry(e.known, e.at)))


def _numbers_begin_anew(patch: pytest.MonkeyPatch) -> None:
    """A process gives its lookups numbers that lookups of an earlier one have in the store."""
    patch.setattr(Manifest, "numbered", lambda self: 0)


def _all_that_cover(patch: pytest.MonkeyPatch) -> None:
    """A lookup is answered by all entries that cover it, not by one."""
    covered = SteM.covered

    def together(self: SteM, bind_set: Any, binding: Any, now: float, max_age: float) -> Any:
        found = covered(self, bind_set, binding, now, max_age)
        if found is None or found[2].brought is None:
            return found
        known = facts(bind_set, binding)
        entries = [e for of in self.coverage._sets.values() for _, e in of.implied(known)]
        ids = np.concatenate([as_ids(e.brought) for e in entries if e.brought is not None])
        return *found[:2], Entry(found[2].known, found[2].at, brought=np.unique(ids))

    patch.setattr(SteM, "covered", together)


@pytest.mark.parametrize("mutation", [_all_sent_since, _all_stored, _all_that_cover, _numbers_begin_anew])
def test_the_search_finds_it_if_other_rows_are_vouched_for(
    mutation: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    assert _searched(tmp_path, stop=True).wrong
