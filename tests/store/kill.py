"""kill -9 at any moment: what was acknowledged is there, and what is said to be covered is.

    python -m tests.store.kill --runs 50

A child asks a scripted web for this and that, and says what it asked for as soon as `Mediator.kept` says that it is on
the disk. It is killed from outside at some moment, or kills itself right before or after some step of a write. Then
the store is opened, and all that it claims is compared with what the sites have. The next child goes on from there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from fixtures import Behaviour, Uniform, Web, book_trade_web, virtual
from mediator.clock import wall
from mediator.errors import StoreError
from mediator.flow.batch import Rows
from mediator.state.stem import SteM
from mediator.store.records import Covered
from mediator.store.store import Store
from tests.answering.kit import ask
from tests.store.kit import keeping

BOOKS = 60
CHAIN = 5  # children that follow one another on one folder
ROUNDS = 150
STEPS = 600
PATIENCE = 60.0

# By relation: the field that it is looked up by.
LOOKED_UP = {"authors": "id", "reviews": "isbn", "offers": "isbn"}
SCANNED = ("books", "prizes")
LOOKED_UP_AT = ("authors", "reviews", "offers_north", "offers_south")

Entry = tuple[str, tuple[str, ...], tuple[object, ...]]


@dataclass
class Tale:
    """What a run came to."""

    seed: int
    how: str
    acknowledged: int = 0
    covered: int = 0
    rows: int = 0
    swept: int = 0
    killed: bool = False
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        end = "killed" if self.killed else "ended first"
        faults = "".join(f"\n  FAULT: {f}" for f in self.faults)
        return (
            f"run {self.seed}: {end}, {self.how}; {self.acknowledged} acknowledged, {self.covered} covered, "
            f"{self.rows} rows, {self.swept} files swept{faults}"
        )


def trade() -> Web:
    """Pages come one after another, so that rows are often written before their end is known."""
    slow = Behaviour(latency=Uniform(0.01, 0.3))
    behaviours = dict.fromkeys((*LOOKED_UP_AT, *SCANNED), slow)
    return book_trade_web(BOOKS, behaviours=behaviours, book_page=7, review_page=1)


async def child(folder: Path, rng: Random) -> None:
    """Ask, wait until it is kept, and say so."""
    web = trade()
    async with keeping(web, folder, wall) as mediator:
        for _ in range(ROUNDS):
            asked = [_question(web, rng) for _ in range(rng.randint(1, 3))]
            ages = [rng.choice([0.0, 0.0, float("inf")]) for _ in asked]
            async with asyncio.TaskGroup() as group:
                for (sql, _), age in zip(asked, ages, strict=True):
                    group.create_task(ask(mediator, sql, max_age=age))
            if rng.random() < 0.7:
                await mediator.kept()
                for _, entries in asked:
                    sys.stdout.write(json.dumps(entries) + "\n")
                sys.stdout.flush()


def _question(web: Web, rng: Random) -> tuple[str, list[Entry]]:
    """A query, and what will be covered by it."""
    if rng.random() < 0.2:
        name = rng.choice(SCANNED)
        return f"SELECT * FROM {name}", [(name, (), ())]
    name = rng.choice(list(LOOKED_UP))
    field_ = LOOKED_UP[name]
    there = sorted(set(web.tables[name].column(field_).to_pylist()))
    nowhere = 10**6 if isinstance(there[0], int) else "9999999999999"
    wanted = [*rng.sample(there, 5), nowhere]
    values = ", ".join(repr(v) for v in wanted)
    return f"SELECT * FROM {name} WHERE {field_} IN ({values})", [(name, (field_,), (v,)) for v in wanted]


def kill_at(step: int, after: bool) -> None:
    """From now on this process dies at its n-th step of writing, right before or right after it."""
    left, lock = [step], threading.Lock()

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **named: Any) -> Any:
            with lock:
                left[0] -= 1
                now = left[0] == 0
            if now and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **named)
            if now:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counting

    class Connection(sqlite3.Connection):
        execute = counted(sqlite3.Connection.execute)
        executemany = counted(sqlite3.Connection.executemany)

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **named: connect(*a, factory=Connection, **named)  # type: ignore[assignment]
    for place, name in ((os, "fsync"), (os, "replace"), (Path, "unlink"), (Path, "open")):
        setattr(place, name, counted(getattr(place, name)))


def run(folder: Path, seed: int, acknowledged: set[Entry]) -> Tale:
    """One child, killed; what it acknowledged is added, and all that the store claims is checked."""
    rng = Random(f"kill {seed}")
    steps = [str(rng.randint(1, STEPS)), str(rng.randint(0, 1))] if rng.random() < 0.5 else []
    lines, pause = rng.randint(0, 60), rng.uniform(0, 0.03)
    tale = Tale(seed, f"at step {steps[0]}" if steps else f"{pause * 1000:.0f} ms after line {lines}")
    command = [sys.executable, "-m", "tests.store.kill", "--child", str(folder), "--seed", str(seed), *steps]
    with started(command) as process:
        said = listened(process, None if steps else lines, pause)
    tale.killed = process.returncode == -signal.SIGKILL
    if not tale.killed and process.returncode:
        tale.faults.append(f"the child failed: {process.returncode}")
    for line in said:
        acknowledged |= {(name, tuple(fields), tuple(values)) for name, fields, values in json.loads(line)}
    tale.acknowledged = len(acknowledged)
    check(folder, acknowledged, trade(), tale)
    return tale


def check(folder: Path, acknowledged: set[Entry], web: Web, tale: Tale) -> None:
    """Everything acknowledged is covered, and every covered binding has the rows that its site has."""
    claimed: set[Entry] = set()
    with Store(folder) as store:
        tale.swept += store.swept
        for relation in web.catalog.relations.values():
            try:
                kept = store.load(relation, wall())
            except StoreError as error:
                tale.faults.append(str(error))
                continue
            if kept is None:
                continue
            stem = SteM(relation)
            stem.restore(kept, 0.0)
            for entry in kept.covered:
                claimed.add((relation.name, entry.bind_set, entry.binding))
                tale.covered += 1
                tale.rows += _compare(stem, entry, web.tables[relation.name], tale)
        named = sum(len(store.held(name).segments) for name in store.names())
        if len(list((folder / "segments").iterdir())) != named:
            tale.faults.append("there are files that the manifest does not name")
    tale.faults += [f"acknowledged, and lost: {entry}" for entry in sorted(acknowledged - claimed, key=repr)]


def _compare(stem: SteM, entry: Covered, table: pa.Table, tale: Tale) -> int:
    found = stem.store.rows(_vouched(stem, entry))
    wanted = dict(zip(entry.bind_set, entry.binding, strict=True))
    true = [r for r in table.to_pylist() if all(r[f] == v for f, v in wanted.items())]
    if Counter(map(_text, found.to_pylist())) != Counter(map(_text, true)):
        where = f"{stem.relation.name} {wanted or 'as a whole'}"
        tale.faults.append(f"{where}: {len(found)} rows instead of {len(true)}, or others")
    return len(found)


def _vouched(stem: SteM, entry: Covered) -> Rows:
    known = stem.coverage.get(entry.bind_set, entry.binding)
    assert known is not None
    return stem.vouched(entry.bind_set, entry.binding, known)


def _text(row: dict[str, object]) -> str:
    return repr(sorted(row.items()))


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def listened(process: subprocess.Popen[str], lines: int | None, pause: float) -> list[str]:
    """All that the child says whole; after so many lines, and a pause, it is killed."""
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if lines is not None and len(said) >= lines:
            time.sleep(pause)
            process.kill()
            said += process.stdout.readlines()
    process.wait()
    return [line for line in said if line.endswith("\n")]


def runs(seeds: Sequence[int]) -> Iterator[Tale]:
    """Some children on one folder, then on another."""
    for start in range(0, len(seeds), CHAIN):
        with tempfile.TemporaryDirectory() as folder:
            acknowledged: set[Entry] = set()
            for seed in seeds[start : start + CHAIN]:
                yield run(Path(folder) / "store", seed, acknowledged)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("step", type=int, nargs="*", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.child is not None:
        if said.step:
            kill_at(said.step[0], bool(said.step[1]))
        virtual.run(child(said.child, Random(f"child {said.seed}")))
        return 0
    tales = []
    for tale in runs(range(said.seed, said.seed + said.runs)):
        print(tale, flush=True)
        tales.append(tale)
    faults = sum(len(t.faults) for t in tales)
    print(f"{len(tales)} runs, {sum(t.killed for t in tales)} killed, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
