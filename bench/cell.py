"""One shape at one number of threads: `python -m bench.cell JSON`, a process for each engine, and they take turns.

Nobody's allocator tidies up in another's time then: what Polars has given back to the system in the background cost
those who ran after it in the same process a tenth of theirs. Polars takes its number of threads from the environment
before it is imported, and memory can only be told apart between processes that did one thing each.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from bench.contestants import Contest, Entry, contest
from bench.kept import Kept
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
    """Raises `RuntimeError` when a process fails, or when answers differ."""
    with ExitStack() as stack:
        theirs = {
            engine: stack.enter_context(
                _Process(replace(cell, entries=tuple(e for e in cell.entries if e.engine == engine)))
            )
            for engine in dict.fromkeys(e.engine for e in cell.entries)
        }
        if cell.memory:
            (entry,) = cell.entries
            return Outcome({}, peak=theirs[entry.engine].told("peak", entry))
        answers = _agreed(cell, theirs) if cell.check else 0
        seconds: dict[str, list[float]] = {e.name: [] for e in cell.entries}
        for _ in range(cell.rounds):
            for entry in cell.entries:
                seconds[entry.name].append(theirs[entry.engine].told("seconds", entry))
        return Outcome(seconds, answers)


class _Process(Kept):
    """Some contestants, ready to run."""

    def __init__(self, cell: Cell) -> None:
        self._name = f"{cell.shape} on {cell.threads} threads"
        super().__init__("bench.cell", json.dumps(asdict(cell)), {"POLARS_MAX_THREADS": str(cell.threads)})

    def told(self, what: str, entry: Entry) -> Any:
        """What it finds out about one of them."""
        answer = self.ask(json.dumps([what, entry.name]))
        if not answer:
            raise RuntimeError(f"{self._name} failed: {entry.name}")
        return json.loads(answer)


def _agreed(cell: Cell, theirs: dict[str, _Process]) -> int:
    """How many answers there are. Raises `RuntimeError` unless all found the same ones."""
    found = {e.name: tuple(theirs[e.engine].told("answers", e)) for e in cell.entries}
    if len(set(found.values())) != 1:
        raise RuntimeError(f"the answers differ: {found}")
    return int(next(iter(found.values()))[0])


class Stable:
    """The contestants of a cell, in this process, ready to run."""

    def __init__(self, cell: Cell) -> None:
        pa.set_cpu_count(cell.threads)
        devote()
        for entry in cell.entries:
            contest(entry, shape(cell.shape, min(cell.rows, _WARM)), cell.threads)()
        data = shape(cell.shape, cell.rows)
        self._contests = {entry.name: contest(entry, data, cell.threads) for entry in cell.entries}

    def told(self, what: str, name: str) -> object:
        """`seconds` of one run, how many `answers` it gives and what they come to, or its `peak` of memory."""
        run_once = self._contests[name]
        return {"seconds": _seconds, "answers": _answers, "peak": _peak}[what](run_once)


def _seconds(run_once: Contest) -> float:
    gc.collect()
    began = perf_counter()
    answers = run_once()
    seconds = perf_counter() - began
    del answers
    return seconds


def _answers(run_once: Contest) -> tuple[int, str]:
    return _sum(run_once())


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
    """A question at each line of stdin, an answer for each."""
    stable = Stable(Cell.read(arguments[0]))
    for line in sys.stdin:
        print(json.dumps(stable.told(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
