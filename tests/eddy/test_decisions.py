"""A decision that changes is told to who looks on, with the figure that moved it; else nobody is asked for figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.decisions import LAST, Decision, Decisions, Watch
from mediator.eddy.destinations import Destination, Hold, Leave, LookUp, Park, Probe, Select
from mediator.eddy.policies.fixed import Fixed
from mediator.eddy.policy import Situation
from mediator.eddy.routing import Router
from mediator.eddy.wording import Wording, number, said
from mediator.flow.batch import Batch, Signature
from mediator.query.model import BlockStage
from mediator.query.understand import understand

R, S, T = 0, 1, 2
SIGNATURE = Signature(1 << S)
BOTH: tuple[Destination, ...] = (Probe(R), Probe(T))
SOME = Situation(100, (1, 100, 1))
SQL = "SELECT r.a, s.b, t.b AS c FROM r, s, t WHERE r.a = s.a AND s.b = t.b AND r.a < t.b + 1"


def _relation(name: str, *fields: str) -> Relation:
    scan = AccessMethod("all", "scan", (Mirror("site", ""),), None)
    index = AccessMethod("by", "index", (Mirror("site", ""),), None, required=(fields[-1],))
    return Relation(name, tuple(Field(f, pa.int64()) for f in fields), (scan, index))


def _wording() -> Wording:
    relations = {"r": _relation("r", "a"), "s": _relation("s", "a", "b"), "t": _relation("t", "b")}
    catalog = Catalog(relations, {"site": Source("site")})
    query = understand(SQL, catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    verdict = verdicts_of(query, catalog)[stage.name]
    return Wording(stage.block, lambda: verdict.providers)


class Figured(Fixed):
    """Says what it is told to say."""

    def __init__(self) -> None:
        super().__init__((R, S, T))
        self.figures: Mapping[Destination, Mapping[str, float]] = {}
        self.asked = 0

    def why(self, *said: Any) -> Mapping[Destination, Mapping[str, float]]:
        self.asked += 1
        return self.figures


class Seen:
    """Decisions as somebody sees them who looks on."""

    def __init__(self) -> None:
        self.now = 5.0
        self.told: list[Decision] = []
        self.policy = Figured()
        watch = Watch("block", self.told.append)
        self.decisions = Decisions(watch, self.policy, _wording(), lambda: self.now)

    def chose(
        self,
        chosen: Destination,
        figures: Mapping[Destination, Mapping[str, float]] | None = None,
        legal: Sequence[Destination] = BOTH,
    ) -> Decision | None:
        before = len(self.told)
        self.policy.figures = figures or {}
        self.decisions.chose(SIGNATURE, legal, SOME, chosen)
        return self.told[-1] if len(self.told) > before else None


def test_the_first_decision_is_told_and_then_only_those_that_change() -> None:
    seen = Seen()
    first = seen.chose(Probe(T))
    assert first is not None
    assert (first.number, first.before, first.now) == (1, None, "t")
    assert first.why == "t before r, at first"
    assert seen.chose(Probe(T), {Probe(T): {"fan-out": 9.0}}) is None
    assert seen.policy.asked == 1, "while it stays, nobody asks for figures"
    seen.now = 7.5
    second = seen.chose(Probe(R))
    assert second is not None
    assert (second.number, second.before, second.now, second.at) == (2, "t", "r", 2.5)


def test_the_figure_that_moved_it_is_named_with_what_it_was() -> None:
    seen = Seen()
    seen.chose(Probe(T), {Probe(R): {"fan-out": 0.5}, Probe(T): {"fan-out": 0.3, "rank": -0.7}})
    decision = seen.chose(Probe(R), {Probe(R): {"fan-out": 0.45}, Probe(T): {"fan-out": 4.1, "rank": 31.0}})
    assert decision is not None
    assert decision.why == "r before t since s.b = t.b brings 4.1 rows for each (was 0.3)"
    assert decision.figures["t"] == {"fan-out": 4.1, "rank": 31.0}
    assert decision.earlier["t"] == {"fan-out": 0.3, "rank": -0.7}
    assert decision.line() == f"s: {decision.why}"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ({}, {}, "r before t; the policy goes by no figures"),
        (
            {Probe(T): {"fan-out": 1.0}},
            {Probe(T): {"fan-out": 1.0}},
            "r is tried: nothing is known of it yet",
        ),
        ({Probe(R): {"rank": 1.0}}, {Probe(R): {"rank": 1.0}}, "r before t; no figure has moved"),
        (
            {Probe(T): {"us a row": 2.0}},
            {Probe(R): {"us a row": 1.0}, Probe(T): {"us a row": 2.0}},
            "r before t since r.a = s.a takes 1 µs a row (was not known)",
        ),
        (
            {Probe(R): {"rank": 1.0}, Probe(T): {"rank": 1.0}},
            {Probe(R): {"rank": -3.0}, Probe(T): {"rank": 1.0}},
            "r before t since r.a = s.a has the rank -3 (was 1)",
        ),
        (
            {Probe(R): {"tickets": 1.0}, Probe(T): {"tickets": 5.0}},
            {Probe(R): {"tickets": 80.0}, Probe(T): {"tickets": 6.0}},
            "r before t since r.a = s.a has 80 tickets (was 1)",
        ),
    ],
)
def test_every_way_to_change_has_its_sentence(before: Any, now: Any, why: str) -> None:
    seen = Seen()
    seen.chose(Probe(T), before)
    decision = seen.chose(Probe(R), now)
    assert decision is not None
    assert decision.why == why.replace("r.a = s.a", _wording().subject(SIGNATURE, Probe(R)))


def test_where_nothing_may_go_any_more_nothing_goes() -> None:
    seen = Seen()
    seen.chose(Probe(T))
    decision = seen.chose(Probe(R), legal=(Probe(R), Park(T)))
    assert decision is not None
    assert decision.why == "r before t, where nothing may go any more"


def test_a_first_decision_names_what_sets_it_apart() -> None:
    seen = Seen()
    decision = seen.chose(Probe(T), {Probe(R): {"fan-out": 8.0}, Probe(T): {"fan-out": 0.2}})
    assert decision is not None
    assert decision.why.startswith("t before r since s.b = t.b brings 0.2 rows for each, and ")
    assert decision.why.endswith("brings 8 rows for each")


def test_figures_without_bounds_are_told_and_become_null_in_json() -> None:
    seen = Seen()
    seen.chose(Probe(T), {Probe(T): {"rank": float("-inf")}, Probe(R): {"rank": 0.0}})
    decision = seen.chose(Probe(R), {Probe(T): {"rank": float("inf")}, Probe(R): {"rank": float("nan")}})
    assert decision is not None
    told = decision.to_dict()
    assert told["figures"] == {"t": {"rank": None}, "r": {"rank": None}}
    assert told["earlier"] == {"t": {"rank": None}, "r": {"rank": 0.0}}


def test_only_the_last_are_kept() -> None:
    seen = Seen()
    for n in range(3 * LAST):
        seen.chose(BOTH[n % 2])
    assert seen.decisions.count == 3 * LAST
    assert [d.number for d in seen.decisions.recent] == list(range(2 * LAST + 1, 3 * LAST + 1))


def test_signatures_and_destinations_in_words() -> None:
    words = _wording()
    assert words.signature(Signature(0b011, 0, T, 2)) == "r × s, bounced off t, part 2"
    assert words.destination(Leave()) == "answer"
    assert words.destination(Park(T)) == "parked for t"
    assert words.destination(Hold(T)) == "held for t"
    assert words.destination(LookUp(T, 1)).startswith("lookup in t by by(b of ")
    assert words.destination(LookUp(T, 99)) == "lookup in t", "that provider has been given up"
    assert words.predicate(0) == words.destination(Select(0))
    assert words.subject(Signature(0b011), Probe(T)).count(" and ") == 1, "all that is tested there"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (4.1, "4.1"), (1234567.0, "1,234,567"), (0.00123456, "0.00123"), (float("inf"), "infinite")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text
    assert said("odds", value) == f"is drawn with a chance of {text}"


def test_nobody_is_asked_while_nobody_looks_on() -> None:
    policy = Figured()
    router = Router(policy, lambda signature: BOTH, 1)
    batch = Batch(SIGNATURE, (None, range(10), None), (1, 10, 1))
    for _ in range(5):
        router.next(batch)
    assert router.decisions is None
    assert policy.asked == 0


def test_destinations_of_one_number_are_told_apart() -> None:
    """A figure of a predicate's is none of an alias's, and what is removed from a routing array is what was meant."""
    several: list[Destination] = [Probe(1), Select(1), Park(1), Hold(1), LookUp(1, 0)]
    assert len(set(several)) == len(several)
    several.remove(Park(1))
    assert Probe(1) in several
    assert Park(1) not in several
