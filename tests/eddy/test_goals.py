"""What a goal decides: who is asked, when, and for what."""

from __future__ import annotations

import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings, assemble
from mediator.binding.counting import Known
from mediator.eddy.destinations import Destination, Hold, LookUp, Park, Probe
from mediator.eddy.goals.allowance import Allowance
from mediator.eddy.goals.goal import GOALS, Facts, Goal, Toward
from mediator.eddy.goals.words import meant, provided
from mediator.eddy.pace import NEVER, Pace
from mediator.eddy.policies.rank import Rank
from mediator.eddy.policy import Situation
from mediator.errors import MediatorError
from mediator.flow.batch import Signature
from mediator.flow.events import Ask
from mediator.query.model import BlockStage
from mediator.query.understand import understand
from tests.eddy.goals_kit import SCAN, by, federation, lookups, told

# Ten rows of r, three of which t leaves; s is behind an index.
FILTERED = federation(
    {"r": {"a": range(10), "b": range(10)}, "s": {"a": range(10)}, "t": {"b": [1, 2, 3]}},
    {"r": [SCAN], "s": [by("a")], "t": [SCAN]},
    "r.a = s.a",
    "r.b = t.b",
)
# s can be asked by thirty values of r, or by two of t.
TWO_WAYS = federation(
    {"r": {"a": range(30)}, "s": {"a": range(30), "b": [n % 2 for n in range(30)]}, "t": {"b": [0, 1]}},
    {"r": [SCAN], "s": [by("a"), by("b")], "t": [SCAN]},
    "r.a = s.a",
    "s.b = t.b",
)
HYBRID = federation(
    {"r": {"a": range(150)}, "s": {"a": range(150)}}, {"r": [SCAN], "s": [SCAN, by("a")]}, "r.a = s.a"
)


def test_fewest_calls_asks_only_for_what_survived_the_joins() -> None:
    assert lookups(FILTERED, "fewest_calls") == {"s": 3}
    assert told(FILTERED, "fewest_calls").rows == 3


def test_fewest_calls_asks_the_provider_with_the_fewest_bindings() -> None:
    assert lookups(TWO_WAYS, "fewest_calls") == {"s": 2}
    assert lookups(TWO_WAYS, "all_rows")["s"] > 2
    assert {told(TWO_WAYS, goal).rows for goal in GOALS} == {30}


def test_fewest_calls_never_looks_up_what_a_scan_brings() -> None:
    assert lookups(HYBRID, "fewest_calls") == {}
    assert lookups(HYBRID, "first_rows")["s"] > 0


def test_first_rows_has_its_first_row_before_fewest_calls() -> None:
    first, fewest = told(HYBRID, "first_rows"), told(HYBRID, "fewest_calls")
    assert first.first <= fewest.first
    assert told(FILTERED, "first_rows").first <= told(FILTERED, "fewest_calls").first


def test_nothing_is_asked_where_there_can_be_no_answer() -> None:
    apart = federation(
        {"r": {"a": [1, 2], "b": [1, 2]}, "s": {"a": [1, 2]}, "t": {"b": [7, 8]}},
        {"r": [SCAN], "s": [by("a")], "t": [SCAN]},
        "r.a = s.a",
        "r.b = t.b",
    )
    assert lookups(apart, "fewest_calls") == {}
    assert told(apart, "fewest_calls").rows == 0


def test_a_lookup_by_constants_waits_too_and_may_turn_out_needless() -> None:
    def of(theirs: list[int]) -> dict[str, int]:
        made = federation(
            {"r": {"a": [1, 2]}, "s": {"a": [1, 2], "c": [5, 5]}, "t": {"a": theirs}},
            {"r": [SCAN], "s": [by("c")], "t": [SCAN]},
            "r.a = s.a",
            "r.a = t.a",
            constants={"s": 5},
        )
        return lookups(made, "fewest_calls")

    assert of([1]) == {"s": 1}
    assert of([9]) == {}


def test_tables_that_nothing_joins_feed_one_bind_set() -> None:
    crossed = federation(
        {"r": {"a": [1, 2, 3]}, "t": {"b": [1, 2]}, "s": {"a": [1, 2], "b": [1, 2]}},
        {"r": [SCAN], "t": [SCAN], "s": [by("a", "b")]},
        "r.a = s.a",
        "t.b = s.b",
    )
    assert lookups(crossed, "fewest_calls") == {"s": 6}
    assert told(crossed, "fewest_calls").rows == 2


def test_what_one_access_finds_out_saves_another_its_lookups() -> None:
    """s has no match for most of r, and u is to be asked by r as well: asking s first leaves little for u."""
    made = federation(
        {"r": {"a": range(100), "b": range(100)}, "s": {"a": [0, 1]}, "u": {"b": range(100)}},
        {"r": [SCAN], "s": [by("a")], "u": [by("b")]},
        "r.a = s.a",
        "r.b = u.b",
    )
    asked = lookups(made, "fewest_calls")
    assert asked["s"] == 100
    assert asked["u"] <= 12, "more than a few tries"


def test_requests_are_counted_where_bindings_travel_together() -> None:
    """Thirty bindings, ten to a request, cost less than five that travel alone."""
    made = federation(
        {"r": {"a": range(30)}, "s": {"a": range(30), "b": [n % 5 for n in range(30)]}, "t": {"b": range(5)}},
        {"r": [SCAN], "s": [by("a", batch_size=10), by("b")], "t": [SCAN]},
        "r.a = s.a",
        "s.b = t.b",
    )
    assert lookups(made, "fewest_calls") == {"s": 30}


@pytest.mark.parametrize("policy", ["rank", "lottery", "naive", "fixed", "random"])
@pytest.mark.parametrize("goal", GOALS)
def test_any_policy_goes_with_any_goal(policy: str, goal: Goal) -> None:
    assert told(TWO_WAYS, goal, policy=policy).rows == 30
    assert told(FILTERED, goal, policy=policy).rows == 3


def test_a_goal_that_there_is_not_says_which_there_are() -> None:
    query = understand(FILTERED.sql, FILTERED.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    verdict = verdicts_of(query, FILTERED.catalog)[stage.name]
    with pytest.raises(MediatorError, match="no goal 'cheap'; there are first_rows, all_rows, fewest_calls"):
        assemble(stage.block, verdict, House(lambda: 0.0), Settings(goal="cheap"))  # type: ignore[arg-type]


SEEN = Situation(10, (10, 10))
BOUNCED = Signature(0b01, completing=1)
LEGAL: tuple[Destination, ...] = (Park(1), LookUp(1, 0), Hold(1))
OWED: tuple[Destination, ...] = (LookUp(1, 0), Hold(1))


@pytest.mark.parametrize(
    ("goal", "beside_a_scan", "alone"),
    [
        ("first_rows", (LookUp(1, 0),), (LookUp(1, 0),)),
        ("all_rows", (Park(1), LookUp(1, 0)), (LookUp(1, 0),)),
        ("fewest_calls", (Park(1),), (Hold(1),)),
    ],
)
def test_a_goal_narrows_what_is_legal(
    goal: Goal, beside_a_scan: tuple[Destination, ...], alone: tuple[Destination, ...]
) -> None:
    toward = Toward(goal, Rank(), Facts(["r", "s"]))
    assert tuple(toward.served(BOUNCED, LEGAL, SEEN)) == beside_a_scan
    assert tuple(toward.served(BOUNCED, OWED, SEEN)) == alone
    assert tuple(toward.served(Signature(0b01), (Probe(1),), SEEN)) == (Probe(1),)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _paced(clock: Clock, pending: int) -> Pace:
    """Four lookups a second, and a scan that brought 50 rows in a second."""
    pace = Pace(clock)
    lookup, scan = (
        Ask(1, "s", "by", ("a",), tuple((n,) for n in range(pending))),
        Ask(2, "s", "scan", (), ((),)),
    )
    pace.asked(lookup)
    pace.asked(scan)
    clock.now = 1.0
    pace.ended(lookup, 4, answered=True)
    pace.came(scan, 50)
    return pace


def test_lookups_take_as_long_as_those_before_them() -> None:
    pace = _paced(Clock(), pending=12)
    assert pace.lookups_take("s", more=4) == pytest.approx(3.0)
    assert pace.lookups_take("t", more=4) == 0.0


def test_a_scan_of_known_length_goes_on_as_it_did() -> None:
    pace = _paced(Clock(), pending=12)
    assert pace.scan_left("s", total=200) == pytest.approx(3.0)
    assert pace.scan_left("s", total=0) == NEVER
    assert pace.scan_left("t", total=200) == NEVER


@pytest.mark.parametrize(("pending", "total", "served"), [(8, 60, Park), (8, 10_000, LookUp), (8, 0, LookUp)])
def test_all_rows_leaves_to_a_scan_what_it_will_bring_sooner(
    pending: int, total: float, served: type[Destination]
) -> None:
    class Asked:
        pace = _paced(Clock(), pending)

    facts = Facts(["r", "s"], {"s": total}, asking=Asked())  # type: ignore[arg-type]
    toward = Toward("all_rows", Rank(), facts)
    assert isinstance(toward.choose(BOUNCED, LEGAL, SEEN), served)


def test_an_allowance_is_what_the_ceilings_leave() -> None:
    query = understand(FILTERED.sql, FILTERED.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    verdict = verdicts_of(query, FILTERED.catalog)[stage.name]
    eddy = assemble(stage.block, verdict, House(lambda: 0.0), Settings())
    provider, tallies = verdict.chosen[1], eddy.asking.tallies
    tallies["r"].asked, tallies["s"].asked = 1, 4
    assert Allowance().left(provider, tallies) is None
    assert Allowance(whole=7).left(provider, tallies) == 2
    assert Allowance(whole=3).left(provider, tallies) == 0
    assert Allowance(at={"site": 6}).left(provider, tallies) == 1
    assert Allowance(at={"elsewhere": 6}).left(provider, tallies) is None


def test_explain_says_what_the_goal_changes() -> None:
    def said(goal: Goal, sql: str = TWO_WAYS.sql) -> list[str]:
        made = HYBRID if "t1" in sql else TWO_WAYS
        (stage,) = understand(made.sql, made.catalog).stages
        assert isinstance(stage, BlockStage)
        return list(
            provided(
                goal,
                stage.block,
                verdicts_of(understand(made.sql, made.catalog), made.catalog)[stage.name],
                Known(),
            )
        )

    assert all(goal in meant(goal) for goal in GOALS)
    (line,) = said("fewest_calls")
    assert line.startswith("s: provided by the cheapest")
    assert "by_a" in line
    assert "by_b" in line
    assert "lookups" in line
    assert said("all_rows") == []
