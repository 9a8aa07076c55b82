"""What a profile is made of: harvests' Parquet, what was measured in earlier runs, and traces of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from mediator.catalog.measured import Measured, Place
from mediator.catalog.model import Catalog, Relation
from mediator.clock import wall
from mediator.store import statistics
from mediator.store.records import Declared
from pipeline.errors import ProfileError
from pipeline.harvest import parts
from pipeline.harvest.wanted import PARTS

# Of one access method at one mirror: what is counted, and how much of it. Weights can be added up.
Weight = tuple[str, str, str, str, str, float]


@dataclass(frozen=True)
class Harvested:
    """A relation's harvest. `counted` are the columns of which it is told what values they have."""

    relation: Relation
    paths: tuple[str, ...]
    rows: int
    whole: bool
    asked: tuple[Mapping[str, Any], ...]  # how many lookups came to their end, by what they bound

    @property
    def counted(self) -> list[pa.Field]:
        return [f for f in self.relation.schema if kind_of(f.type)]


def harvests(catalog: Catalog, stores: Sequence[Path]) -> list[Harvested]:
    """Of each relation the largest; those that were declared otherwise are left out."""
    found: dict[str, Harvested] = {}
    for store in stores:
        for folder in sorted((store / PARTS).glob("relation=*")):
            relation = catalog.relations.get(folder.name.removeprefix("relation="))
            if relation is None or not (folder / parts.MANIFEST).exists():
                continue
            said = parts.manifest(folder)
            if said["declared"] != Declared.of(relation).fingerprint or not said["rows"]:
                continue
            there = found.get(relation.name)
            if there is None or said["rows"] > there.rows:
                paths = tuple(str(folder / name) for name in said["parts"])
                whole, asked = bool(said["whole"]), tuple(said["asked"])
                found[relation.name] = Harvested(relation, paths, said["rows"], whole, asked)
    return list(found.values())


def weights(stores: Sequence[Path]) -> list[Weight]:
    """What was measured, as rows that Spark adds up."""
    now = wall()
    return [
        (place.relation, place.method, place.source, *one)
        for store in stores
        for place, measured in statistics.load(store, now)
        for one in _weights(place, measured)
    ]


def traces(said: Sequence[Path]) -> list[str]:
    """The files, and those in the folders that were named."""
    found = []
    for path in said:
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        if not path.exists():
            raise ProfileError(f"{path}: there is no such trace: `mediator query --trace FILE` keeps one")
        found += [str(file) for file in files]
    return found


def kind_of(type_: pa.DataType) -> str:
    """Columns of one kind can be equal to one another; nothing for those that nobody looks up or joins by."""
    if pt.is_integer(type_):
        return "number"
    if pt.is_string(type_) or pt.is_large_string(type_):
        return "text"
    return "date" if pt.is_date(type_) else ""


def _weights(place: Place, measured: Measured) -> Iterator[tuple[str, str, float]]:
    said = statistics.written_entry(place, measured)
    yield "requests", "", said["requests"]
    yield "seconds", "", said["latency"]["total"]
    for bucket, weight in said["latency"]["buckets"].items():
        yield "bucket", bucket, weight
    for kind, weight in said["errors"].items():
        yield "error", kind, weight
    for name in ("rows", "bytes", "pages"):
        for number, moment in enumerate(said[name]):
            yield name, str(number), moment
