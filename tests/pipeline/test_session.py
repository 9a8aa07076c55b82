"""The session of one's own: it hears nobody from elsewhere, and is gone when it is over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from pipeline.errors import NoSpark
from pipeline.session import local_session
from tests.pipeline.kit import SHARED


@SHARED
def test_it_listens_on_loopback_only(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    java = [process for process in family if "java" in process.name()]
    assert java
    listening = [
        connection.laddr.ip.removeprefix("::ffff:")
        for process in java
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


@SHARED
def test_there_is_one_in_a_process(spark: SparkSession) -> None:
    with pytest.raises(NoSpark, match="there is a Spark session in this process already"), local_session():
        pass


@SHARED
def test_its_processes_have_pyspark_from_where_it_is_compiled(spark: SparkSession) -> None:
    """Spark would have each of them compile PySpark anew, out of a zip."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark as theirs

        for _ in batches:
            yield pa.record_batch({"file": [theirs.__file__]})

    files = {row.file for row in spark.range(4).mapInArrow(told, "file string").collect()}
    assert files == {pyspark.__file__}


PROGRAM = """
import os, psutil
from pipeline.session import local_session

before = dict(os.environ)
with local_session(cores=1) as session:
    folder = session.conf.get("spark.local.dir").rpartition("/")[0]
    assert session.range(5).mapInArrow(lambda batches: batches, "id long").count() == 5
    assert os.path.isdir(folder)
    java = psutil.Process().children(recursive=True)
psutil.wait_procs(java, timeout=20)
assert not os.path.exists(folder), folder
assert not psutil.Process().children(recursive=True)
assert dict(os.environ) == before
print("gone")
"""


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        # Where a session was before, in this process, PySpark's own variables are set already.
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SPARK_")},
            "TMPDIR": str(tmp_path),
        },
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "gone\n"
    assert [path.name for path in tmp_path.iterdir()] == []
