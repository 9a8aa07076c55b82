"""A run that begins with a profile against one that knows nothing, over the same sites.

One relation is scanned; each row names something at three others, which can only be looked up, and of which one has
nearly all that it is asked for, one half, and one a tenth. Whoever asks the last one first need not ask the others for
most of the rows. It cannot be told from the query, and a run finds it out when many lookups have been made already.
Yesterday the sites were harvested, and a profile was made in Spark; today all is asked anew.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mediator.answering import Mediator
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.store import profile as kept
from mediator.store import statistics
from pipeline.harvest.local import Harvesting
from pipeline.harvest.wanted import Harvest
from pipeline.profiling.job import profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 600
FOUND = {"common": 0.95, "half": 0.5, "rare": 0.1}  # of what each is asked for
LATENCY = 0.02
SQL = "SELECT facts.id FROM facts " + " ".join(f"JOIN {n} ON {n}.k = facts.{n}" for n in FOUND)
ROUNDS = 3
# What of yesterday's store is there today. Rows never are: all is asked anew.
KNOWN = {
    "cold": (),
    "statistics only": (statistics.FILE,),
    "primed": (statistics.FILE, kept.FILE),
}


@dataclass
class Sites:
    """A transport without sockets: every request takes its time, and is counted."""

    seed: int
    requests: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        random = Random(self.seed)
        self.facts = [{"id": n, **{name: random.randrange(10 * ROWS) for name in FOUND}} for n in range(ROWS)]
        self.there = {
            name: {k for k in range(10 * ROWS) if random.random() < share} for name, share in FOUND.items()
        }

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        self.requests[mirror.source] = self.requests.get(mirror.source, 0) + 1
        await asyncio.sleep(LATENCY)
        name = request.path.removeprefix("/")
        if name == "facts":
            return Reply(200, {}, json.dumps(self.facts).encode())
        keys = [int(k) for _, k in request.query]
        return Reply(200, {}, json.dumps([{"k": k} for k in keys if k in self.there[name]]).encode())

    @property
    def answers(self) -> int:
        return sum(all(row[name] in self.there[name] for name in FOUND) for row in self.facts)


@dataclass(frozen=True)
class Site:
    """The wrapper of all of them."""

    name: str
    schema: pa.Schema
    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request(f"/{self.name}", tuple(("k", str(b[0])) for b in bindings if b))

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        rows = pa.Table.from_pylist(json.loads(reply.body), schema=self.schema).combine_chunks()
        return Page(pa.RecordBatch.from_arrays([_one(c) for c in rows.columns], schema=self.schema))


def catalog() -> Catalog:
    facts = tuple(Field(name, pa.int64()) for name in ("id", *FOUND))
    scan = AccessMethod("all", "scan", (Mirror("facts", "http://facts.test"),), _wrapper("facts", facts))
    relations = {"facts": Relation("facts", facts, (scan,), key=("id",))}
    for name in FOUND:
        key = (Field("k", pa.int64()),)
        mirrors = (Mirror(name, f"http://{name}.test"),)
        by_k = AccessMethod("by_k", "index", mirrors, _wrapper(name, key), required=("k",))
        relations[name] = Relation(name, key, (by_k,), key=("k",))
    return Catalog(relations, {name: Source(name, concurrency=16) for name in relations})


def measured(spark: SparkSession, rounds: int = ROUNDS) -> tuple[float, dict[str, Any]]:
    """`primed_vs_cold`: requests of the primed run for each of the cold one's, and how that came about."""
    runs: dict[str, list[tuple[int, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="mediator-priming-") as folder:
        for number in range(rounds):
            sites, yesterday = Sites(number), Path(folder) / str(number)
            asyncio.run(_harvested(sites, yesterday))
            profile(spark, catalog(), yesterday)
            for goal, (how, files) in product(("all_rows", "fewest_calls"), KNOWN.items()):
                today = Path(folder) / f"{number} {goal} {how}"
                asyncio.run(_opened(today))
                for file in files:
                    shutil.copy(yesterday / file, today / file)
                runs[f"{how}, {goal}"].append(asyncio.run(_run(sites, today, goal)))
    calls = {how: sum(c for c, _ in found) for how, found in runs.items()}
    detail = {
        how: {"requests": calls[how] // rounds, "seconds": round(median(s for _, s in found), 3)}
        for how, found in runs.items()
    }
    figure = calls["primed, all_rows"] / calls["cold, all_rows"]
    return figure, {"rows": ROWS, "rounds": rounds, "least requests": _least(rounds), **detail}


def _least(rounds: int) -> int:
    """Requests of whoever asks the rarest first, and the others only for what is left, on average."""
    found = 0
    for number in range(rounds):
        sites, order = Sites(number), sorted(FOUND, key=lambda name: FOUND[name])
        left, found = sites.facts, found + 1
        for name in order:
            found += len({row[name] for row in left})
            left = [row for row in left if row[name] in sites.there[name]]
    return found // rounds


async def _run(sites: Sites, store: Path, goal: str = "all_rows") -> tuple[int, float]:
    """Requests, and seconds. Raises where the answer is not whole."""
    sites.requests.clear()
    began = time.perf_counter()
    async with (
        Mediator(catalog(), transport=sites, store=store) as mediator,
        mediator.answering(SQL, goal=goal, max_age=0.0) as answers,
    ):
        rows = sum([batch.num_rows async for batch in answers])
    if not answers.report.complete or rows != sites.answers:
        raise RuntimeError(f"{rows} answers of {sites.answers}")
    return sum(sites.requests.values()), time.perf_counter() - began


async def _opened(store: Path) -> None:
    async with Mediator(catalog(), store=store):
        pass


async def _harvested(sites: Sites, store: Path) -> None:
    for name in ("facts", *FOUND):
        bindings = None if name == "facts" else f"SELECT {name} AS k FROM facts"
        done = await Harvesting(catalog(), Harvest(name, store, bindings), transport=sites).go()
        if not done.report.complete:
            raise RuntimeError(f"{name} was not harvested as a whole")


def _wrapper(name: str, fields: Sequence[Field]) -> Site:
    return Site(name, pa.schema([(f.name, f.type) for f in fields]))


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def main(session: AbstractContextManager[SparkSession]) -> str:
    """For who runs it alone: `python -m bench.priming`."""
    with session as spark:
        figure, detail = measured(spark)
    return json.dumps({"primed_vs_cold": round(figure, 4), "detail": detail})


if __name__ == "__main__":
    import sys

    from pipeline.session import local_session

    sys.stdout.write(main(local_session(2)) + "\n")
