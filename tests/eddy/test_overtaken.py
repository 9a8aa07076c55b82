"""A relation that is scanned and looked up at the same time: what the one has brought, the other need not bring."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.flow.events import SEED, Arrived, Ask, Cancel, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

AT = (Mirror("site", ""),)
SCAN = AccessMethod("scan", "scan", AT, None)
BY_KEY = AccessMethod("by_key", "index", AT, None, required=("key",))
SQL = "select r.n, t.v from r join t on r.key = t.key"


def fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, pa.int64()) for name in names)


class Query:
    """Steps by hand: rows land, and what is asked and answered piles up."""

    def __init__(self, key: tuple[str, ...] = ("key",)) -> None:
        r = Relation("r", fields("n", "key"), (SCAN,))
        t = Relation("t", fields("key", "v"), (SCAN, BY_KEY), key)
        catalog = Catalog({"r": r, "t": t}, {"site": Source("site")})
        query = understand(SQL, catalog)
        self.stages = Stages(query, verdicts_of(query, catalog), House(lambda: 0.0), Settings())
        self.asks: list[Ask] = []
        self.cancels: list[Cancel] = []
        self.answers: list[tuple[int, int]] = []
        self._obey(self.stages.start())
        self.scans = {ask.relation: ask.number for ask in self.asks}

    @property
    def lookups(self) -> list[tuple[object, ...]]:
        return [b for ask in self.asks if ask.method == "by_key" for b in ask.bindings]

    @property
    def called_back(self) -> list[tuple[object, ...]]:
        return [b for cancel in self.cancels for b in cancel.bindings]

    def land(self, relation: str, *rows: tuple[int, int], ask: int | None = None) -> None:
        names = ("n", "key") if relation == "r" else ("key", "v")
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        number = self.scans[relation] if ask is None else ask
        self.stages.admit(Arrived(number, Landing(pa.RecordBatch.from_pydict(columns))))
        self.turn()

    def end(self, ask: int, *bindings: tuple[object, ...]) -> None:
        self.stages.admit(Exhausted(ask, bindings or SEED, landings=()))
        self.turn()

    def turn(self) -> None:
        while not self.stages.idle:
            self._obey(self.stages.turn())

    def _obey(self, work: Work) -> None:
        for command in work.commands:
            if isinstance(command, Ask):
                self.asks.append(command)
            else:
                self.cancels.append(command)
        for batch in work.answers:
            self.answers += [(row["n"], row["v"]) for row in batch.to_pylist()]


def test_a_lookup_that_the_scan_overtakes_is_called_back() -> None:
    query = Query()
    query.land("r", (1, 10), (2, 20), (3, 30))
    assert query.lookups == [(10,), (20,), (30,)]
    query.land("t", (20, 200), (90, 900))
    assert query.called_back == [(20,)]
    assert query.answers == [(2, 200)]


def test_a_row_that_found_its_only_match_is_not_looked_up() -> None:
    query = Query()
    query.land("t", (10, 100))
    query.land("r", (1, 10), (2, 20), (3, 10))
    assert query.lookups == [(20,)]
    assert sorted(query.answers) == [(1, 100), (3, 100)]


def test_without_a_declared_key_there_may_be_more() -> None:
    query = Query(key=())
    query.land("t", (10, 100))
    query.land("r", (1, 10), (2, 20))
    query.land("t", (20, 200))
    assert query.lookups == [(10,), (20,)]
    assert query.called_back == []


def test_what_a_lookup_brings_calls_back_no_other_and_all_is_answered_once() -> None:
    query = Query()
    query.land("r", (1, 10), (2, 20), (3, 30))
    lookup = query.asks[-1].number
    query.land("t", (10, 100), ask=lookup)
    assert query.called_back == []
    query.end(lookup, (10,))
    query.land("t", (20, 200))
    query.land("t", (10, 100), (30, 300))
    assert query.called_back == [(20,), (30,)]
    query.end(query.scans["t"])
    query.land("r", (4, 30))
    query.end(query.scans["r"])
    assert query.stages.finished
    assert sorted(query.answers) == [(1, 100), (2, 200), (3, 300), (4, 300)]


@pytest.mark.parametrize("room", [1, 2])
def test_rows_behind_a_probe_cut_short_are_looked_up_all_the_same(room: int) -> None:
    query = Query()
    for eddy in query.stages.eddies().values():
        eddy._probing._room = room
    query.land("t", (10, 100), (20, 200))
    query.land("r", (1, 10), (2, 20), (3, 30), (4, 10))
    assert query.lookups == [(30,)]
    assert sorted(query.answers) == [(1, 100), (2, 200), (4, 100)]
