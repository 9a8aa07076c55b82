"""What the user prefers comes first, while lookups are what all is waiting for.

The SteM paper states that probes of preferred rows are sent to the index first, so that their answers come early, and
shows no figure. Here R's scan is fast and each of its rows needs a lookup of its own, at a site that answers a hundred
a second: a tenth of the rows is preferred. Three runs of the same query, in turns: nothing is preferred; the tenth is;
and, in mid-run, the user changes to another tenth.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median

from bench.result import Result
from bench.site import Pace, Site
from mediator.answering import Mediator

SUMMARY = "preferred answers first, over real HTTP; and a user who changes his mind in mid-run"

SQL = "select r.a from r, s where r.a = s.x"
PLAIN, PREFERRED, CHANGED = "nothing preferred", "a tenth preferred", "another tenth from a quarter on"
_WEIGHT = 10.0
_MOST = 0.9  # of the preferred answers
_CHANGE = 0.25  # of the answers are there by then


@dataclass(slots=True)
class _Run:
    """When each answer was there, in seconds from the start, and which."""

    answers: list[tuple[float, int]] = field(default_factory=list)
    changed: float = 0.0

    def most(self, group: range, since: float = 0.0) -> float:
        """Seconds until nine tenths of a group's answers were there: of those after a moment, from then on."""
        times = sorted(at for at, a in self.answers if a in group and at >= since)
        return times[ceil(_MOST * len(times)) - 1] - since

    def curve(self, group: range) -> list[tuple[float, float]]:
        times = sorted(at for at, a in self.answers if a in group)
        return [(0.0, 0.0), *((at, float(n)) for n, at in enumerate(times, 1))]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="contestants in turns, so many times")
    parser.add_argument("--rows", type=int, default=400, help="of R, each of which needs a lookup")


def measure(options: argparse.Namespace) -> Result:
    rows = options.rows
    pace = Pace(rows=rows, distinct=rows, page=20, r_scan=rows / 1_600)
    return asyncio.run(_measured(pace, options.rounds))


def draw(result: Result, file: Path) -> None:
    """Answers over time: those preferred at first, and those preferred later."""
    from bench.drawing import saved, steps

    with saved(file, 2) as axes:
        for axis, title in zip(axes, ("the first tenth", "the other tenth"), strict=True):
            steps(axis, result.curves[title], f"answers of {title}", "rows")
            axis.axvline(result.curves["changed"], linestyle=":", color="grey")


async def _measured(pace: Pace, rounds: int) -> Result:
    first, other = range(pace.rows // 10), range(pace.rows - pace.rows // 10, pace.rows)
    wanted, wanted_then = f"r.a < {first.stop}", f"r.a >= {other.start}"
    runs: dict[str, list[_Run]] = {PLAIN: [], PREFERRED: [], CHANGED: []}
    with Site(pace) as site:
        await _run(site, {})  # kernels and caches are warm from here on
        for _ in range(rounds):
            runs[PLAIN].append(await _run(site, {}))
            runs[PREFERRED].append(await _run(site, {wanted: _WEIGHT}))
            runs[CHANGED].append(await _run(site, {wanted: _WEIGHT}, {wanted_then: _WEIGHT}))
    plain = median(run.most(first) for run in runs[PLAIN])
    ratios = [p.most(first) / q.most(first) for p, q in zip(runs[PREFERRED], runs[PLAIN], strict=True)]
    later = [
        c.most(other, c.changed) / q.most(other, c.changed)
        for c, q in zip(runs[CHANGED], runs[PLAIN], strict=True)
    ]
    detail = {
        "sql": SQL,
        "prefer": wanted,
        "and_then": wanted_then,
        "setting": f"real HTTP on loopback: {pace.rows} rows of R within {pace.r_scan:g} s, and as many lookups of"
        f" {1_000 * pace.lookup:g} ms, {pace.concurrency} under way at once",
        "seconds_to_most": {
            name: [round(run.most(first), 3) for run in runs[name]] for name in (PLAIN, PREFERRED)
        },
        "changed": {
            "at_s": [round(run.changed, 3) for run in runs[CHANGED]],
            "seconds_to_most_from_then": [round(run.most(other, run.changed), 3) for run in runs[CHANGED]],
            "vs_plain": [round(ratio, 3) for ratio in later],
        },
        "plain_s": round(plain, 3),
        "taken": f"the median of {rounds} rounds",
    }
    curves = {
        title: {name: of[0].curve(group) for name, of in runs.items()}
        for title, group in (("the first tenth", first), ("the other tenth", other))
    }
    figures = {"preferred_vs_plain": median(ratios), "changed_vs_plain": median(later)}
    return Result("stems-priority", figures, detail, {**curves, "changed": runs[CHANGED][0].changed})


async def _run(site: Site, prefer: dict[str, float], then: dict[str, float] | None = None) -> _Run:
    """One query, in a mediator that has no row; what is preferred changes in its midst if there is a `then`."""
    loop, run = asyncio.get_running_loop(), _Run()
    site.reset()
    async with Mediator(site.catalog) as mediator:
        began = loop.time()
        async with mediator.answering(SQL, prefer=prefer) as answers:
            async for batch in answers:
                now = loop.time() - began
                run.answers += [(now, a) for a in batch.column("a").to_pylist()]
                if then is not None and not run.changed and len(run.answers) >= _CHANGE * site.pace.rows:
                    answers.steer(prefer=then)
                    run.changed = now
            if not answers.report.complete:
                raise RuntimeError(f"incomplete: {answers.report}")
    if sorted(a for _, a in run.answers) != list(range(site.pace.rows)):
        raise RuntimeError(f"{site.pace.rows} answers were to be found, and these were: {len(run.answers)}")
    return run
