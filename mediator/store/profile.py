"""A profile as a small file in a store: replaced as a whole. It is worth having, and not worth failing for. Blocks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mediator.catalog.measured import Measurements
from mediator.catalog.model import Relation
from mediator.catalog.profile import NO_PROFILE, ColumnProfile, JoinProfile, Place, Profile, RelationProfile
from mediator.store import notes, statistics
from mediator.store.records import Declared

FILE = "profile.json"
VERSION = 1

_log = logging.getLogger(__name__)


def load(folder: Path, relations: Mapping[str, Relation]) -> Profile:
    """What there is of these relations, as they are declared now; nothing where there is none that can be read."""
    try:
        found = read(folder, relations)
    except notes.Unreadable as error:
        _log.warning("%s. It is left aside: `mediator profile` makes another.", error)
        return NO_PROFILE
    return found


def read(folder: Path, relations: Mapping[str, Relation]) -> Profile:
    """As `load`; raises `Unreadable`."""
    said = notes.read(folder / FILE)
    if said is None:
        return NO_PROFILE
    try:
        if said["version"] != VERSION:
            raise ValueError(f"format {said['version']!r}, not {VERSION}")
        declared = {name: Declared.of(relation).fingerprint for name, relation in relations.items()}
        found = Profile(
            float(said["at"]),
            {n: _relation(r, relations[n]) for n, r in said["relations"].items() if n in relations},
            {_pair(j["columns"]): JoinProfile(float(j["pairs"]), float(j["values"])) for j in said["joins"]},
            Measurements(dict(map(statistics.entry, said["measured"]))),
        )
        return found.suiting(declared)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, pa.ArrowException) as error:
        raise notes.Unreadable(f"{folder / FILE} is damaged: {error!r}") from None


def save(folder: Path, said: dict[str, Any]) -> None:
    """When it returns, it outlives the process."""
    notes.replace(folder / FILE, said)


def _relation(said: Mapping[str, Any], relation: Relation) -> RelationProfile:
    columns = {name: _column(c) for name, c in said["columns"].items()}
    together = {(p["columns"][0], p["columns"][1]): float(p["distinct"]) for p in said["together"]}
    asked = {tuple(sorted(a["bind_fields"])): float(a["lookups"]) for a in said["asked"]}
    rows = float(said["rows"])
    same = said["declared"] == Declared.of(relation).fingerprint
    sample = _sample(said["sample"], relation.schema) if same else None
    return RelationProfile(str(said["declared"]), rows, bool(said["whole"]), columns, sample, together, asked)


def _column(said: Mapping[str, Any]) -> ColumnProfile:
    heavy = tuple((str(value), float(rows)) for value, rows in said["heavy"])
    return ColumnProfile(float(said["filled"]), float(said["distinct"]), float(said["most"]), heavy)


def _sample(said: Sequence[Sequence[str | None]], schema: pa.Schema) -> pa.Table:
    """Each value is a text, as Arrow reads it."""
    if any(len(row) != len(schema) for row in said):
        raise ValueError("a row of the sample with other columns")
    columns = zip(*said, strict=True) if said else [()] * len(schema)
    arrays = [pa.array(list(c), pa.string()).cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _pair(said: Sequence[Sequence[str]]) -> tuple[Place, Place]:
    (one, its), (other, others) = said
    return (str(one), str(its)), (str(other), str(others))
