"""Executors of a cluster come one by one after a session has begun: how many there are decides how a query is cut."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_PATIENCE = 30.0  # seconds; as long as Spark itself waits for them where it is told to
_LOOK = 0.1


def wait_for_executors(session: SparkSession, patience: float = _PATIENCE, look: float = _LOOK) -> None:
    """Until there are as many cores as were asked for, if that was said. What has not come by then is done without."""
    context = session.sparkContext
    wanted, until = cores_wanted(str(context.master), context.getConf()), time.monotonic() + patience
    while context.defaultParallelism < wanted and time.monotonic() < until:
        time.sleep(look)


def cores_wanted(master: str, conf: SparkConf) -> int:
    """0 where it was not said: there are as many then as the cluster gives, and nobody knows how many those are."""
    if master.startswith("local"):
        return 0
    each = int(conf.get("spark.executor.cores") or 1)
    if master.startswith("spark:"):  # where a number of executors is not heeded
        return int(conf.get("spark.cores.max") or 0) // each * each
    return int(conf.get("spark.executor.instances") or 0) * each
