from __future__ import annotations
import argparse
from pathlib import Path
from bench.result import Result

SUMMARY = "being built"


def options(parser: argparse.ArgumentParser) -> None: ...
def measure(options: argparse.Namespace) -> Result:
    raise NotImplementedError


def draw(result: Result, file: Path) -> None: ...
