"""kill -9 at any moment of a harvest: what was said to be kept is, what is covered is whole, nothing is asked twice.

    python -m tests.harvest.kill --runs 50

A child harvests all books, page by page, and then all their reviews, and says how much of it is kept. It is killed from
outside at some moment, or kills itself right before or after some step of a write. Then the store is opened, and all
that it claims is compared with what the sites have. The next child goes on from there, and may ask for no more than was
missing: the sites, which are served here, count what they are asked. In the end one that is not killed has everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from fixtures import Behaviour, Uniform, Web, book_trade
from mediator.access import Statistics
from mediator.gathering import Gathered
from mediator.store.manifest import FILE
from mediator.store.shelf import Walked
from mediator.store.store import look
from pipeline.harvest.local import Harvesting
from pipeline.harvest.wanted import SHELF, Harvest
from tests.harvest.kit import ISBNS, catalog_at, harvested, truth, written
from tests.store.kill import Tale, check, kill_at, listened, started

BOOKS = 60
PAGE = 4  # books
CHAIN = 4  # children that follow one another on one folder
STEPS = 700
WANTED: Sequence[tuple[str, str | None]] = (("books", None), ("reviews", ISBNS))


def child(folder: Path, url: str) -> None:
    """Harvest, and say how much is kept."""
    for relation, bindings in WANTED:
        harvesting = Harvesting(catalog_at(url), Harvest(relation, folder, bindings), Saying(relation))
        done = asyncio.run(harvesting.go())
        Saying(relation)(done.gathered, done.statistics)


class Saying:
    def __init__(self, relation: str) -> None:
        self._relation = relation

    def __call__(self, gathered: Gathered, statistics: Statistics) -> None:
        sys.stdout.write(json.dumps([self._relation, gathered.covered + gathered.kept]) + "\n")
        sys.stdout.flush()


def run(web: Web, folder: Path, seed: int) -> Tale:
    """One child, killed; all that the store claims is checked, and what the child has asked for."""
    rng = Random(f"harvest kill {seed}")
    steps = [str(rng.randint(1, STEPS)), str(rng.randint(0, 1))] if rng.random() < 0.6 else []
    lines, pause = rng.randint(0, 3), rng.uniform(0, 0.5)
    tale = Tale(seed, f"at step {steps[0]}" if steps else f"{pause * 1000:.0f} ms after line {lines}")
    there, covered = durable(web, folder), _covered(folder).get("reviews", set())
    settle(web)
    web.reset()
    command = [sys.executable, "-m", "tests.harvest.kill", "--child", str(folder), "--url", web.url]
    with started([*command, *steps]) as process:
        said = listened(process, None if steps else max(1, lines), pause)
    tale.killed = process.returncode == -signal.SIGKILL
    if not tale.killed and process.returncode:
        tale.faults.append(f"the child failed: {process.returncode}")
    for relation, most in pages(web).items():
        asked = web.counters[relation].requests
        if asked > most - there[relation]:
            tale.faults.append(
                f"{relation}: {there[relation]} of {most} pages were there, and {asked} were asked for"
            )
    again = {name for name in web.counters["reviews"].lookups if (name.split(" ")[0],) in covered}
    if again:
        tale.faults.append(f"asked for, though covered: {sorted(again)}")
    _check_kept(folder, [json.loads(line) for line in said], tale)
    if (folder / FILE).exists():
        check(folder, set(), web, tale)
    return tale


def pages(web: Web) -> dict[str, int]:
    """How many there are at each site."""
    isbns = Counter(row["isbn"] for row in truth(web, "reviews"))
    return {"books": BOOKS // PAGE, "reviews": sum(max(1, isbns[b["isbn"]]) for b in truth(web, "books"))}


def durable(web: Web, folder: Path) -> dict[str, int]:
    """Of how many of them the replies are on the disk, in the store or on the shelf."""
    found = dict.fromkeys(pages(web), 0)
    covered = _covered(folder)
    if () in covered.get("books", set()):
        found["books"] = BOOKS // PAGE
    else:
        found["books"] = _shelved(folder, Walked("books", "all", (), ((),)))
    isbns = Counter(row["isbn"] for row in truth(web, "reviews"))
    for book in truth(web, "books"):
        binding = (book["isbn"],)
        if binding in covered.get("reviews", set()):
            found["reviews"] += max(1, isbns[book["isbn"]])
        else:
            found["reviews"] += _shelved(folder, Walked("reviews", "by_isbn", ("isbn",), (binding,)))
    return found


def settle(web: Web) -> None:
    """What a child that was killed has sent is still read, and counted, by who serves it."""
    before = -1
    while before != web.requests or any(c.open for c in web.counters.values()):
        before = web.requests
        time.sleep(0.1)


def _covered(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    held = look(folder) if (folder / FILE).exists() else []
    return {h.declared.name: {c.binding for c in h.covered} for h in held}


def _shelved(folder: Path, walked: Walked) -> int:
    return len(list((folder / SHELF / walked.relation / walked.digest).glob("*.page")))


def _check_kept(folder: Path, said: Sequence[tuple[str, int]], tale: Tale) -> None:
    """As much as was said is covered."""
    held = {h.declared.name: len(h.covered) for h in look(folder)} if (folder / FILE).exists() else {}
    for relation, kept in said:
        tale.acknowledged = max(tale.acknowledged, kept)
        if held.get(relation, 0) < kept:
            tale.faults.append(f"{relation}: {kept} were said to be kept, and {held.get(relation, 0)} are")


def finish(web: Web, folder: Path, tale: Tale) -> None:
    """One that is not killed: everything is there, and nothing is asked for any more."""
    for relation, bindings in WANTED:
        if not harvested(web, folder, relation, bindings).report.complete:
            tale.faults.append(f"{relation}: not complete in the end")
    isbns = [book["isbn"] for book in truth(web, "books")]
    if written(folder, "books") != truth(web, "books"):
        tale.faults.append("books: the Parquet is not what the site has")
    if written(folder, "reviews") != truth(web, "reviews", isbn=isbns):
        tale.faults.append("reviews: the Parquet is not what the site has")
    web.reset()
    for relation, bindings in WANTED:
        harvested(web, folder, relation, bindings)
    if web.requests:
        tale.faults.append(f"{web.requests} requests for what is there")


def runs(seeds: Sequence[int], chain: int = CHAIN) -> Iterator[Tale]:
    """Some children on one folder, then on another."""
    slow = Behaviour(latency=Uniform(0.002, 0.05))
    for start in range(0, len(seeds), chain):
        behaviours = {"books": slow, "reviews": slow}
        with (
            tempfile.TemporaryDirectory() as folder,
            book_trade(BOOKS, behaviours=behaviours, book_page=PAGE, review_page=1) as web,
        ):
            tale = Tale(0, "")
            for seed in seeds[start : start + chain]:
                tale = run(web, Path(folder) / "store", seed)
                if seed == seeds[min(start + chain, len(seeds)) - 1]:
                    finish(web, Path(folder) / "store", tale)
                yield tale


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("step", type=int, nargs="*", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.child is not None:
        if said.step:
            kill_at(said.step[0], bool(said.step[1]))
        child(said.child, said.url)
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
