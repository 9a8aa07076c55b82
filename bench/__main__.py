"""`python -m bench NAME [--json] [--plot [FILE]]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bench import api, fetch, local, paper, q1, q4, scaling, spark, stall
from bench.result import Result, machine, table

PLOTS = Path(__file__).parent / "plots"


class Bench(Protocol):
    """What a module of this package offers to be a bench."""

    SUMMARY: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the bench's own options."""
        ...

    def measure(self, options: argparse.Namespace) -> Result:
        """Run it."""
        ...

    def draw(self, result: Result, file: Path) -> None:
        """Draw what was measured."""
        ...


BENCHES: dict[str, Bench] = {
    "api": api,
    "fetch": fetch,
    "local": local,
    "paper": paper,
    "q1": q1,
    "q4": q4,
    "scaling": scaling,
    "spark": spark,
    "stall": stall,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one bench; its JSON is the last line."""
    options = _parser().parse_args(arguments)
    if options.name is None:
        for name, bench in BENCHES.items():
            print(f"{name:8} {bench.SUMMARY}")
        return 0
    bench = BENCHES[options.name]
    where = machine()  # as it was before the bench's own load
    result = bench.measure(options)
    result.detail["machine"] = where
    if options.plot is not None:
        file = Path(options.plot) if options.plot else PLOTS / f"{result.bench}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        bench.draw(result, file)
        result.detail["plot"] = str(file)
    if not options.json:
        print(table(result))
    print(result.json())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = parser.add_subparsers(dest="name", metavar="NAME")
    for name, bench in BENCHES.items():
        own = names.add_parser(name, help=bench.SUMMARY, description=bench.SUMMARY)
        if name != "paper":  # whose experiments take them
            paper.common(own)
        bench.options(own)
    return parser


if __name__ == "__main__":
    sys.exit(main())
