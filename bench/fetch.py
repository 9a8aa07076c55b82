"""The polite fetch over real HTTP on loopback, where a reply takes 50 ms: how fast, how dear, and how polite.

The site is a process of its own (`bench.moody`). Rivals do the same lookups: a bare aiohttp loop as wide, and one that
has been told how many requests the site bears, and when that changes.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median

from bench.lookups import all_at_once, bare, catalog, one_by_one
from bench.moody import Moods, MoodySite
from bench.result import Result
from mediator.access.mirrors.latency import nearest_rank
from mediator.catalog.model import Source

SUMMARY = "lookups over HTTP: against a bare loop, with late replies, and at sites that are down or tight"

_BATCH = 20


@dataclass(frozen=True)
class Scale:
    """How much is asked."""

    width: int = 32  # requests under way at once, as every source declares it
    lookups: int = 2_000
    tight: int = 1_500  # lookups at a site that bears fewer requests at once than it declared
    timed: int = 1_500  # lookups whose waits are measured
    walkers: int = 16  # askers that do those, each one after another
    hopeless: int = 1_000  # lookups at a site that is down
    packed: int = 1_010
    rounds: int = 3
    deadline: float = 5.0  # of a page, where most requests fail
    moods: Moods = field(default_factory=Moods)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="the contestants in turns, so many times")


def measure(options: argparse.Namespace) -> Result:
    return asyncio.run(measured(Scale(rounds=options.rounds)))


async def measured(scale: Scale) -> Result:
    result = Result("fetch")
    result.detail["setting"] = (
        f"a reply takes {1_000 * scale.moods.latency:g} ms; a source declares {scale.width} requests at once"
    )
    with MoodySite(scale.moods) as site:
        for part in (_speed, _hedging, _down, _tight, _packed):
            await part(site, scale, result)
            site.counted()
    return result


def draw(result: Result, file: Path) -> None:
    """How long lookups took at a site of which a few replies are late."""
    from bench.drawing import saved, steps

    curves = {
        name: [(wait, (n + 1) / len(waits)) for n, wait in enumerate(waits)]
        for name, waits in result.curves.items()
    }
    with saved(file, 1) as axes:
        steps(axes[0], curves, "lookups answered within so many seconds", "share")


async def _speed(site: MoodySite, scale: Scale, result: Result) -> None:
    """Ours and the bare loop in turns."""
    keys = range(scale.lookups)
    declared = catalog(site.url, _source("calm", scale))
    pairs = [
        (await all_at_once(declared, keys), await bare(f"{site.url}/calm/at", keys, scale.width))
        for _ in range(scale.rounds)
    ]
    ratios = [rival.seconds / ours.complete(len(keys)).seconds for ours, rival in pairs]
    result.figures["lookups_per_s_vs_limit"] = median(ratios)
    result.figures["cpu_us_per_lookup"] = median(1e6 * ours.cpu / len(keys) for ours, _ in pairs)
    result.detail["speed"] = {
        "rounds": [round(ratio, 3) for ratio in ratios],
        "lookups_per_s": round(len(keys) / median(ours.seconds for ours, _ in pairs), 1),
        "bare_cpu_us_per_lookup": round(median(1e6 * rival.cpu / len(keys) for _, rival in pairs), 1),
    }


async def _hedging(site: MoodySite, scale: Scale, result: Result) -> None:
    """Two mirrors, and one site that may be asked twice, against one that may not."""
    once, twice = _source("late", scale), _source("late", scale, twice=True)
    contestants = {
        "patient": catalog(site.url, once),
        "two mirrors": catalog(site.url, _source("late-a", scale), _source("late-b", scale)),
        "twice": catalog(site.url, twice),
    }
    p99, extra = {}, {}
    for name, declared in contestants.items():
        run = await one_by_one(declared, range(scale.timed), scale.walkers)
        waits = sorted(run.complete(scale.timed).waits)
        result.curves[name] = waits
        p99[name] = nearest_rank(waits, 0.99)
        extra[name] = site.counted()["late"] / scale.timed - 1.0
    result.figures["hedge_p99_gain"] = p99["patient"] / max(p99["two mirrors"], p99["twice"])
    result.figures["hedge_extra_load"] = max(extra.values())
    result.detail["hedging"] = {
        "late": f"{scale.moods.late_share:.0%} of the replies take {scale.moods.late:g} s",
        "p99_s": {name: round(seconds, 4) for name, seconds in p99.items()},
        "extra_load": {name: round(share, 4) for name, share in extra.items()},
    }


async def _down(site: MoodySite, scale: Scale, result: Result) -> None:
    """Requests to a site that answers nothing, and to one that answers half, ÷ lookups."""
    keys = range(scale.hopeless)
    load, answered = {}, {}
    for corner in ("down", "failing"):
        run = await all_at_once(catalog(site.url, _source(corner, scale, deadline=scale.deadline)), keys)
        load[corner] = site.counted()[corner] / len(keys)
        answered[corner] = run.answered
    result.figures["down_amplification"] = load["down"]
    result.figures["half_down_amplification"] = load["failing"]
    result.detail["down"] = {"lookups": len(keys), "answered": answered}


async def _tight(site: MoodySite, scale: Scale, result: Result) -> None:
    """Against a loop that knows how many requests the site bears, and when that halves."""
    keys, moods = range(scale.tight), scale.moods
    ratios, refused = {}, {}
    for corner in ("refusing", "queueing"):
        ours = await all_at_once(catalog(site.url, _source(corner, scale)), keys)
        refused[corner] = site.counted().get("refused", 0)
        oracle = await bare(
            f"{site.url}/queueing/at", keys, moods.places, moods.places // 2, moods.halves_after
        )
        site.counted()
        ratios[corner] = oracle.seconds / ours.complete(len(keys)).seconds
    result.figures["adaptive_throughput_vs_oracle"] = min(ratios.values())
    result.detail["adaptive"] = {
        "site": f"bears {moods.places} requests at once, and half of them after {moods.halves_after:g} s",
        "throughput_vs_oracle": {corner: round(ratio, 3) for corner, ratio in ratios.items()},
        "refused": refused,
        "lookups": len(keys),
    }


async def _packed(site: MoodySite, scale: Scale, result: Result) -> None:
    keys = range(scale.packed)
    run = await all_at_once(catalog(site.url, _source("calm", scale), batch_size=_BATCH), keys)
    run.complete(len(keys))
    result.figures["batched_requests"] = site.counted()["calm"]
    result.detail["batched"] = {"lookups": len(keys), "ceil(n/20)": ceil(len(keys) / _BATCH)}


def _source(name: str, scale: Scale, deadline: float = 30.0, twice: bool = False) -> Source:
    return Source(name, concurrency=scale.width, deadline=deadline, allow_private=True, twice=twice)
