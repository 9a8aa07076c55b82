"""Their side: Spark SQL over the same files, as a batch and as streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from bench.spark.trade import Laid

Tuning = Mapping[str, str]

_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_ADAPTIVE = "spark.sql.adaptive.enabled"


def tunings(cores: int) -> dict[str, Tuning]:
    """What plain Spark SQL may be run with."""
    return {
        "adaptive": {_ADAPTIVE: "true", _PARTITIONS: "200"},
        "adaptive, few partitions": {_ADAPTIVE: "true", _PARTITIONS: str(4 * cores)},
        "a partition for each core": {_ADAPTIVE: "false", _PARTITIONS: str(cores)},
    }


def batch(session: SparkSession, laid: Laid, out: Path, tuning: Tuning) -> float:
    """Seconds, from the files to an answer in a folder of files."""
    with _set(session, tuning):
        began = perf_counter()
        for name, file in laid.files.items():
            session.read.parquet(file).createOrReplaceTempView(name)
        session.sql(laid.sql).write.parquet(str(out))
        return perf_counter() - began


def streams(session: SparkSession, laid: Laid, out: Path, cores: int) -> float:
    """Seconds of stream-stream joins, with all that there is in one micro-batch."""
    tuning = {"spark.sql.streaming.stateStore.providerClass": _STORE, _PARTITIONS: str(cores)}
    with _set(session, tuning):
        began = perf_counter()
        for name, file in laid.files.items():
            schema = session.read.parquet(file).schema
            folder = Path(file).parent / f"{name}.folder"
            _linked(folder, Path(file))
            session.readStream.schema(schema).parquet(str(folder)).createOrReplaceTempView(name)
        query = (
            session.sql(laid.sql)
            .writeStream.format("parquet")
            .option("path", str(out / "rows"))
            .option("checkpointLocation", str(out / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return perf_counter() - began


def _linked(folder: Path, file: Path) -> None:
    """A folder with this file alone, as a stream reads it."""
    folder.mkdir(exist_ok=True)
    link = folder / file.name
    if not link.exists():
        link.hardlink_to(file)


@contextmanager
def _set(session: SparkSession, tuning: Tuning) -> Iterator[None]:
    """Settings for as long as the block lasts."""
    before = {name: session.conf.get(name) for name in tuning}
    for name, value in tuning.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, said in before.items():
            if said is not None:
                session.conf.set(name, said)
