"""The same search at scale: `python -m tests.any_route --seeds 100000`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, fields

from tests.any_route.drawing import draw
from tests.any_route.ranges import draw_ranges
from tests.any_route.search import Effort, Wrong, search

_BLOCK = 200  # seeds that a worker takes at a time


def _some(first: int, last: int) -> tuple[Effort, list[str]]:
    effort, wrong = Effort(), []
    for seed in range(first, last):
        for drawn in (draw, draw_ranges):
            try:
                search(seed, effort, drawn)
            except Wrong as found:
                wrong.append(str(found))
            except Exception as error:
                wrong.append(f"{drawn.__name__}, seed {seed}: {type(error).__name__}: {error}")
    return effort, wrong


def _tell(done: int, seeds: int, seconds: float) -> None:
    """How far it is: on a terminal all the time, elsewhere now and then."""
    line = f"{done:,} of {seeds:,} seeds, {done / seconds:.0f} a second"
    if sys.stderr.isatty():
        print(f"\r{line}", end="" if done < seeds else "\n", file=sys.stderr, flush=True)
    elif done % 10_000 < _BLOCK:
        print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    said = parser.parse_args()
    began = time.perf_counter()
    starts = range(said.first, said.first + said.seeds, _BLOCK)
    stops = [min(s + _BLOCK, said.first + said.seeds) for s in starts]
    total, wrong = Effort(), []
    with ProcessPoolExecutor(said.workers) as pool:
        for effort, found in pool.map(_some, starts, stops):
            for name in (f.name for f in fields(Effort)):
                setattr(total, name, getattr(total, name) + getattr(effort, name))
            wrong += found
            for text in found:
                print(text, file=sys.stderr, flush=True)
            _tell(total.cases // 2, said.seeds, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    detail = asdict(total) | {"seeds": said.seeds, "wrong": len(wrong), "seconds": round(seconds, 1)}
    figures = {
        "seeds_per_second": round(said.seeds / seconds, 1),
        "mean_choices": round(total.floating / max(total.turns, 1), 2),
    }
    print(json.dumps({"bench": "any_route", "figures": figures, "detail": detail}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
