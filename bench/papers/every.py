"""All experiments one after the other, each in a process of its own; with `--page`, into `docs/experiments.md`.

What fails is reported and the others go on; what it said last stays, and the page says that it is from before. Results
are kept as JSON lines beside the plots, one for each experiment,
so that a few can be run again (`--only`) and the page is still whole.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.papers.bars import BARS
from bench.papers.page import written
from bench.result import Result

SUMMARY = "all of them, one after the other; with --page, into docs/experiments.md"

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "experiments.md"
_FIGURES = ROOT / "docs" / "figures"
_PLOTS = ROOT / "bench" / "plots"
_RESULTS = "results.jsonl"
_PATIENCE = 5_400  # seconds that one may take: the longest needs a third of it where nothing else runs

Said = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--page", action="store_true", help="write the figures into docs/experiments.md")
    where.add_argument("--into", type=Path, metavar="DIR", help="plots and results (default: bench/plots)")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these, and keep what the others said")
    parser.add_argument("--dry", action="store_true", help="run none: write the page from what is kept")


def measure(options: argparse.Namespace) -> Result:
    """Run them, keep what they say, and write the page if that is wanted."""
    folder: Path = options.into or (_FIGURES if options.page else _PLOTS)
    folder.mkdir(parents=True, exist_ok=True)
    names = [] if options.dry else _named(options.only)
    kept = read(folder / _RESULTS)
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        kept[name] = ran(name, folder, kept.get(name))
        _write(folder / _RESULTS, kept)
    if options.page:
        PAGE.write_text(written(PAGE.read_text(), kept, folder.relative_to(PAGE.parent)))
    return _summed(kept)


def draw(result: Result, file: Path) -> None:
    """Every bar's figure ÷ the bar: what ends left of the line is met."""
    from bench.drawing import saved

    with saved(file, 1) as axes:
        axes[0].barh(list(result.curves), list(result.curves.values()))
        axes[0].axvline(1.0, color="black", linewidth=0.8)
        axes[0].set(title="figure ÷ bar")


def ran(name: str, folder: Path, last: Said | None = None) -> Said:
    """What an experiment says. If it fails, what it said last, and why it failed."""
    command = [sys.executable, "-m", "bench", "paper", name, "--json", "--plot", str(folder / f"{name}.png")]
    try:
        done = _done(command)
    except subprocess.TimeoutExpired:
        return _failed(name, f"not done after {_PATIENCE} s", last)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return _failed(name, lines[-1] if lines else f"ended with code {done.returncode}", last)
    said: Said = json.loads(done.stdout.splitlines()[-1])
    said["detail"].pop("plot", None)  # a path of this machine; it lies beside the results
    return said | {"bench": name}


def _done(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run it to its end. When it takes too long, it is ended with all the processes that it has started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            said, complained = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def read(file: Path) -> dict[str, Said]:
    """What is kept of earlier runs, by experiment."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {said["bench"]: said for said in map(json.loads, lines)}


def _named(only: str) -> list[str]:
    unknown = [name for name in only.split(",") if name and name not in BARS]
    if unknown:
        raise SystemExit(f"there is no experiment {', '.join(unknown)}; there are {', '.join(BARS)}")
    return [name for name in BARS if not only or name in only.split(",")]


def _failed(name: str, why: str, last: Said | None) -> Said:
    print(f"{name} failed: {why}", file=sys.stderr, flush=True)
    nothing: Said = {"bench": name, "figures": {}, "detail": {}}
    return (last or nothing) | {"failed": why}


def _write(file: Path, kept: Mapping[str, Said]) -> None:
    ordered: Iterable[Said] = (kept[name] for name in BARS if name in kept)
    file.write_text("".join(json.dumps(said) + "\n" for said in ordered))


def _summed(kept: Mapping[str, Said]) -> Result:
    values = {
        f"{name} {bar.figure}": kept[name]["figures"][bar.figure] / bar.most
        for name, bars in BARS.items()
        for bar in bars
        if name in kept and bar.figure in kept[name]["figures"]
    }
    failed = {name: said["failed"] for name, said in kept.items() if "failed" in said}
    figures = {
        "experiments": float(len(kept)),
        "failed": float(len(failed)),
        "bars": float(sum(map(len, BARS.values()))),
        "bars_met": float(sum(value <= 1.0 for value in values.values())),
    }
    missed = {name: round(value, 3) for name, value in values.items() if value > 1.0}
    return Result("all", figures, {"failed": failed, "missed": missed}, values)
