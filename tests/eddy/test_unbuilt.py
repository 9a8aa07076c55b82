"""Rows that are not built: found all the same, stored nowhere, and never taken for what other queries can be served."""

from __future__ import annotations

import weakref

import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.eddy import Eddy
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

AT = (Mirror("site", ""),)
SCAN = AccessMethod("scan", "scan", AT, None)
OF_NOBODY = AccessMethod("scan", "scan", (), None)  # of a relation that no other query can share
BY_KEY = AccessMethod("by_key", "index", AT, None, required=("key",))
JOIN = "select huge.n, small.v from huge join small on huge.key = small.key"


class Query:
    """Steps by hand; `kept` rows of `huge` are built, and no more than they."""

    def __init__(
        self,
        sql: str = JOIN,
        kept: int = 2,
        house: House | None = None,
        methods: tuple[AccessMethod, ...] = (SCAN,),
        scan: AccessMethod = SCAN,
    ) -> None:
        huge = Relation("huge", (Field("n", pa.int64()), Field("key", pa.int64())), (scan,))
        small = Relation("small", (Field("key", pa.int64()), Field("v", pa.int64())), methods)
        catalog = Catalog({"huge": huge, "small": small}, {"site": Source("site")})
        query = understand(sql, catalog)
        house = house or House(lambda: 0.0)
        self.stages = Stages(query, verdicts_of(query, catalog), house, Settings(kept=kept))
        self.answers: list[tuple[object, ...]] = []
        self.asks: dict[str, int] = {}
        self._obey(self.stages.start())

    @property
    def eddy(self) -> Eddy:
        (eddy,) = self.stages.eddies().values()
        return eddy

    def stored(self, relation: str) -> int:
        return self.eddy.run.views[relation].stem.store.n

    def land(self, relation: str, *rows: tuple[int, int]) -> None:
        names = ("n", "key") if relation == "huge" else ("key", "v")
        columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
        landing = Landing(pa.RecordBatch.from_arrays(columns, names=list(names)))
        self.stages.admit(Arrived(self.asks[relation], landing))
        self.turn()

    def end(self, relation: str) -> None:
        self.stages.admit(Exhausted(self.asks[relation], SEED, landings=()))
        self.turn()

    def turn(self) -> None:
        while not self.stages.idle:
            self._obey(self.stages.turn())

    def _obey(self, work: Work) -> None:
        self.asks |= {c.relation: c.number for c in work.commands if isinstance(c, Ask)}
        for batch in work.answers:
            self.answers += [tuple(row.values()) for row in batch.to_pylist()]


def test_rows_beyond_the_limit_are_stored_nowhere_and_found_all_the_same() -> None:
    query = Query()
    query.land("huge", (1, 10), (2, 20))
    query.land("huge", (3, 10), (4, 30))
    assert query.stored("huge") == 2
    query.land("small", (10, 100))
    assert sorted(query.answers) == [(1, 100), (3, 100)]
    query.land("small", (10, 101), (30, 300))
    assert sorted(query.answers) == [(1, 100), (1, 101), (3, 100), (3, 101), (4, 300)]
    query.land("huge", (5, 30))
    query.end("huge")
    query.end("small")
    assert sorted(query.answers)[-1] == (5, 300)
    assert len(query.answers) == 6
    assert query.stages.finished
    assert query.stored("huge") == 2


def test_what_comes_first_is_put_off_and_not_built_when_it_turns_out_to_be_huge() -> None:
    query = Query(scan=OF_NOBODY, methods=(OF_NOBODY,))
    rows = [(n, n % 7) for n in range(50_000)]
    for _ in range(4):
        query.land("huge", *rows)
    assert query.stages.idle
    assert query.stored("huge") == 0
    query.land("small", (3, 30))
    assert query.stored("huge") == 0
    assert len(query.answers) == 4 * sum(key == 3 for _, key in rows)
    query.land("small", (3, 31))
    assert len(query.answers) == 8 * sum(key == 3 for _, key in rows)
    query.end("huge")
    query.end("small")
    assert query.stages.finished


def test_what_comes_first_is_built_when_it_is_no_larger_than_the_others() -> None:
    query = Query(scan=OF_NOBODY, methods=(OF_NOBODY,))
    query.land("huge", (1, 10), (2, 20))
    assert query.stored("huge") == 0
    query.land("small", (10, 100))
    assert query.stored("huge") == 2
    assert query.answers == [(1, 100)]


def test_what_was_put_off_goes_before_its_end() -> None:
    query = Query(scan=OF_NOBODY, methods=(OF_NOBODY,))
    query.land("huge", (1, 10), (2, 20))
    query.end("huge")
    assert not query.stages.finished
    query.land("small", (10, 100), (20, 200))
    query.end("small")
    assert sorted(query.answers) == [(1, 100), (2, 200)]
    assert query.stages.finished


def test_what_was_put_off_has_come_as_the_report_sees_it() -> None:
    query = Query(scan=OF_NOBODY, methods=(OF_NOBODY,))
    query.land("huge", (1, 10), (2, 20))
    query.stages.stop("enough")
    assert {r.relation: r.rows for r in query.stages.report().relations} == {"huge": 2, "small": 0}


def test_the_report_counts_them() -> None:
    query = Query()
    query.land("huge", (1, 10), (2, 20))
    query.land("huge", (3, 10))
    query.end("huge")
    query.end("small")
    assert {r.relation: r.rows for r in query.stages.report().relations} == {"huge": 3, "small": 0}
    assert query.stages.report().complete


def test_they_wait_for_nothing_that_has_come_completely() -> None:
    query = Query(kept=1)
    query.land("small", (10, 100))
    query.end("small")
    query.land("huge", (1, 10), (2, 20))
    assert query.answers == [(1, 100)]
    assert query.stored("huge") == 0
    assert not any(query.eddy.unbuilt._waiting.values())


def test_what_waits_is_let_go_at_the_end() -> None:
    query = Query(kept=0)
    query.land("huge", (1, 10))
    (waiting,) = query.eddy.unbuilt._waiting.values()
    own = waiting[0].own
    assert own is not None
    store = weakref.ref(own.store)
    del waiting, own
    query.end("huge")
    query.end("small")
    assert query.stages.finished
    assert store() is None


def test_those_of_many_landings_travel_together() -> None:
    query = Query(kept=0)
    for n in range(20):
        query.land("huge", (n, n % 4))
    landings = query.eddy.unbuilt._waiting[1]
    own = landings[0].own
    assert own is not None
    assert len(landings) == 20
    first = weakref.ref(own.store)
    del landings, own
    for key in range(8):  # each time they are put together with those that have come since
        query.land("small", (key, 10 * key))
        (waiting,) = query.eddy.unbuilt._waiting[1]
        assert len(waiting) == 20 + key
        query.land("huge", (20 + key, key))
    assert first() is None, "what they were in at first is let go"
    query.end("huge")
    query.end("small")
    assert query.stages.finished
    rows = [(n, n % 4) for n in range(20)] + [(20 + key, key) for key in range(8)]
    assert sorted(query.answers) == sorted((n, 10 * key) for n, key in rows)


def test_an_empty_partner_ends_the_query_only_if_nothing_of_it_came() -> None:
    query = Query(kept=0)
    query.land("huge", (1, 10))
    query.end("huge")
    assert not query.stages.finished, "huge has arrived, unbuilt: small may still match it"
    query.land("small", (10, 100))
    assert query.answers == [(1, 100)]


def test_a_selection_holds_for_them_too() -> None:
    query = Query(JOIN + " where huge.n > 1 and huge.n + small.v > 103", kept=0)
    query.land("huge", (1, 10), (2, 10), (5, 10))
    query.land("small", (10, 100))
    assert query.answers == [(5, 100)]


def test_another_query_is_not_served_from_what_was_not_kept() -> None:
    house = House(lambda: 0.0)
    first = Query(house=house)
    first.land("huge", (1, 10), (2, 20))
    first.land("huge", (3, 10))
    first.land("small", (10, 100))
    first.end("huge")
    first.end("small")
    second = Query(kept=100, house=house)
    assert set(second.asks) == {"huge"}, "small is served from its SteM, huge must be asked for again"
    second.land("huge", (1, 10), (2, 20), (3, 10))
    second.end("huge")
    assert sorted(second.answers) == sorted(first.answers) == [(1, 100), (3, 100)]


@pytest.mark.parametrize(
    ("why", "sql", "methods"),
    [
        ("a lookup may need the row", JOIN, (SCAN, BY_KEY)),
        (
            "the row meets others of its relation",
            "select a.n, b.n as m from huge a join huge b on a.key = b.key",
            (SCAN,),
        ),
        ("nothing else is joined", "select n from huge", (SCAN,)),
    ],
)
def test_rows_are_built_where(why: str, sql: str, methods: tuple[AccessMethod, ...]) -> None:
    query = Query(sql, kept=0, methods=methods)
    query.land("huge", (1, 10), (2, 20))
    assert query.stored("huge") == 2, why
