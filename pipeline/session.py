"""A Spark session on this machine, which listens on loopback only, says little, and leaves nothing behind.

Whoever has a session of his own needs none of this: `format("mediator")` works in any.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import NoSpark, NotStarted
from pipeline.java import find_java
from pipeline.leftovers import own, sweep
from pipeline.packages import check_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_LOOPBACK = "127.0.0.1"
_LEAVING = 20.0  # seconds for Spark's Java to end when it is told to
# What goes wrong in a task is raised in Python, and need not be told on stderr as well.
QUIET = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


# Spark's Python tells each start of a stateful operator at length on stdout, which Java passes on to stderr.
_SCRIPT = """\
#!/bin/sh
PYTHONPATH="${{PYTHONPATH#*/pyspark.zip:}}"
export PYTHONPATH
case "$*" in *transform_with_state_driver_worker*) exec >/dev/null;; esac
exec {python} "$@"
"""

# For sessions that are over soon: Java compiles quickly, and not again for the sake of speed. It takes a third less of
# the processors in the first minute.
BRIEF = "-XX:TieredStopAtLevel=1"


# Spark's own choice begins processes for each file of a checkpoint where Hadoop's native library is not there: some
# forty in each micro-batch.
FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
}


def settings(cores: int, folder: Path, flags: str = "") -> dict[str, str]:
    """What makes a local session as it is wanted here. `folder` is for what it writes meanwhile, `flags` are more of
    Java's own."""
    return {
        # A task that fails is tried again, as on a cluster: with local[2] alone it would not be.
        "spark.master": f"local[{cores},4]",
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -Dderby.system.home={folder} {flags}",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        PUSHDOWN: "true",
        # Of an error in Python the user sees what it says, not the way it took.
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # Else a stream that was killed before its first micro-batch cannot be started again: half a file is in the way.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        **FILES,
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
        "RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }


@contextmanager
def local_session(
    cores: int | None = None, more: Mapping[str, str] | None = None, flags: str = ""
) -> Iterator[SparkSession]:
    """One for as long as the block lasts. Raises `NoSpark` where something is missing.

    `more` are settings beside ours, or instead of them; `flags` are more of Java's own. There can be one session in a
    process: where there is one already, that is the one to use.
    """
    check_spark()
    java = find_java()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        raise NoSpark("there is a Spark session in this process already: use that one, or stop it first")
    sweep()
    folder = Path(tempfile.mkdtemp(prefix="mediator-spark-"))
    owned = own(folder)
    try:
        (folder / "log4j2.properties").write_text(QUIET, encoding="utf-8")
        said = {**settings(cores or min(4, os.cpu_count() or 1), folder, flags), **(more or {})}
        environment = {
            "JAVA_HOME": str(java.home),
            "PYSPARK_PYTHON": python_in(folder),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_CONF_DIR": str(folder),
        }
        with _set(environment):
            try:
                session = SparkSession.builder.config(map=dict(said)).getOrCreate()
            except PySparkException as error:
                raise NotStarted(f"Spark did not start, with {java}: {error}") from None
            try:
                yield session
            finally:
                _end(session)
    finally:
        owned.close()
        shutil.rmtree(folder, ignore_errors=True)


def python_in(folder: Path) -> str:
    """What Spark is to begin for Python. It puts a zip of PySpark before everything else, from which each process would
    compile all modules anew, for half a second: PySpark is where this process has it from."""
    import pyspark

    if os.name != "posix" or not Path(pyspark.__file__).is_file():  # no shell; or it is in that zip
        return sys.executable
    script = folder / "python"
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    script.chmod(0o700)
    # Not where files of this folder cannot be run.
    return str(script) if os.access(script, os.X_OK) else sys.executable


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for as long as the block lasts. PySpark sets some of its own meanwhile."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in [n for n in os.environ if n in variables or n.startswith(("SPARK_", "PYSPARK_"))]:
            if name not in before:
                del os.environ[name]
            else:
                os.environ[name] = before[name]


def _end(session: SparkSession) -> None:
    """Ends the session, and the Java that ran it: PySpark keeps that until Python ends.

    The names are PySpark's own and private. Where they are not there any more, it ends when Python does.
    """
    from pyspark import SparkContext

    gateway: Any = getattr(SparkContext, "_gateway", None)
    with suppress(Exception):  # Java has been killed, or is about to be
        session.stop()
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_LEAVING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    _forget()


def _forget() -> None:
    """So that another session can be started in this process: what PySpark remembers of the one that ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for holder, names in (
        (SparkContext, ("_gateway", "_jvm", "_active_spark_context")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
    ):
        for name in names:
            if hasattr(holder, name):
                setattr(holder, name, None)
