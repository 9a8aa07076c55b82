"""Executors of a cluster come one by one after a session has begun: how many there are decides how a query is cut."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_PATIENCE = 30.0  # as long as Spark itself would wait, where it is told to
_LOOK = 0.1


def wait_for_executors(session: SparkSession, patience: float = _PATIENCE) -> None:
    """Until there are as many cores as were asked for, if that was said. What has not come by then is done without."""
    context = session.sparkContext
    if str(context.master).startswith("local"):
        return
    wanted, until = cores_wanted(context.getConf()), time.monotonic() + patience
    while context.defaultParallelism < wanted and time.monotonic() < until:
        time.sleep(_LOOK)


def cores_wanted(conf: SparkConf) -> int:
    """0 where it was not said: then there are as many as the cluster has, and nobody knows how many those are."""
    most, instances = conf.get("spark.cores.max"), conf.get("spark.executor.instances")
    if most is not None:
        each = int(conf.get("spark.executor.cores", "1") or 1)
        return int(most) // each * each
    return int(instances) * int(conf.get("spark.executor.cores", "1") or 1) if instances is not None else 0
