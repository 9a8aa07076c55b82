"""Random queries, the counts of their orders, and how they are judged. How fast anything is, no test says."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import main
from bench.papers import judging, regret
from bench.papers.drawn import KINDS, Drawn, Edge, Pacing, drawn
from bench.papers.judging import Judged, case_of, judged
from bench.papers.orders import Counts
from bench.papers.racing import Case, Outcome, agreed, expected, raced
from bench.papers.watching import shares, work
from mediator.assembly import Settings
from mediator.eddy.destinations import Probe
from tests.bench.test_bench import said


def small(seed: int, rows: int = 400) -> Drawn:
    """The query of a seed with the beginning of its tables, in ten batches each."""
    query = drawn(seed)
    tables = tuple(t.slice(0, rows).combine_chunks() for t in query.tables)
    pacing = tuple(Pacing(c.delay, c.lasts, rows // 10) for c in query.pacing)
    return Drawn(seed, query.kind, tables, query.edges, pacing, query.cuts)


def counted(query: Drawn, order: tuple[int, ...]) -> int:
    """Rows probed and found in a run of an order."""
    return work(case_of(query).watch(Settings(policy="fixed", order=order))[1].steps)


def test_a_seed_draws_the_same_query_each_time() -> None:
    one, other = drawn(7), drawn(7)
    assert one.sql == other.sql
    assert one.tables == other.tables
    assert drawn(7, attempt=1).tables != one.tables


def test_all_kinds_and_sizes_are_drawn() -> None:
    queries = [drawn(seed) for seed in range(80)]
    assert {q.kind for q in queries} == set(KINDS)
    assert {q.size for q in queries} == set(range(3, 8))
    assert all(1_000 <= t.num_rows <= 100_000 for q in queries for t in q.tables)
    assert any(c.delay for q in queries for c in q.pacing)
    assert any(cut is not None for q in queries for cut in q.cuts)


@pytest.mark.parametrize("trait", ["step", "slide", "blocks", "skew", "wander", "correlated"])
def test_joins_change_and_hang_together(trait: str) -> None:
    traits = [e.traits for seed in range(40) for e in drawn(seed).edges]
    assert any(trait in t for t in traits)
    assert not all(trait in t for t in traits)


def test_a_table_comes_in_its_own_order_and_time() -> None:
    query = small(3)
    came: dict[str, list[int]] = {}
    for ((name, batch),) in query.rounds:
        came.setdefault(name, []).extend(batch.column("k").to_pylist())
    assert came == {f"t{n}": t.column("k").to_pylist() for n, t in enumerate(query.tables)}


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_what_a_run_does(seed: int) -> None:
    """Where nothing is sampled, all that an order's probes find is counted to the row."""
    query = small(seed)
    counts = Counts(query)
    random = np.random.default_rng(seed)
    tried = 0
    for number in random.choice(len(counts.orders), 6):
        if counts.costs()[number] < 0.1:
            order = tuple(int(a) for a in counts.orders[number])
            steps = case_of(query).watch(Settings(policy="fixed", order=order))[1].steps
            assert sum(s.rows_out for s in steps if isinstance(s.destination, Probe)) == _found_under(
                counts, query, order
            )
            tried += 1
    assert tried


def test_counted_answers_are_the_answers() -> None:
    query = small(1)
    assert Counts(query).answers == case_of(query).run(Settings()).answers


def test_a_cheap_order_by_count_is_a_cheap_one_to_run() -> None:
    query = small(5, rows=1_500)
    counts = Counts(query)
    costs = counts.costs()
    best, worst = (tuple(int(a) for a in counts.orders[n]) for n in (costs.argmin(), costs.argmax()))
    assert counted(query, best) < counted(query, worst)


def test_the_orders_are_all_orders() -> None:
    query = small(1)
    assert {tuple(o) for o in Counts(query).orders.tolist()} == set(permutations(range(query.size)))


@pytest.mark.parametrize("seed", range(8))
def test_every_policy_and_duckdb_agree(seed: int) -> None:
    case = case_of(small(seed))
    entries = {p: Settings(policy=p) for p in (Settings().policy, "rank", "random")}
    outcomes = {name: runs[0] for name, runs in raced(case, entries, 1).items()}
    assert agreed(outcomes) == expected(case)


def test_answers_that_differ_are_no_race() -> None:
    with pytest.raises(RuntimeError, match="answers differ"):
        agreed({"one": Outcome(3, 10, 0.1), "other": Outcome(3, 11, 0.1)})


def test_the_sum_tells_rows_from_rows() -> None:
    query = small(0)
    case, turned = case_of(query), query.rounds[::-1]
    again = Case(query.sql, case.tables, turned)
    assert case.run(Settings()).total == again.run(Settings()).total
    changed = {**case.tables, "t0": case.tables["t0"].slice(0, 100)}
    assert expected(Case(query.sql, changed, query.rounds))[0] <= expected(case)[0]


def test_where_rows_went_is_said_by_part_of_the_run() -> None:
    query = small(1)
    eyes = case_of(query).watch(Settings(policy="fixed", order=tuple(range(query.size))))[1]
    assert eyes.steps
    assert all(
        isinstance(s.destination, Probe) for s in eyes.steps if s.rows_out and s.signature.spanned == 1
    )
    went = shares(eyes.steps, len(query.rounds), parts=3)
    assert all(len(parts) == 3 for parts in went.values())
    assert any("100 %" in part for parts in went.values() for part in parts)


def test_a_query_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "drawn", lambda seed, attempt: small(seed + attempt))
    monkeypatch.setattr(judging, "_WORTH", (0.0, 1.0))
    verdict = judged(1, Settings().policy, check=True)
    assert verdict.checked
    assert verdict.answers == case_of(small(1)).run(Settings()).answers
    assert verdict.ratio > 0
    assert verdict.work > 0
    assert sorted(verdict.order) == list(range(verdict.tables))


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "drawn", lambda seed, attempt: small(seed + attempt))
    monkeypatch.setattr(judging, "_WORTH", (0.0, 1.0))
    monkeypatch.setattr(judging, "expected", lambda case: (-1, 0))
    with pytest.raises(RuntimeError, match="seed 1: DuckDB finds"):
        judged(1, Settings().policy, check=True)


def test_what_takes_too_short_or_too_long_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    drawings = []

    def noted(seed: int, attempt: int) -> Drawn:
        drawings.append(attempt)
        return small(seed, rows=400 if attempt < 2 else 4_000)

    monkeypatch.setattr(judging, "drawn", noted)
    least = float(Counts(small(1)).costs().min())
    monkeypatch.setattr(judging, "_WORTH", (1.01 * least, 10.0))
    query, _, redrawn = judging.worthwhile(1)
    assert drawings == [0, 1, 2]
    assert list(redrawn.values()) == [2]
    assert "less than" in next(iter(redrawn))
    assert query.tables[0].num_rows > 400


def test_figures_are_of_all_cases_and_the_worst_are_shown() -> None:
    cases = [_case(seed, ratio=1.0 + seed / 100) for seed in range(30)]
    result = regret.summed(cases, "rank")
    assert result.figures["median"] == pytest.approx(1.145)
    assert result.figures["worst"] == pytest.approx(1.29)
    assert result.figures["saved_vs_worst"] == pytest.approx(0.5 * 1.145)
    assert result.figures["estimated_worst_vs_best"] == 4.0
    assert result.detail["tables"]["drawings"] == {
        "taken": {"how many": 30, "share": "33 %"},
        "too short": {"how many": 60, "share": "67 %"},
    }
    assert {name: of["how many"] for name, of in result.detail["tables"]["queries"].items()} == {"longer": 30}
    assert [shown["seed"] for shown in result.detail["worst"]] == list(range(29, 19, -1))


def test_regret_explains_and_draws(tmp_path: Path) -> None:
    cases = [_case(seed, ratio=1.1) for seed in range(3)]
    regret.draw(regret.summed(cases, "rank"), tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size


def test_explaining_needs_one_seed() -> None:
    with pytest.raises(SystemExit, match="--only SEED"):
        main(["paper", "regret", "--explain"])


def test_one_query_from_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "drawn", lambda seed, attempt: small(seed + attempt))
    monkeypatch.setattr(judging, "_WORTH", (0.0, 1.0))
    assert main(["paper", "regret", "--only", "1", "--json"]) == 0
    assert said(capsys)["figures"]["worst"] > 0
    assert main(["paper", "regret", "--only", "1", "--explain", "--json"]) == 0
    detail = said(capsys)["detail"]
    assert detail["default_went"]
    assert len(detail["fixed"]) > 1


def _case(seed: int, ratio: float) -> Judged:
    return Judged(
        seed,
        "path",
        3,
        10,
        default=ratio,
        best=1.0,
        worst=2.0,
        order=(0, 1, 2),
        work=1.0,
        steps=1.0,
        deciding=0.0,
        span=4.0,
        redrawn={"too short": 2},
    )


def _found_under(counts: Counts, query: Drawn, order: tuple[int, ...]) -> float:
    """Rows that all steps of an order find, by the counts."""
    total = 0.0
    for alias in range(query.size):
        mask = 1 << alias
        while mask != (1 << query.size) - 1:
            mask |= 1 << next(a for a in order if not mask >> a & 1 and _joined(query.edges, mask, a))
            total += counts.rows[alias, mask]
    return total


def _joined(edges: tuple[Edge, ...], mask: int, alias: int) -> bool:
    ends = [(e.left, e.right) for e in edges] + [(e.right, e.left) for e in edges]
    return any(one == alias and mask >> other & 1 for one, other in ends)
