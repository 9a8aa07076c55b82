"""One shape at one number of threads, in a process of its own: `python -m bench.cell JSON`, a JSON object comes back.

Polars takes its number of threads from the environment before it is imported, and memory can only be told apart between
processes that did one thing each; so every comparison is one such process.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa

from bench.contestants import Contest, Entry, contest
from bench.shapes import shape
from mediator.state.warming import devote

_WARM = 20_000  # rows that the kernels are compiled on, and the libraries loaded


@dataclass(frozen=True)
class Cell:
    """What is to be run. With `memory` there is one entry, and its peak of memory is what is wanted."""

    shape: str
    rows: int
    threads: int
    entries: tuple[Entry, ...]
    rounds: int = 5
    check: bool = False
    memory: bool = False

    @classmethod
    def read(cls, text: str) -> Cell:
        """From what `run` wrote."""
        said = json.loads(text)
        entries = tuple(Entry(**{**e, "order": tuple(e["order"])}) for e in said.pop("entries"))
        return cls(entries=entries, **said)


@dataclass(frozen=True)
class Outcome:
    """Seconds of every round by contestant, or `peak` bytes beyond what there was before the run."""

    seconds: dict[str, list[float]]
    answers: int = 0
    peak: int = 0

    def best(self, entry: Entry) -> float:
        """Of all rounds: what others on the machine did to it least."""
        return min(self.seconds[entry.name])


def run(cell: Cell) -> Outcome:
    """Run it in a process of its own. Raises `RuntimeError` when that fails, or when answers differ."""
    environment = {**os.environ, "POLARS_MAX_THREADS": str(cell.threads)}
    done = subprocess.run(
        [sys.executable, "-m", "bench.cell", json.dumps(asdict(cell))],
        cwd=Path(__file__).parents[1], env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{cell.shape} on {cell.threads} threads failed")
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def measured(cell: Cell) -> Outcome:
    """Here and now."""
    pa.set_cpu_count(cell.threads)
    devote()
    for entry in cell.entries:
        contest(entry, shape(cell.shape, min(cell.rows, _WARM)), cell.threads)()
    data = shape(cell.shape, cell.rows)
    contests = {entry.name: contest(entry, data, cell.threads) for entry in cell.entries}
    if cell.memory:
        return Outcome({}, peak=_peak(next(iter(contests.values()))))
    answers = _agreed(contests) if cell.check else 0
    return Outcome(_raced(contests, cell.rounds), answers)


def _raced(contests: dict[str, Contest], rounds: int) -> dict[str, list[float]]:
    """In turns, so that whatever else the machine does strikes all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contests}
    for _ in range(rounds):
        for name, run_once in contests.items():
            gc.collect()
            began = perf_counter()
            answers = run_once()
            seconds[name].append(perf_counter() - began)
            del answers
    return seconds


def _agreed(contests: dict[str, Contest]) -> int:
    """How many answers there are. Raises `RuntimeError` unless all found the same ones."""
    found = {name: _sum(run_once()) for name, run_once in contests.items()}
    if len(set(found.values())) != 1:
        raise RuntimeError(f"the answers differ: {found}")
    return next(iter(found.values()))[0]


def _sum(answers: pa.Table) -> tuple[int, str]:
    """The number of rows, and a sum over their hashes, for which their order does not matter."""
    import duckdb

    columns = [f"c{i}" for i in range(answers.num_columns)]
    named = answers.rename_columns(columns)
    connection = duckdb.connect()
    connection.register("answers", named)
    hashed = f"select count(*), sum(hash({', '.join(columns)})::hugeint) from answers"
    count, total = connection.execute(hashed).fetchall()[0]
    return count, str(total)


def _peak(run_once: Contest) -> int:
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark, to where the water is
    before = _status("VmRSS")
    answers = run_once()
    peak = _status("VmHWM") - before
    del answers
    return peak


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def main(arguments: Sequence[str]) -> None:
    """One cell in, one line out."""
    print(json.dumps(asdict(measured(Cell.read(arguments[0])))))


if __name__ == "__main__":
    main(sys.argv[1:])
