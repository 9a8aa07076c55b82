"""`mediator profile`: runs the statement in Spark, and writes what it found as one small file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mediator.catalog.model import Catalog
from mediator.clock import wall
from mediator.store import profile as kept
from mediator.store.records import Declared
from mediator.store.store import must_be_store
from pipeline.errors import ProfileError
from pipeline.profiling.inputs import Harvested, harvests, traces, weights
from pipeline.profiling.statement import CELLS, MEASURED, TRACES, cells, statement, view_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEASURED = "relation string, method string, source string, what string, name string, weight double"
_TRACED = (
    "at double, ask bigint, relation string, method string, arrived bigint, rows bigint, ended bigint, how string, "
    "cause string, bindings bigint"
)


@dataclass(frozen=True)
class Profiled:
    """What was made, and of what."""

    said: Mapping[str, Any]  # the file's content
    path: Path
    seconds: float
    jobs: int = 1


def profile(
    spark: SparkSession,
    catalog: Catalog,
    store: Path,
    *,
    others: Sequence[Path] = (),
    runs: Sequence[Path] = (),
) -> Profiled:
    """Of the harvests and measurements of a store, those of `others`, and traces of `runs`. The file goes into the
    store. Raises `ProfileError` where there is nothing to go by."""
    began = time.monotonic()
    stores = [store, *others]
    for folder in stores:
        must_be_store(folder)
    found, measured, files = harvests(catalog, stores), weights(stores), traces(runs)
    if not (found or measured or files):
        raise ProfileError(
            f"{store} has nothing that a profile could be made of: `mediator harvest RELATION --store {store}` first, "
            "or name traces with --trace"
        )
    for number, harvest in enumerate(found):
        spark.read.parquet(*harvest.paths).createOrReplaceTempView(view_of(number))
    if measured:
        spark.createDataFrame(measured, _MEASURED).createOrReplaceTempView(MEASURED)
    if files:
        lines = spark.read.schema(_TRACED).json(files)
        lines.selectExpr("*", "_metadata.file_path AS file").createOrReplaceTempView(TRACES)
    try:
        with _counted(spark, found):
            rows = spark.sql(statement(found, bool(measured), bool(files))).collect()
    finally:
        for view in (CELLS, MEASURED, TRACES, *map(view_of, range(len(found)))):
            spark.catalog.dropTempView(view)
    said = _together(found, ((row["what"], json.loads(row["said"])) for row in rows))
    try:
        kept.save(store, said)
    except OSError as error:
        raise ProfileError(f"{store}: the profile cannot be written: {error.strerror or error}") from None
    return Profiled(said, store / kept.FILE, time.monotonic() - began)


@contextmanager
def _counted(spark: SparkSession, found: Sequence[Harvested]) -> Iterator[None]:
    """What the findings have in common is kept once it has been counted: by the same job that first needs it."""
    if not any(h.counted for h in found):
        yield
        return
    counts = spark.sql(cells(found)).persist()
    try:
        counts.createOrReplaceTempView(CELLS)
        yield
    finally:
        counts.unpersist()


def _together(found: Sequence[Harvested], findings: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The findings as the file has them."""
    relations = {h.relation.name: _empty(h) for h in found}
    joins: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    methods: dict[tuple[str, str, str], dict[str, Any]] = {}
    heavy: list[dict[str, Any]] = []
    for what, one in findings:
        match what:
            case "column":
                relations[one["relation"]]["columns"][one["column"]] = {
                    "filled": one["filled"], "distinct": one["distinct"], "most": one["most"], "heavy": [],
                }  # fmt: skip
            case "heavy":
                heavy.append(one)
            case "join":
                if joined := _join(one):
                    joins.append(joined)
            case "sample":
                relations[one["relation"]]["sample"].append(one["row"])
            case "together":
                pair = {"columns": one["columns"], "distinct": one["distinct"]}
                relations[one["relation"]]["together"].append(pair)
            case "measured":
                _measure(methods, one)
            case "run":
                runs.append(one)
    for one in sorted(heavy, key=lambda h: (-h["n"], h["value"])):
        relations[one["relation"]]["columns"][one["column"]]["heavy"].append([one["value"], one["n"]])
    for h in found:
        there = relations[h.relation.name]["columns"]
        relations[h.relation.name]["columns"] = {f.name: there[f.name] for f in h.counted if f.name in there}
    return {
        "version": kept.VERSION,
        "at": wall(),
        "relations": relations,
        "joins": sorted(joins, key=lambda j: j["columns"]),
        "measured": list(methods.values()),
        "runs": sorted(runs, key=lambda r: (r["relation"], r["method"], r["how"], r["cause"])),
    }


def _empty(harvest: Harvested) -> dict[str, Any]:
    return {
        "declared": Declared.of(harvest.relation).fingerprint,
        "rows": harvest.rows,
        "whole": harvest.whole,
        "columns": {},
        "together": [],
        "asked": list(harvest.asked),
        "sample": [],
    }


def _join(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """A column meets itself in self-joins."""
    columns = [[one["left"], one["left_column"]], [one["right"], one["right_column"]]]
    return {"columns": columns, "pairs": one["pairs"], "values": one["values"]}


def _measure(methods: dict[tuple[str, str, str], dict[str, Any]], one: Mapping[str, Any]) -> None:
    """Of one access method at one mirror, in the words of `statistics.json`."""
    place = one["relation"], one["method"], one["source"]
    entry = methods.setdefault(
        place,
        {
            "relation": place[0],
            "method": place[1],
            "source": place[2],
            "latency": {"total": 0.0, "buckets": {}},
            "requests": 0.0,
            "errors": {},
            "rows": [0.0] * 4,
            "bytes": [0.0] * 4,
            "pages": [0.0] * 4,
            "bindings": [],
        },
    )
    match one["what"]:
        case "requests":
            entry["requests"] = one["weight"]
        case "seconds":
            entry["latency"]["total"] = one["weight"]
        case "bucket":
            entry["latency"]["buckets"][one["name"]] = one["weight"]
        case "error":
            entry["errors"][one["name"]] = one["weight"]
        case name:
            entry[name][int(one["name"])] = one["weight"]
