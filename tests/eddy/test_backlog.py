"""Where there is a choice of sites, rows wait before it, not behind a lookup."""

from __future__ import annotations

import pyarrow as pa

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.eddy import Eddy
from mediator.eddy.pace import Pace
from mediator.errors import Cause
from mediator.flow.events import SEED, Arrived, Ask, Cancel, Exhausted, Failed, Landing
from mediator.query.understand import understand
from mediator.stages import Stages

CHOICE = "SELECT r.k FROM r, s, t WHERE r.a = s.a AND r.b = t.b"
ROWS = 200


class Sites:
    """R is scanned; S and T are looked up, one binding at a time, when a test says so."""

    def __init__(self, sql: str = CHOICE, **said: object) -> None:
        mirror = Mirror("site", "")
        scan = AccessMethod("scan", "scan", (mirror,), None)
        fields = {"r": ("k", "a", "b"), "s": ("a", "c"), "t": ("b", "d")}
        relations = {
            name: Relation(
                name,
                tuple(Field(f, pa.int64()) for f in of),
                (scan if name == "r" else AccessMethod("index", "index", (mirror,), None, required=of[:1]),),
            )
            for name, of in fields.items()
        }
        catalog = Catalog(relations, {"site": Source("site")})
        query = understand(sql, catalog)
        self.now = 0.0
        self.schemas = {name: r.schema for name, r in relations.items()}
        self.stages = Stages(query, verdicts_of(query, catalog), House(lambda: self.now), Settings(**said))  # type: ignore[arg-type]
        self.waiting: dict[str, list[tuple[int, tuple[object, ...]]]] = {"s": [], "t": []}
        self.answers: list[pa.RecordBatch] = []
        self.scan = 0
        self.turns = 0
        for ask in self.stages.start().commands:
            assert isinstance(ask, Ask)
            self.scan = ask.number

    @property
    def eddy(self) -> Eddy:
        (eddy,) = self.stages.eddies().values()
        return eddy

    def turn(self) -> None:
        while not self.stages.idle:
            self.turns += 1
            work = self.stages.turn(4)
            self.answers += work.answers
            for command in work.commands:
                if isinstance(command, Ask):
                    self.waiting[command.relation] += [(command.number, b) for b in command.bindings]
                else:
                    assert isinstance(command, Cancel)

    def scanned(self, rows: int = ROWS, keys: int | None = None, last: bool = True) -> None:
        """So many rows of R arrive, with so many different keys; each with its own where nothing is said."""
        joined = pa.array([n % (keys or rows) for n in range(rows)])
        columns = [pa.array(range(rows)), joined, joined]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schemas["r"])
        self.stages.admit(Arrived(self.scan, Landing(batch)))
        if last:
            self.stages.admit(Exhausted(self.scan, SEED, landings=()))
        self.turn()

    def answered(self, name: str, found: bool = True, failing: bool = False) -> None:
        """The lookup that has waited longest."""
        number, binding = self.waiting[name].pop(0)
        self.now += 0.01
        columns = [pa.array(binding if found else (), pa.int64())] * 2
        landing = Landing(pa.RecordBatch.from_arrays(columns, schema=self.schemas[name]))
        self.stages.admit(Arrived(number, landing))
        if failing:
            self.stages.admit(Failed(number, (binding,), Cause("http", "it is down")))
        else:
            self.stages.admit(Exhausted(number, (binding,), landings=(landing,)))
        self.turn()

    @property
    def under_way(self) -> int:
        return sum(map(len, self.waiting.values()))

    def drained(self, **how: bool) -> int:
        """Until nobody waits; how many lookups that took."""
        count = 0
        while self.under_way:
            self.answered(max(self.waiting, key=lambda name: len(self.waiting[name])), **how)
            count += 1
        return count


def test_no_more_is_sent_than_the_site_can_bear() -> None:
    sites = Sites(backlog=8, policy="rank")
    sites.scanned()
    assert sites.under_way == 8
    assert sites.eddy.backlog.rows == ROWS - 8


def test_what_is_kept_back_goes_when_there_is_room_and_nothing_is_lost() -> None:
    sites = Sites(backlog=8, policy="rank")
    sites.scanned()
    sites.drained()
    assert sites.stages.finished
    assert sum(batch.num_rows for batch in sites.answers) == ROWS
    assert sites.stages.report().complete


def test_when_nothing_is_found_all_is_asked_all_the_same() -> None:
    sites = Sites(backlog=3)
    sites.scanned()
    assert sites.drained(found=False) == ROWS
    assert sites.stages.finished
    assert not sites.answers


def test_when_every_lookup_fails_the_query_ends_and_says_so() -> None:
    sites = Sites(backlog=3)
    sites.scanned()
    sites.drained(found=False, failing=True)
    assert sites.stages.finished
    assert not sites.stages.report().complete


def test_without_a_choice_everything_is_asked_at_once() -> None:
    sites = Sites("SELECT r.k FROM r, s WHERE r.a = s.a", backlog=8)
    sites.scanned()
    assert sites.under_way == ROWS


def test_what_is_kept_back_is_forgotten_when_the_query_is_stopped() -> None:
    sites = Sites(backlog=8)
    sites.scanned()
    sites.stages.stop("enough")
    assert sites.stages.finished
    assert not sites.eddy.backlog.rows


def _ask(number: int, count: int = 1) -> Ask:
    return Ask(number, "s", "index", ("a",), tuple((n,) for n in range(count)))


def test_a_fast_site_is_given_more() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.room("s", 4) == 4
    for number in range(50):
        pace.asked(_ask(number))
    for number in range(50):  # a tenth of a second for the first, then one each millisecond
        now[0] = 0.1 + 0.001 * number
        pace.ended(_ask(number), 1, answered=True)
        pace.over(_ask(number))
    assert pace.room("s", 4) > 50, "a hundred end while one takes its time"


def test_a_site_that_has_gone_silent_is_given_less_at_once() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    for number in range(20):
        pace.asked(_ask(number))
        now[0] += 0.001
        pace.ended(_ask(number), 1, answered=True)
    assert pace.of("s").lookup < 0.01
    pace.asked(_ask(99))
    now[0] += 2.0
    assert pace.of("s").lookup > 1.0
    assert pace.room("s", 4) < 4


def test_what_a_lookup_finds_is_known() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.of("s").lookup == 0.0
    for number in range(4):
        pace.asked(_ask(number))
        now[0] += 0.5
        pace.came(_ask(number), 3 * (number % 2))
        pace.ended(_ask(number), 1, answered=True)
    assert pace.of("s").finds == 1.5
    assert 0.4 < pace.of("s").lookup < 0.6


def test_rows_whose_matches_are_there_do_not_wait_for_room() -> None:
    sites = Sites()
    sites.scanned(10, last=False)
    sites.drained()
    sites.turns = 0
    sites.scanned(20_000, keys=10)
    assert sites.under_way == 0
    assert sites.turns < 10
    assert sum(batch.num_rows for batch in sites.answers) == 20_010


def test_one_lookup_at_least_is_always_borne() -> None:
    sites = Sites(backlog=0)
    sites.scanned(20)
    sites.drained()
    assert sites.stages.finished
    assert sum(batch.num_rows for batch in sites.answers) == 20


def test_where_calls_are_saved_rows_are_held_as_a_whole() -> None:
    sites = Sites(goal="fewest_calls")
    sites.scanned(20_000, keys=5_000)
    assert sites.turns < 40
    assert sites.eddy.backlog.rows == 0
