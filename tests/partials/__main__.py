"""The search at scale: `python -m tests.partials --seeds 3000`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from tests.any_route.drawing import draw
from tests.any_route.ranges import draw_ranges
from tests.any_route.search import Wrong
from tests.partials.drawing import draw_fed
from tests.partials.search import Found, search

_TOLD = 100  # seeds from one line to the next that says how far it is


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    said = parser.parse_args()
    found, wrong = Found(), 0
    for seed in range(said.first, said.first + said.seeds):
        for drawn in (draw_fed, draw, draw_ranges):
            try:
                search(seed, found, drawn)
            except Wrong as error:
                wrong += 1
                print(error, file=sys.stderr, flush=True)
            except Exception as error:
                wrong += 1
                print(
                    f"{drawn.__name__}, seed {seed}: {type(error).__name__}: {error}",
                    file=sys.stderr,
                    flush=True,
                )
        if (seed - said.first) % _TOLD == _TOLD - 1:
            print(f"{seed - said.first + 1:,} seeds, {wrong} wrong", file=sys.stderr, flush=True)
    figures = {"given": found.given, "wrong": wrong}
    print(json.dumps({"bench": "partials", "figures": figures, "detail": asdict(found)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
