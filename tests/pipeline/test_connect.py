"""Over Spark Connect, from a client that has nothing to do with Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import Web
from pipeline.java import find_java
from tests.pipeline.kit import isbns, said, truth

PROGRAM = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

options, isbns = json.loads(sys.argv[1])
spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(spark).__module__
reviews = spark.read.format("mediator").options(**options, relation="reviews")
found = [row.asDict() for row in reviews.option("bindings", json.dumps({"isbn": isbns})).load().collect()]
try:
    spark.read.format("mediator").options(**options, relation="reviews").load().collect()
except PySparkException as error:
    advice = str(error)
print(json.dumps([found, advice]))
spark.stop()
"""


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark connect")
def test_a_relation_is_read_over_connect(calm: Web, tmp_path: Path) -> None:
    wanted = isbns(calm, 3)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([said(calm), wanted])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(tmp_path),
        },
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found, advice = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found, key=repr) == truth(calm, "reviews", isbn=wanted)
    assert "reviews needs isbn (access method by_isbn)" in advice
