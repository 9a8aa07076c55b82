"""While one query's long turn was being taken, another's lookups were answered: those are not asked again."""

from __future__ import annotations

import pyarrow as pa

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.flow.events import SEED, Arrived, Ask, Binding, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

AT = (Mirror("site", ""),)
R = Relation(
    "r", (Field("n", pa.int64()), Field("key", pa.int64())), (AccessMethod("scan", "scan", AT, None),)
)
BY_KEY = AccessMethod("by_key", "index", AT, None, required=("key",))
T = Relation("t", (Field("key", pa.int64()), Field("v", pa.int64())), (BY_KEY,), ("key",))
CATALOG = Catalog({"r": R, "t": T}, {"site": Source("site")})
SQL = "select r.n, t.v from r join t on r.key = t.key"


class Query:
    def __init__(self, house: House) -> None:
        query = understand(SQL, CATALOG)
        self.stages = Stages(query, verdicts_of(query, CATALOG), house, Settings())
        self.landings: dict[int, list[Landing]] = {}
        (self.scan,) = (c.number for c in self.stages.start().commands if isinstance(c, Ask))

    def land(self, ask: int, names: tuple[str, str], *rows: tuple[int, int]) -> Work:
        columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
        landing = Landing(pa.RecordBatch.from_arrays(columns, names=list(names)))
        self.landings.setdefault(ask, []).append(landing)
        self.stages.admit(Arrived(ask, landing))
        return self.turned()

    def end(self, ask: int, *bindings: Binding) -> Work:
        self.stages.admit(Exhausted(ask, bindings, landings=self.landings.get(ask, ())))
        return self.turned()

    def turned(self) -> Work:
        whole = Work()
        while not self.stages.idle:
            whole.add(self.stages.turn())
        return whole


def asks(work: Work) -> list[Ask]:
    return [c for c in work.commands if isinstance(c, Ask)]


def answers(work: Work) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for batch in work.answers for row in batch.to_pylist())


def test_what_others_were_answered_meanwhile_is_served_and_not_asked() -> None:
    house = House(lambda: 0.0)
    mine, other = Query(house), Query(house)
    (lookup,) = asks(other.land(other.scan, ("n", "key"), (0, 7)))
    turn = mine.land(mine.scan, ("n", "key"), (1, 7), (2, 8))
    assert [a.bindings for a in asks(turn)] == [((7,), (8,))]

    other.land(lookup.number, ("key", "v"), (7, 70))
    other.end(lookup.number, (7,))
    turn = mine.stages.reconsidered(turn)
    (left,) = asks(turn)
    assert left.bindings == ((8,),)
    assert answers(mine.turned()) == [(1, 70)]

    assert answers(mine.land(left.number, ("key", "v"), (8, 80))) == [(2, 80)]
    mine.end(left.number, (8,))
    mine.end(mine.scan, *SEED)
    assert mine.stages.finished
    report = mine.stages.report()
    assert report.complete
    assert {r.relation: (r.asked, r.answered, r.served) for r in report.relations} == {
        "r": (1, 1, 0),
        "t": (1, 1, 1),
    }


def test_an_ask_of_which_nothing_is_left_is_dropped() -> None:
    house = House(lambda: 0.0)
    mine, other = Query(house), Query(house)
    (lookup,) = asks(other.land(other.scan, ("n", "key"), (0, 7)))
    turn = mine.land(mine.scan, ("n", "key"), (1, 7))
    other.land(lookup.number, ("key", "v"), (7, 70))
    other.end(lookup.number, (7,))
    assert asks(mine.stages.reconsidered(turn)) == []
    assert answers(mine.turned()) == [(1, 70)]
    mine.end(mine.scan, *SEED)
    assert mine.stages.finished
