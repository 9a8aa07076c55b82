"""The default policy looks ahead, tells what has not arrived from what does not match, and looks around on a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from mediator.binding.verdict import verdict
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.destinations import Destination, LookUp, Park, Probe
from mediator.eddy.policies.foresight import HELD, Foresight
from mediator.eddy.policy import AGAIN, Situation, Visit
from mediator.flow.batch import Signature
from mediator.query.model import BlockStage
from mediator.query.understand import understand

ROWS = 10_000
R, S, T, U = (Probe(alias) for alias in range(4))


@dataclass
class Stage:
    """A block's policy, fed with visits."""

    policy: Foresight
    rules: partial[tuple[Destination, ...]]
    size: int
    far: tuple[int, ...] = ()

    def sees(
        self, spanned: int, where: Probe, fan_out: float, seconds: float = 1e-3, rows: int = ROWS
    ) -> bool:
        visit = Visit(Signature(spanned), where, rows, round(rows * fan_out), seconds, ROWS)
        return bool(self.policy.learn(visit))

    def chooses(self, spanned: int, **said: Any) -> Destination:
        """Where a batch goes in the end, whatever is looked at before."""
        situation = Situation(ROWS, (ROWS,) * self.size, remote=self.far)
        situation = situation._replace(**said)
        signature = Signature(spanned)
        for _ in range(20):
            where = self.policy.choose(signature, self.rules(signature), situation)
            if not self.policy.sample(signature, where):
                return where
            self.policy.learn(Visit(signature, where, 100, 10, 1e-5, ROWS))
        raise AssertionError("it never stops looking around")


def stage(where: str, names: str = "rstu", remote: Sequence[str] = ()) -> Stage:
    mirror = Mirror("site", "")
    scan = AccessMethod("scan", "scan", (mirror,), None)
    index = AccessMethod("index", "index", (mirror,), None, required=("x",))
    fields = tuple(Field(n, pa.int64()) for n in ("x", "y", "z"))
    relations = {n: Relation(n, fields, (index if n in remote else scan,)) for n in names}
    sql = f"SELECT {names[0]}.x FROM {', '.join(names)} WHERE {where}"
    (only,) = understand(sql, Catalog(relations, {"site": Source("site")})).stages
    assert isinstance(only, BlockStage)
    found = verdict(only.block)
    graph = Graph.of(only.block)
    rules = partial(legal, graph=graph, providers=found.providers, chosen=found.chosen)
    far = tuple(p.alias for p in found.chosen if p.depends)
    return Stage(Foresight(graph, rules), rules, len(names), far)


FROM_R = Signature(0b001)
STAR = "r.x = s.x AND r.y = t.y AND r.z = u.z"
PATH = "r.x = s.x AND s.y = t.y AND t.z = u.z"


def test_what_thins_out_most_comes_first() -> None:
    star = stage(STAR)
    for where, fan_out in ((S, 0.9), (T, 0.1), (U, 0.5)):
        star.sees(0b0001, where, fan_out)
    assert star.chooses(0b0001) == T


def test_a_costly_one_comes_later_though_it_thins_out_more() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for _ in range(3):
        star.sees(0b001, S, 0.5, seconds=1e-3)
        star.chooses(0b001)
        star.sees(0b001, T, 0.1, seconds=1e-1)
    assert star.chooses(0b001) == S


def test_a_join_that_multiplies_is_taken_first_where_the_next_undoes_it() -> None:
    """From S: R halves; T doubles, and nothing of that finds a U."""
    path = stage(PATH)
    for _ in range(3):
        path.sees(0b0010, R, 0.8)
        path.sees(0b0010, T, 2.0)
        path.sees(0b0110, U, 0.0001)
        path.sees(0b0110, R, 0.8)
        path.sees(0b0011, T, 2.0)
        path.sees(0b0111, U, 0.0001)
    assert path.chooses(0b0010) == T


def test_correlated_joins_are_known_by_what_they_do_together() -> None:
    """S and T each keep half. What S keeps T keeps too, what U keeps T throws away."""
    star = stage(STAR)
    for _ in range(3):
        for where in (S, T, U):
            star.sees(0b0001, where, 0.5)
        star.sees(0b0011, T, 1.0)
        star.sees(0b0011, U, 0.5)
        star.sees(0b1001, T, 0.001)
        star.sees(0b1001, S, 0.5)
        star.sees(0b0101, U, 0.001)
        star.sees(0b0101, S, 1.0)
    assert star.chooses(0b0001) in (T, U)
    assert star.chooses(0b1001) == T


def test_what_has_not_arrived_is_no_judgement() -> None:
    """Where S had ten rows, a probe found nothing. Now that it has all, its matches are as many as from elsewhere."""
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    star.policy.learn(Visit(Signature(0b001), S, 1_000, 0, 1e-4, 10))
    for _ in range(3):
        star.sees(0b010, R, 5.0)  # the same predicate, from the other side
        star.sees(0b001, T, 0.5)
    star.policy.learn(Visit(Signature(0b001), S, 1_000, 50, 1e-4, 100))
    assert star.chooses(0b001) == T


def test_rows_meet_nobody_where_nothing_has_come() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for _ in range(3):
        star.sees(0b001, S, 5.0)
        star.sees(0b001, T, 0.5)
    assert star.chooses(0b001) == T
    assert star.chooses(0b001, seen=(ROWS, 0, ROWS)) == S, "what S has to come will find these rows"


def test_what_is_known_from_one_side_counts_for_the_other() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    star.sees(0b010, R, 0.01)
    star.sees(0b100, R, 3.0)
    assert star.chooses(0b001) == S


def test_a_change_is_noticed_and_followed() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for _ in range(30):
        star.sees(0b001, S, 0.1)
        star.sees(0b001, T, 0.5)
    assert star.chooses(0b001) == S
    surprises = [star.sees(0b001, S, 4.0) for _ in range(8)]
    assert any(surprises[:4]), "a visit so unlike the others is reason to choose again"
    assert star.chooses(0b001) == T


def test_an_index_that_would_have_to_be_made_is_reckoned_in() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for _ in range(3):
        star.sees(0b010, R, 0.40)
        star.sees(0b001, T, 0.45)
    assert star.chooses(0b001, behind=(0, 0, 0)) == S
    assert star.chooses(0b001, behind=(0, 50_000_000, 0)) == T


def test_looking_around_stays_within_its_budget() -> None:
    star = stage(STAR)
    for where, fan_out in ((S, 0.1), (T, 0.5), (U, 0.5)):
        star.sees(0b0001, where, fan_out)
    signature, situation = Signature(0b0001), Situation(ROWS, (ROWS,) * 4)
    worked = looked = 0.0
    for _ in range(400):
        where = star.policy.choose(signature, (S, T, U), situation)
        rows = star.policy.sample(signature, where)
        seconds = 1e-3 if not rows else 1e-4
        worked, looked = worked + seconds, looked + (seconds if rows else 0.0)
        fan_out = 0.1 if where == S else 0.5
        star.policy.learn(
            Visit(signature, where, rows or ROWS, round((rows or ROWS) * fan_out), seconds, ROWS)
        )
    assert looked > 0.0, "what was not chosen is looked at now and then"
    assert looked < 0.05 * worked


def test_among_sites_the_one_whose_answers_take_less_time_and_find_less_is_asked_first() -> None:
    two = stage("r.x = s.x AND r.x = t.x", "rst", remote=("s", "t"))
    fast, slow = 0.001, 0.100
    assert two.chooses(0b001, waits=(0.0, slow, fast), finds=(1.0, 0.5, 0.5)) == T
    assert two.chooses(0b001, waits=(0.0, fast, slow), finds=(1.0, 0.5, 0.5)) == S
    assert two.chooses(0b001, waits=(0.0, fast, fast), finds=(1.0, 0.9, 0.1)) == T


def test_rows_that_are_there_come_before_those_that_must_be_looked_up() -> None:
    mixed = stage("r.x = s.x AND r.x = t.x", "rst", remote=("t",))
    mixed.sees(0b001, S, 5.0)
    assert mixed.chooses(0b001, waits=(0.0, 0.0, 0.001), finds=(1.0, 1.0, 0.0)) == S


@pytest.mark.parametrize("size", [12, 20])
def test_many_tables_do_not_take_for_ever(size: int) -> None:
    names = "abcdefghijklmnopqrst"[:size]
    star = stage(" AND ".join(f"a.x = {n}.x" for n in names[1:]), names)
    chosen = star.chooses(1)
    assert isinstance(chosen, Probe)


def test_what_bounced_is_asked_for_rather_than_left_to_wait() -> None:
    star = stage(STAR)
    bounced = Signature(0b0001, completing=1)
    chosen = star.policy.choose(bounced, (Park(1), LookUp(1, 1), LookUp(1, 0)), Situation(10, (1,) * 4))
    assert chosen == LookUp(1, 0)


def test_the_figures_behind_a_choice_can_be_had() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    star.sees(0b001, S, 0.1)
    figures = star.policy.why(Signature(0b001), (S, T), Situation(ROWS, (ROWS,) * 3))
    assert figures[S]["fan-out"] == pytest.approx(0.1)
    assert figures[S]["ms to the end"] > 0.0
    assert "fan-out" not in figures[T], "of what nobody has tried nothing is said"


def test_a_choice_holds_while_nothing_to_speak_of_changes() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for where, fan_out in ((S, 0.1), (T, 0.5)):
        star.sees(0b001, where, fan_out)
    assert star.chooses(0b001) == S
    assert star.chooses(0b001, seen=(ROWS, ROWS, 2 * ROWS)) == S
    assert star.chooses(0b001, seen=(ROWS, ROWS, 0)) == T, "nobody is there: nothing is left to be done then"


def test_a_surprise_ends_what_held() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for _ in range(3):
        star.sees(0b001, S, 0.1)
        star.sees(0b001, T, 0.5)
    assert star.chooses(0b001) == S
    assert star.sees(0b001, S, 50.0)
    assert star.chooses(0b001) == T


def test_keys_that_were_compared_tell_what_multiplies_and_nothing_of_costs() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    star.sees(0b001, S, 0.9)
    star.policy.choose(Signature(0b001), (S, T), Situation(ROWS, (ROWS,) * 3))
    star.policy.learn(Visit(Signature(0b001), T, 500, 5_000, 10.0, 2_000, compared=True))
    assert star.policy.why(Signature(0b001), (T,), Situation(ROWS, (ROWS,) * 3))[T][
        "fan-out"
    ] == pytest.approx(50.0)
    assert star.chooses(0b001) == S


def test_in_a_class_of_equal_columns_one_stands_for_another() -> None:
    """Of R with T and of R and S with T it is the same column that counts."""
    same = stage("r.x = s.x AND s.x = t.x AND t.x = u.x")
    same.sees(0b0001, T, 0.01)
    same.sees(0b0001, U, 0.9)
    figures = same.policy.why(Signature(0b0011), (T, U), Situation(ROWS, (ROWS,) * 4))
    assert {where: f["fan-out"] for where, f in figures.items()} == pytest.approx({T: 0.01, U: 0.9})


def test_the_calmer_a_step_the_less_of_it_is_told() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    visit = Visit(Signature(0b001), S, 100, 10, 1e-6, ROWS)
    assert star.policy.learn(visit) == AGAIN, "nothing was known before"
    star.chooses(0b001)
    said = [star.policy.learn(visit) for _ in range(20)]
    assert said == sorted(said)
    assert said[-1] > 10
    assert star.policy.learn(visit._replace(rows_out=5_000)) == AGAIN
    assert star.policy.learn(visit) < 10


def test_a_glance_is_enough_for_a_while() -> None:
    """However much work was done, and however little a glance takes."""
    for work, seconds in ((0.5, 3e-5), (5.0, 1e-5), (0.5, 0.0)):
        star = stage("r.x = s.x AND r.y = t.y", "rst")
        for _ in range(200):
            star.sees(0b001, S, 0.5, seconds=work / 200)
        situation = Situation(8_192, (0, 20_000, 3_000), (0, 0, 3_000))
        glances = 0
        while star.policy.sample(FROM_R, where := star.policy.choose(FROM_R, (S, T), situation)):
            star.policy.learn(Visit(FROM_R, where, 512, 350, seconds, 2_048, compared=True))
            glances += 1
            assert glances < 5


def test_with_many_costly_predicates_a_choice_does_not_follow_every_order() -> None:
    graph = Graph(1, (), (), tuple((n, 1) for n in range(16)))
    provider = AccessMethod("scan", "scan", (), None)
    rules = partial(legal, graph=graph, providers=((provider,),), chosen=(provider,))  # type: ignore[arg-type]
    policy = Foresight(graph, rules)
    tests = rules(FROM_R)
    for n, test in enumerate(tests):
        policy.learn(Visit(FROM_R, test, ROWS, ROWS * (n + 1) // 20, 1e-2 * (n + 1)))
    policy.choose(FROM_R, tests, Situation(ROWS, (ROWS,)))
    assert len(policy._lattice._nodes) < 1_000


def test_a_part_s_rows_count_for_the_whole() -> None:
    star = stage("r.x = s.x AND r.y = t.y", "rst")
    for part in (1, 2):
        star.policy.learn(Visit(FROM_R._replace(part=part), S, 1_000, 10, 1e-3, ROWS))
    assert star.policy._lattice.node(FROM_R).came == 2_000


def test_who_holds_no_choice_thinks_about_every_batch_and_hears_of_every_visit() -> None:
    thought = []
    for held in (HELD, 0.0):
        star = stage("r.x = s.x AND r.y = t.y", "rst")
        star.policy = Foresight(star.policy._lattice._graph, star.rules, held=held)
        for _ in range(50):
            star.sees(0b001, S, 0.1, seconds=1e-5, rows=1_000)
            star.sees(0b001, T, 0.5, seconds=1e-5, rows=1_000)
        before = star.policy._outlook._choice
        for _ in range(20):
            star.chooses(0b001)
        thought.append(star.policy._outlook._choice - before)
        said = star.policy.learn(Visit(FROM_R, S, 1_000, 100, 1e-5, ROWS))
        assert bool(said) == bool(held)
    assert thought[0] < 5
    assert thought[1] >= 20


def _path_that_pays_late(keeps: float) -> Stage:
    """From S: R keeps so much; T doubles, and nothing of that finds a U. Much has been thought already."""
    path = stage(PATH)
    for _ in range(3):
        path.sees(0b0010, R, keeps, seconds=1e-4)
        path.sees(0b0010, T, 2.0, seconds=1e-4)
        path.sees(0b0110, U, 0.0001, seconds=1e-4)
    path.policy._thought = 1e-3
    return path


def test_who_has_thought_enough_goes_where_most_is_thinned_out() -> None:
    path = _path_that_pays_late(keeps=0.8)
    assert path.chooses(0b0010) == R
    assert path.policy._thought == 1e-3


def test_where_nothing_thins_out_it_is_thought_over_all_the_same() -> None:
    path = _path_that_pays_late(keeps=1.1)
    assert path.chooses(0b0010) == T
    assert path.policy._thought > 1e-3


def test_what_thinking_costs_is_earned_by_work() -> None:
    path = _path_that_pays_late(keeps=0.8)
    assert path.chooses(0b0010) == R
    path.sees(0b0111, U, 0.0001, seconds=1.0, rows=100_000_000)
    assert path.chooses(0b0010) == T


def test_at_a_glance_what_was_seen_of_the_joined_rows_counts() -> None:
    """T keeps the fewest of R's rows, but all of those that have found an S; of them U keeps half."""
    star = stage(STAR)
    for where, fan_out in ((S, 0.5), (T, 0.1), (U, 0.5)):
        star.sees(0b0001, where, fan_out)
    star.sees(0b0011, T, 1.0)
    star.sees(0b0011, U, 0.5)
    star.policy._thought = 1.0
    assert star.chooses(0b0001) == T
    assert star.chooses(0b0011) == U
    assert star.policy._thought == 1.0
