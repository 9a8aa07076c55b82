"""Figures 12 and 13 of the first paper on eddies: the hash joins of figure 8, and R comes late.

`R.a = S.a and S.b = T.b`, a row of S finds 0.2 rows of R and one of T, and R's first row comes when 43.5 % of S have
come, as in figure 13 (10 s late, there). The paper's eddy does badly: it takes a join that gives nothing back for a
very selective one, sends most of S there, and S's rows are absorbed; when the late ones come, they all burst forth.

Here a row of S is in its SteM and nowhere else, whatever it probes, and a probe of what has not arrived is neither
cheap nor selective: nothing can be learnt from it. The rivals are both orders, and the two plans that knew of the delay
in advance: one order until R comes, and the other from then on. The best of these four is the informed one. A plan that
changes over asks itself before every batch, which is a comparison; nobody looks on.

`default_vs_informed` is work from the first row to the last answer, as fast as rows are taken. What the paper draws is
elapsed time: `completion_vs_informed` is the time from R's arrival to the last answer when rows come at the pace of
their sources, and `after_r_vs_informed` the work that is left to be done from then on, where a plan that has put off
what R will need pays for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import thread_time

import numpy as np
import pyarrow as pa

from bench.feeding import Arrival, arrivals, catalog_of
from bench.papers.axes import beside, lines
from bench.papers.eddies import DEFAULT, Entry, Race, ordered, policies, raced, three_tables
from bench.papers.fed import Fed
from bench.papers.runs import Run
from bench.result import Result
from mediator.assembly import Settings
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policies.fixed import Fixed
from mediator.eddy.policy import Situation
from mediator.flow.batch import Signature

SUMMARY = "figures 12 and 13 of the paper on eddies: a join whose other side comes late"

SQL = "select r.k, s.k as sk, t.c from r, s, t where r.a = s.a and s.b = t.b"
_R, _S, _T = range(3)  # aliases
_ORDERS = {"R first": (_S, _R, _T), "T first": (_S, _T, _R)}
_MATCHES = 0.2
_LATE = 0.435  # of S's rows have come when R begins
_KNEW = (*_ORDERS, "T first, then R", "R first, then T")
_SHOWN = (*_KNEW, DEFAULT, "windowed", "naive")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1.0, help="times the paper's rows")
    parser.add_argument("--batch", type=int, default=2_000, help="rows in a batch")
    parser.add_argument("--late", type=float, default=_LATE, help="share of S's rows that come before R's")
    parser.add_argument("--rounds", type=int, default=15, help="contestants in turns, so many times")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="that all rows take to come, in the timed runs"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the tables")


class Informed(Fixed):
    """One order until the first row of an alias has come, and another from then on."""

    def __init__(self, late: int, before: Sequence[int], after: Sequence[int]) -> None:
        super().__init__(after)
        self._late = late
        self._before = Fixed(before)

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        if not situation.seen[self._late]:
            return self._before.choose(signature, legal, situation)
        return super().choose(signature, legal, situation)


def measure(options: argparse.Namespace) -> Result:
    """As fast as it goes, for the figure; then at the pace of the sources, and row by row, for the drawing."""
    tables = three_tables(options.scale, options.seed, _MATCHES)
    rounds = delayed(tables, options.batch, options.late)
    catalog = catalog_of(tables)
    fed = Fed(SQL, catalog, rounds, clock=thread_time)
    race = raced(_informed(fed), policies(fed), options.rounds)
    paced = Fed(SQL, catalog, rounds, pause=options.seconds / len(rounds))
    everyone = {**_informed(paced), **policies(paced)}
    shown = {name: everyone[name].run() for name in _SHOWN}
    begins = _begins(rounds)
    result = Result("eddies-delay")
    result.figures = {
        "default_vs_informed": race.ratios()[DEFAULT],
        "completion_vs_informed": _completion(shown, begins),
        "after_r_vs_informed": _after(race, DEFAULT, begins) / _after(race, race.best_static, begins),
    }
    result.curves = {
        "results": {name: run.results() for name, run in shown.items()},
        "moves": {name: e.moves(_S, _R) for name, e in policies(fed).items() if name in _SHOWN},
        "starts": options.late * options.seconds,
        "late": options.late,
    }
    result.detail |= {"sql": SQL, "setting": _setting(tables, options), **_told(race)}
    result.detail["ended_s"] = {
        name: round(curve[-1][0], 4) for name, curve in result.curves["results"].items()
    }
    result.detail["after_r_s"] = {name: round(_after(race, name, begins), 4) for name in race.runs}
    result.detail["tables"] = {"plan": _in_short(race)}
    return result


def draw(result: Result, file: Path) -> None:
    """Figure 12: every contestant's time ÷ the informed plan's; results over time; figure 13: where rows of S went."""
    from bench.drawing import saved

    with saved(file, 3) as axes:
        beside(axes[0], {"figure 12": result.detail["ratios"]}, "figure 12: work / the informed plan's")
        axes[0].axvline(1.0, color="black", linewidth=0.5)
        lines(axes[1], result.curves["results"], "results, as rows come", "seconds", "rows", stepped=True)
        axes[1].axvline(result.curves["starts"], color="black", linestyle=":")
        moves = {
            name: [(100 * at / curve[-1][0], 100 * share) for at, share in curve]
            for name, curve in result.curves["moves"].items()
        }
        lines(axes[2], moves, "figure 13: rows of S", "% of S that has come", "% that went to R first")
        axes[2].axvline(100 * result.curves["late"], color="black", linestyle=":")


def delayed(tables: Mapping[str, pa.Table], batch: int, late: float) -> list[list[Arrival]]:
    """All tables in batches that end together, one a round; R's begin when so much of S has come."""
    early = [a for landed in arrivals({n: tables[n] for n in "st"}, batch) for a in landed]
    r: list[Arrival] = [("r", b) for b in tables["r"].combine_chunks().to_batches(max_chunksize=batch)]
    ends = np.cumsum([rows.num_rows if name == "s" else 0 for name, rows in early]) / tables["s"].num_rows
    start = int(np.argmax(ends >= late))
    places = np.linspace(start, len(early) - 1, len(r))
    timed = [(float(at), arrival) for at, arrival in enumerate(early)]
    timed += [(float(at) + 0.5, arrival) for at, arrival in zip(places, r, strict=True)]
    return [[arrival] for _, arrival in sorted(timed, key=lambda t: t[0])]


def _begins(rounds: Sequence[Sequence[Arrival]]) -> int:
    """The round in which R's first rows come."""
    return next(number for number, landed in enumerate(rounds) if any(name == "r" for name, _ in landed))


def _after(race: Race, name: str, begins: int) -> float:
    """Seconds of work from R's arrival to the end; of all rounds the least."""
    return min(run.seconds - run.rounds[begins] for run in race.runs[name])


def _completion(shown: Mapping[str, Run], begins: int) -> float:
    """Elapsed time from R's arrival to the last answer, the default's ÷ the soonest informed plan's."""
    left = {name: run.seconds - run.rounds[begins] for name, run in shown.items()}
    return left[DEFAULT] / min(left[name] for name in _KNEW if name in left)


def _in_short(race: Race) -> dict[str, object]:
    """For the page: what the plans that knew, and the default, take."""
    ratios = race.ratios()
    orders = [ratios[name] for name in _ORDERS]
    where = "slower than both orders" if ratios[DEFAULT] > max(orders) else "not slower than both orders"
    plans = {name: {"÷ the informed": ratios[name], "": ""} for name in (*_KNEW, "random")}
    return {**plans, DEFAULT: {"÷ the informed": ratios[DEFAULT], "": where}}


def _informed(fed: Fed) -> dict[str, Entry]:
    """The static plans, and those that knew when R would come."""
    r_first, t_first = _ORDERS.values()
    at_once = Settings(revisit=1)
    return {
        **{name: ordered(fed, order) for name, order in _ORDERS.items()},
        "T first, then R": Entry(fed, at_once, partial(Informed, _R, t_first, r_first)),
        "R first, then T": Entry(fed, at_once, partial(Informed, _R, r_first, t_first)),
    }


def _told(race: Race) -> dict[str, object]:
    return {
        "informed": race.best_static,
        "ratios": race.ratios(),
        "seconds": race.seconds(),
        "r_first": race.shares(Signature(1 << _S), Probe(_R)),
        "answers": race.answers,
    }


def _setting(tables: Mapping[str, pa.Table], options: argparse.Namespace) -> str:
    r, s, t = (f"{tables[name].num_rows:,}" for name in "rst")
    return (
        f"{r} rows of R, {s} of S, {t} of T, in batches of {options.batch:,} that all end together; R's first comes"
        f" when {100 * options.late:g} % of S have come, which is 10 s in the paper; contestants in turns, best of"
        f" {options.rounds} rounds of work, rows coming as fast as they are taken. Results over time are of runs in"
        f" which all rows take {options.seconds:g} s to come"
    )
