"""The search over schedules at scale: `python -m tests.answering --seeds 10000 --first 0`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.answering.schedules import Effort, search


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    effort, wrong, began = Effort(), 0, time.perf_counter()
    for seed in range(options.first, options.first + options.seeds):
        try:
            search(seed, effort)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                break
            wrong += 1
            print(f"seed {seed}: {''.join(traceback.format_exception(error))}", flush=True)
    seconds = time.perf_counter() - began
    print(
        f"{effort.seeds} seeds were right and {wrong} wrong, {effort.seeds / seconds:.1f} a second: {effort}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
