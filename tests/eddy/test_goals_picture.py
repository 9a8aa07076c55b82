"""What survives the joins of what is known, compared with DuckDB; and which access is foretold to be the best."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.papers.federations import Federation
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings, assemble
from mediator.eddy.eddy import Eddy
from mediator.eddy.goals.forecast import Chance, Forecast
from mediator.eddy.goals.picture import Picture
from mediator.eddy.goals.tables import Joiner, together
from mediator.eddy.goals.words import released
from mediator.flow.events import SEED, Arrived, Ask, Binding, Command, Exhausted, Landing
from mediator.query.model import BlockStage
from mediator.query.understand import understand
from tests.eddy.goals_kit import SCAN, by, federation


class Fed:
    """An eddy whose scans have all been answered, and whose lookups are answered as told."""

    def __init__(self, of: Federation) -> None:
        query = understand(of.sql, of.catalog)
        (stage,) = query.stages
        assert isinstance(stage, BlockStage)
        verdict = verdicts_of(query, of.catalog)[stage.name]
        self.of = of
        self.eddy: Eddy = assemble(stage.block, verdict, House(lambda: 0.0), Settings(goal="fewest_calls"))
        self.asks: list[Ask] = []
        self._note(self.eddy.start())
        for ask in [a for a in self.asks if not a.bind_set]:
            self.land(ask, SEED, of.tables[ask.relation])

    def land(self, ask: Ask, bindings: tuple[Binding, ...], rows: pa.Table) -> None:
        landings = [Landing(batch) for batch in rows.to_batches()]
        for landing in landings:
            self.eddy.admit(Arrived(ask.number, landing))
        self.eddy.admit(Exhausted(ask.number, bindings, landings=landings))

    def turn(self) -> list[Ask]:
        """Until nothing moves; what was asked meanwhile."""
        before = len(self.asks)
        self._note(self.eddy.turn())
        while not self.eddy.idle:
            self._note(self.eddy.turn())
        return self.asks[before:]

    def picture(self) -> Picture:
        return Picture(self.eddy.run, self.eddy.asking)

    def _note(self, commands: list[Command]) -> None:
        self.asks += [c for c in commands if isinstance(c, Ask)]


def _random(seed: int) -> Federation:
    """Three scanned tables and one behind an index, in a tangle."""
    random = np.random.default_rng(seed)

    def column(size: int) -> list[int]:
        return random.integers(0, 6, size).tolist()

    sizes = {"r": 20, "s": 15, "t": 12, "u": 10}
    tables = {name: {"a": column(size), "b": column(size)} for name, size in sizes.items()}
    joins = ("r.a = s.a", "s.b = t.b", "t.a = r.b", "u.a = r.a", "u.b = t.b")
    methods = {"r": [SCAN], "s": [SCAN], "t": [SCAN], "u": [by("a"), by("a", "b")]}
    return federation(tables, methods, *joins[: int(random.integers(2, 4))], *joins[3:], limits={"s": 1})


@pytest.mark.parametrize("seed", range(12))
def test_the_bindings_are_those_of_the_join_of_what_is_known(seed: int) -> None:
    made = _random(seed)
    fed = Fed(made)
    fed.eddy._intake.take_in()
    picture = fed.picture()
    counts = {way.provider.bind_set: way.count for way in picture.ways()}
    conditions = [c for c in made.conditions if "u." not in c]
    with duckdb.connect() as duck:
        for name, table in made.tables.items():
            duck.register(name, table)
        joined = f"FROM r, s, t WHERE {' AND '.join(conditions)}"
        (single,) = duck.execute(f"SELECT count(DISTINCT r.a) {joined}").fetchone() or (0,)
        (pairs,) = duck.execute(f"SELECT count(*) FROM (SELECT DISTINCT r.a, t.b {joined})").fetchone() or (
            0,
        )
    if not single:
        assert picture.empty or not any(counts.values())
    else:
        assert counts == {("a",): single, ("a", "b"): pairs}


def test_rows_whose_lookup_found_nothing_are_out() -> None:
    made = federation(
        {"r": {"a": range(40), "b": range(40)}, "s": {"a": [0]}, "u": {"b": range(40)}},
        {"r": [SCAN], "s": [by("a")], "u": [by("b")]},
        "r.a = s.a",
        "r.b = u.b",
    )
    fed = Fed(made)
    asks = fed.turn()
    assert sum(len(a.bindings) for a in asks) < 10, "in doubt, a few are asked"
    for ask in asks:
        fed.land(ask, ask.bindings, made.tables[ask.relation].slice(0, 0))
    fed.eddy._intake.take_in()
    picture = fed.picture()
    asked = sum(len(a.bindings) for a in asks)
    assert sum(len(t) for t in picture.tables) == 40 - asked
    assert sum(picture.seen(a, 0).missed for a in picture.open) == asked


def test_a_table_that_would_be_too_large_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made = federation(
        {"r": {"a": [1] * 20}, "t": {"a": [1] * 20, "b": range(20)}, "s": {"b": [1]}},
        {"r": [SCAN], "t": [SCAN], "s": [by("b")]},
        "r.a = t.a",
        "t.b = s.b",
    )
    fed = Fed(made)
    fed.eddy._intake.take_in()
    joiner = Joiner(fed.eddy.run)
    singles = [joiner.single(a, range(20)) for a in (0, 1)]
    assert len(together(joiner, singles, lambda table: set(table.rows))) == 1
    monkeypatch.setattr("mediator.eddy.goals.tables.MOST", 100)
    assert len(together(joiner, singles, lambda table: set(table.rows))) == 2


def test_nulls_are_in_no_join() -> None:
    made = federation({"r": {"a": [1, 2, 3]}, "s": {"a": [1]}}, {"r": [SCAN], "s": [by("a")]}, "r.a = s.a")
    with_null = made.tables["r"].set_column(
        made.tables["r"].column_names.index("a"), "a", pa.array([1, None, 3], pa.int64())
    )
    object.__setattr__(made, "tables", {**made.tables, "r": with_null})
    assert sorted(b for a in Fed(made).turn() for b in a.bindings) == [(1,), (3,)]


def test_the_forecast_prefers_what_thins_out_more_once_that_was_seen() -> None:
    """Of two tables of forty values each, one is known to match nothing so far."""
    made = federation(
        {"r": {"a": range(40), "b": range(40)}, "s": {"a": range(40)}, "u": {"b": range(40)}},
        {"r": [SCAN], "s": [by("a")], "u": [by("b")]},
        "r.a = s.a",
        "r.b = u.b",
    )
    fed = Fed(made)
    fed.eddy._intake.take_in()
    picture = fed.picture()
    chances = [Chance(), Chance(found=1, missed=30), Chance(found=30, missed=1)]
    forecast = Forecast(picture, picture.ways(), [], chances, np.random.default_rng(0))
    costs = {p.way.provider.alias: p.mean for p in forecast.prospects()}
    assert 40 <= costs[1] < 50
    assert costs[2] > 70
    assert not forecast.certain(picture.ways()[0]).any(), "nothing has a match everywhere else yet"


def test_with_a_ceiling_those_go_first_that_stand_in_the_most_rows() -> None:
    made = federation(
        {"r": {"a": [1, 2, 2, 3, 3, 3]}, "s": {"a": [1, 2, 3]}}, {"r": [SCAN], "s": [by("a")]}, "r.a = s.a"
    )
    query = understand(made.sql, made.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    verdict = verdicts_of(query, made.catalog)[stage.name]
    fed = Fed(made)
    fed.eddy = assemble(stage.block, verdict, House(lambda: 0.0), Settings(max_calls=3))
    fed.asks.clear()
    fed._note(fed.eddy.start())
    fed.land(fed.asks[0], SEED, made.tables["r"])
    (first,) = fed.turn()
    assert first.bindings == ((3,),)
    fed.land(first, first.bindings, made.tables["s"].slice(2, 1))
    (second,) = fed.turn()
    assert second.bindings == ((2,),)


def test_what_was_asked_and_why_is_told() -> None:
    made = federation(
        {"r": {"a": range(30)}, "s": {"a": range(30), "b": [n % 2 for n in range(30)]}, "t": {"b": [0, 1]}},
        {"r": [SCAN], "s": [by("a"), by("b")], "t": [SCAN]},
        "r.a = s.a",
        "s.b = t.b",
    )
    fed = Fed(made)
    fed.turn()
    (release,) = fed.eddy.releases
    assert released(fed.eddy.run.block, release) == (
        "s by b: 2 bindings; foreseen: 2 requests in all if s by b comes first, 30 if s by a does"
    )
