"""A provider that fails is given up for its own relation alone, and policies learn who is looked up now."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.errors import Cause
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Failed, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

MIRRORS = (Mirror("site", ""),)


def scan(name: str = "scan") -> AccessMethod:
    return AccessMethod(name, "scan", MIRRORS, None)


def index(field: str) -> AccessMethod:
    return AccessMethod(f"by_{field}", "index", MIRRORS, None, required=(field,))


class Sites:
    """Relations of integers, each scanned or looked up; a lookup finds one row with the value in its first column."""

    def __init__(
        self, sql: str, policy: str = "foresight", **relations: tuple[str, tuple[AccessMethod, ...]]
    ) -> None:
        self.relations = {
            name: Relation(name, tuple(Field(f, pa.int64()) for f in fields), methods)
            for name, (fields, methods) in relations.items()
        }
        catalog = Catalog(self.relations, {"site": Source("site")})
        query = understand(sql, catalog)
        self.stages = Stages(query, verdicts_of(query, catalog), House(lambda: 0.0), Settings(policy=policy))
        self.answers = 0
        self.looked_up: list[Ask] = []
        self.scans: dict[tuple[str, str], int] = {}
        self._obey(self.stages.start())

    def brings(self, relation: str, method: str, columns: list[list[int]], last: bool = True) -> None:
        ask = self.scans[relation, method]
        self.stages.admit(Arrived(ask, self._landing(relation, columns)))
        if last:
            self.stages.admit(Exhausted(ask, SEED, landings=()))
        self._turn()

    def fails(self, relation: str, method: str) -> None:
        self.stages.admit(Failed(self.scans[relation, method], SEED, Cause("http", "down")))
        self._turn()

    def answer_lookups(self) -> int:
        """All of them, and what comes of that; how many there were."""
        count = 0
        while self.looked_up:
            ask = self.looked_up.pop()
            for binding in ask.bindings:
                count += 1
                landing = self._landing(ask.relation, [[binding[0]], [1]])  # type: ignore[list-item]
                self.stages.admit(Arrived(ask.number, landing))
                self.stages.admit(Exhausted(ask.number, (binding,), landings=(landing,)))
            self._turn()
        return count

    def _landing(self, relation: str, columns: list[list[int]]) -> Landing:
        arrays = [pa.array(c, pa.int64()) for c in columns]
        return Landing(pa.RecordBatch.from_arrays(arrays, schema=self.relations[relation].schema))

    def _turn(self) -> None:
        while not self.stages.idle:
            self._obey(self.stages.turn(16))

    def _obey(self, work: Work) -> None:
        self.answers += sum(batch.num_rows for batch in work.answers)
        for command in work.commands:
            if isinstance(command, Ask) and command.bind_set:
                self.looked_up.append(command)
            elif isinstance(command, Ask):
                self.scans[command.relation, command.method] = command.number


@pytest.mark.parametrize("name", ["of_its_own", "scan"])
def test_a_scan_that_fails_says_nothing_of_another_relation_s_of_that_name(name: str) -> None:
    sites = Sites(
        "SELECT r.k FROM r, s, u WHERE r.a = s.a AND r.k = u.k",
        r=("ka", (scan(), scan("other"))),
        s=("ac", (scan(name),)),
        u=("kd", (scan(), index("k"))),
    )
    sites.fails("r", "scan")
    sites.fails("u", "scan")
    five = list(range(5))
    sites.brings("r", "other", [five, five])
    sites.brings("s", name, [five, five])
    assert sites.answer_lookups() == 5
    assert sites.stages.finished
    assert sites.stages.report().complete
    assert sites.answers == 5


@pytest.mark.parametrize("policy", ["foresight", "rank", "benefit"])
def test_rows_that_come_to_be_looked_up_come_last_as_if_they_always_had(policy: str) -> None:
    """S's scan fails and its index stands in: what T rules out is not asked for."""
    asked = []
    for methods in ((index("a"),), (scan(), index("a"))):
        sites = Sites(
            "SELECT r.k FROM r, s, t WHERE r.a = s.a AND r.b = t.b",
            policy,
            r=("kab", (scan(),)),
            s=("ac", methods),
            t=("bd", (scan(),)),
        )
        if len(methods) > 1:
            sites.fails("s", "scan")
        sites.brings("t", "scan", [list(range(100))] * 2)
        for start in range(0, 3_000, 500):
            sites.brings("r", "scan", [list(range(start, start + 500))] * 3, last=start == 2_500)
        asked.append(sites.answer_lookups())
        assert sites.answers == 100
    assert asked == [100, 100]
