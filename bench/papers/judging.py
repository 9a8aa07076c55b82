"""One random query judged: the default policy beside the best fixed order that there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.drawn import Drawn, drawn
from bench.papers.orders import Counts
from bench.papers.racing import Case, Outcome, agreed, best, expected, raced
from bench.papers.watching import Eyes, Step, named, shares, work
from mediator.assembly import Settings
from mediator.eddy.destinations import Probe

Order = tuple[int, ...]

_WORTH = (0.002, 0.080)  # estimated seconds of the best order: a query of less or more is drawn anew
_SHORT = 0.008  # estimated seconds: a shorter query is run more often
_MOST_ANSWERS = 3e6
_LIKELY, _LIKELIEST = 12, 4  # orders that race to be the best, at first and after a round
_SCREENED, _FINAL, _MORE = 2, 4, 12  # rounds of the few, rounds that count, and those of a short query
_CLOSE = 0.04  # what is further from 1 than this gets as many rounds again
_BEARABLE = 0.3  # estimated seconds: a worse order than this is not run
_CAUSES = 4
_ROUTES = 6  # signatures of which it is said where their rows went


@dataclass(frozen=True, slots=True)
class Judged:
    """Seconds are of the best round; `work` is the default's rows probed and found ÷ the best order's, `steps` the
    same of visits; `deciding` are the seconds that the policy took for itself. `span` is the worst of all orders ÷ the
    best, both estimated, and `redrawn` how many drawings were passed over, by cause."""

    seed: int
    kind: str
    tables: int
    answers: int
    default: float
    best: float
    worst: float
    order: Order
    work: float
    steps: float
    deciding: float
    span: float = 1.0
    redrawn: Mapping[str, int] = field(default_factory=dict)
    checked: bool = False
    causes: list[str] = field(default_factory=list)
    went: dict[str, list[str]] = field(default_factory=dict)
    should: dict[str, list[str]] = field(default_factory=dict)
    said: dict[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.default / self.best

    @property
    def short(self) -> bool:
        return self.best < _SHORT


def worthwhile(seed: int) -> tuple[Drawn, Counts, dict[str, int]]:
    """The first drawing from this seed that takes neither too short nor too long under its best order, and what was
    passed over before it."""
    redrawn: dict[str, int] = {}
    for attempt in count():
        query = drawn(seed, attempt)
        counts = Counts(query)
        cause = _unworthy(counts)
        if cause is None:
            return query, counts, redrawn
        redrawn[cause] = redrawn.get(cause, 0) + 1
    raise AssertionError("there is always another attempt")


def _unworthy(counts: Counts) -> str | None:
    least = counts.costs().min()
    if least < _WORTH[0]:
        return f"best order estimated at less than {1e3 * _WORTH[0]:g} ms"
    if least > _WORTH[1]:
        return f"best order estimated at more than {1e3 * _WORTH[1]:g} ms"
    return f"more than {_MOST_ANSWERS:,.0f} answers" if counts.answers > _MOST_ANSWERS else None


def setting() -> str:
    """Which queries are taken, and how they are run, in words."""
    low, high = (1e3 * seconds for seconds in _WORTH)
    return (
        f"drawn anew unless the best order is estimated at {low:g} to {high:g} ms, with {_MOST_ANSWERS:,.0f} answers at"
        f" most; the {_LIKELY} orders of the lowest estimates race, and the {_LIKELIEST} fastest of them again"
    )


def rounds() -> str:
    """What the seconds are of, in words."""
    return (
        f"seconds of work of the best of {_FINAL} rounds ({_MORE} where the best order is estimated at less than"
        f" {1e3 * _SHORT:g} ms), contestants in turns; of twice as many where they seem to be more than"
        f" {100 * _CLOSE:g} % apart"
    )


def case_of(query: Drawn) -> Case:
    """Ready to be run."""
    return Case(query.sql, {f"t{n}": t for n, t in enumerate(query.tables)}, query.rounds)


def judged(seed: int, policy: str, check: bool = False) -> Judged:
    """Find the best order, race the policy against it, and say what made the difference."""
    query, counts, redrawn = worthwhile(seed)
    case, costs = case_of(query), counts.costs()
    likely = [_order(counts, n) for n in _apart(costs)[:_LIKELY]]
    random = np.random.default_rng([seed, 1])
    bearable = np.flatnonzero(costs <= max(_BEARABLE, costs.min()))
    others = [_order(counts, n) for n in (bearable[costs[bearable].argmax()], random.choice(bearable))]
    seconds = _screened(case, likely, others)
    order = min(seconds, key=seconds.__getitem__)
    ours = Settings(policy=policy)
    final = _final(case, ours, order, _MORE if costs.min() < _SHORT else _FINAL)
    answers = agreed({name: runs[0] for name, runs in final.items()})
    if check and expected(case) != answers:
        raise RuntimeError(f"seed {seed}: DuckDB finds {expected(case)} where the engine finds {answers}")
    did, could = case.watch(ours)[1], case.watch(_fixed(order))[1]
    return Judged(
        seed, query.kind, query.size, answers[0], best(final["default"]), best(final["fixed"]),
        max(seconds[o] for o in others), order, (work(did.steps) + 1) / (work(could.steps) + 1),
        len(did.steps) / max(1, len(could.steps)), did.deciding, float(costs.max() / costs.min()), redrawn, check,
        _causes(did.steps, could.steps), _routes(did), _routes(could), query.said(),
    )  # fmt: skip


def explained(seed: int, policy: str) -> dict[str, Any]:
    """One case in full."""
    query, counts, _ = worthwhile(seed)
    verdict = judged(seed, policy, check=True)
    case, costs = case_of(query), counts.costs()
    best_first = _apart(costs)
    some = [*best_first[:6], *best_first[6 :: max(1, len(best_first) // 6)]]
    bearable = {_order(counts, n): costs[n] for n in some if costs[n] <= _BEARABLE}
    bearable[verdict.order] = costs[(counts.orders == verdict.order).all(axis=1)][0]
    ours = Settings(policy=policy)
    runs = raced(case, {"default": ours} | {_name(o): _fixed(o) for o in bearable}, 3)
    times = {
        _name(o): f"{1e3 * cost:.1f} ms estimated, {1e3 * best(runs[_name(o)]):.1f} ms"
        for o, cost in bearable.items()
    }
    did, could = case.watch(ours)[1], case.watch(_fixed(verdict.order))[1]
    return {
        **verdict.said,
        "sql": query.sql,
        "answers": verdict.answers,
        "ratio": round(verdict.ratio, 3),
        "work": round(verdict.work, 3),
        "steps": round(verdict.steps, 3),
        "deciding_ms": round(1e3 * verdict.deciding, 2),
        "default_ms": round(1e3 * best(runs["default"]), 2),
        "best": _name(verdict.order),
        "fixed": times,
        "drifts": {f"{a}>{b}": drift for (a, b), drift in counts.drifts().items()},
        "default_went": shares(did.steps, len(query.rounds)),
        "best_went": shares(could.steps, len(query.rounds)),
        "causes": verdict.causes,
    }


def _screened(case: Case, likely: Sequence[Order], others: Sequence[Order]) -> dict[Order, float]:
    """Seconds of these orders: of all a first time, of those that were fastest a few times more."""
    case.run(_fixed(likely[0]))  # so that the first in the race is not the one who finds everything cold
    runs = raced(case, {_name(o): _fixed(o) for o in (*likely, *others)}, 1)
    seconds = {o: best(runs[_name(o)]) for o in (*likely, *others)}
    fastest = sorted(seconds, key=seconds.__getitem__)[:_LIKELIEST]
    again = raced(case, {_name(o): _fixed(o) for o in fastest}, _SCREENED)
    return seconds | {o: min(seconds[o], best(again[_name(o)])) for o in fastest}


def _final(case: Case, ours: Settings, order: Order, rounds: int) -> dict[str, list[Outcome]]:
    """The default against the best order, anew; and once more if they seem to be apart."""
    entries = {"default": ours, "fixed": _fixed(order)}
    runs = raced(case, entries, rounds)
    if abs(best(runs["default"]) / best(runs["fixed"]) - 1) > _CLOSE:
        more = raced(case, entries, rounds)
        runs = {name: runs[name] + more[name] for name in runs}
    return runs


def _fixed(order: Order) -> Settings:
    return Settings(policy="fixed", order=order)


def _apart(costs: NDArray[np.float64]) -> list[int]:
    """Orders by their costs. Of those that differ for no row, and so cost the same, the first."""
    _, firsts = np.unique(costs, return_index=True)
    return [int(n) for n in firsts]


def _order(counts: Counts, number: int) -> Order:
    return tuple(int(a) for a in counts.orders[number])


def _name(order: Order) -> str:
    return "-".join(map(str, order))


def _routes(eyes: Eyes) -> dict[str, list[str]]:
    return shares(eyes.steps, 1, parts=1, most=_ROUTES)


def _causes(ours: Sequence[Step], theirs: Sequence[Step]) -> list[str]:
    """Where the default moved the most rows that the best order did not move there."""
    excess: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for steps, sign in ((ours, 1), (theirs, -1)):
        for step in steps:
            if isinstance(step.destination, Probe):
                at = excess[named(step.signature._replace(part=0)), step.destination.alias]
                for place, value in enumerate((step.rows_in, step.rows_out, 1)):
                    at[place] += sign * value
    most = sorted(excess.items(), key=lambda e: -abs(e[1][0] + e[1][1]))[:_CAUSES]
    return [f"{at}>{to}: {i:+} probed, {o:+} found, {n:+} visits" for (at, to), (i, o, n) in most]
