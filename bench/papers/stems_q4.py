"""Q4 of the SteM paper (figure 8): `R.key = T.key`, where T can be scanned, and looked up by key.

The paper claims that the hybrid follows the index join early, when the scan has brought little, and the hash join
later, when the index is the slower one of the two; and that it ends slightly after the hash join.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import q4
from bench.result import Result

SUMMARY = "figure 8 of the SteM paper: a hybrid of index and hash join"


def options(parser: argparse.ArgumentParser) -> None:
    q4.options(parser)


def measure(options: argparse.Namespace) -> Result:
    result = q4.measure(options)
    result.bench = "stems-q4"
    return result


def draw(result: Result, file: Path) -> None:
    q4.draw(result, file)
