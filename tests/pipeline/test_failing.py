"""How a query on Spark fails: soon where another try is of no use, in one sentence, and with nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures import Web
from mediator.answering import Mediator
from mediator.output.report import Report
from pipeline.errors import NotStarted
from pipeline.leftovers import own, sweep
from pipeline.session import python_in
from pipeline.spread import child, driving, engine
from pipeline.spread.driving import told_of
from pipeline.spread.errors import BROKEN, FULL, MISTAKEN, STUCK, NoRoom, SpreadError, in_short, told
from pipeline.spread.folder import Folder
from tests.cli.kit import at, called

SQL = "SELECT isbn, title FROM books"
FULL_DISK = OSError(errno.ENOSPC, "No space left on device", "/c/log/drive/.00000001.arrow.new")
NOISE = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel).
Starting Streaming TransformWithStateInPandas Python worker.
Streaming TransformWithStateInPandas Python worker finish init stage. Received UDF: <Host object at 0x7f8e1bfcac10>>.
ERROR:root:Exception while sending command.
Traceback (most recent call last):
  File "clientserver.py", line 535, in send_command
    raise Py4JNetworkError("Answer from Java side is empty")
"""


class Unspeakable(Exception):
    """As Spark's errors are when the session is gone."""

    there = True

    def __str__(self) -> str:
        assert self.there
        return (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted: the worker crashed\n"
            "JVM stacktrace:\norg.apache.spark.SparkException\n\tat java.base/java.lang.Thread.run"
        )


# What is told.


def test_spark_s_own_error_in_one_line() -> None:
    error = Unspeakable()
    assert in_short(error) == "Unspeakable: Job aborted: the worker crashed"
    error.there = False
    assert in_short(error) == "Spark's Java is gone (Unspeakable)"
    assert in_short(ConnectionRefusedError(111, "x")) == "Spark's Java is gone (ConnectionRefusedError)"
    assert told(error, Path("/c")) is error


@pytest.mark.parametrize(
    ("said", "short"),
    [
        (
            "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
            '  File "asker.py", line 3, in run\n    raise KeyError(1)\nKeyError: 1\n\n\tat org.apache.spark.api\n',
            "KeyError: 1",
        ),
        ("\n\nJava side is empty\n  at x", "RuntimeError: Java side is empty"),
        ("x" * 10_000, f"RuntimeError: {'x' * 486}"),
    ],
)
def test_any_error_in_one_line(said: str, short: str) -> None:
    assert in_short(RuntimeError(said)) == short


@pytest.mark.parametrize(
    "error",
    [
        FULL_DISK,
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch"),
        RuntimeError("OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] x"),
        SpreadError("/c: nothing can be written there: No space left on device"),
    ],
)
def test_a_full_disk_is_the_machine_s_fault(error: Exception, tmp_path: Path) -> None:
    found = told(error, tmp_path)
    assert isinstance(found, NoRoom)
    assert "No space left on device. Make room there" in str(found)
    assert told(found, tmp_path) is found


def test_what_java_and_spark_say_of_themselves_is_left_out() -> None:
    assert told_of(NOISE) == ""
    assert told_of(f"{NOISE}Error occurred during initialization of VM\n{NOISE}") == (
        "Error occurred during initialization of VM"
    )
    assert told_of("y" * 1_990 + "\nthe last line") == "the last line", "no line is cut"


# The process that drives.


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Unspeakable(), BROKEN, "Unspeakable: Job aborted: the worker crashed"),
        (
            RuntimeError("pipeline.spread.errors.SpreadError: on purpose\n\tat java"),
            MISTAKEN,
            "on purpose",
        ),
        (FULL_DISK, FULL, "No space left on device"),
        (NotStarted("Spark did not start"), STUCK, "Spark did not start"),
    ],
)
async def test_it_says_why_while_the_session_is_there(
    error: Exception,
    code: int,
    said: str,
    calm: Web,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Drive:
        def __init__(self, *_: object) -> None: ...

        def run(self) -> None:
            raise error

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[None]:
        try:
            yield
        finally:
            if isinstance(error, Unspeakable):
                error.there = False

    monkeypatch.setattr(child, "Drive", Drive)
    monkeypatch.setattr(child, "local_session", session)
    monkeypatch.setattr(child, "_leave_with_parent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["child", str(begun(tmp_path, calm).path)])
    assert child.main() == code
    out = capsys.readouterr().out
    assert said in out
    assert out.count("\n") == 1


def begun(folder: Path, web: Web, **how: Any) -> Folder:
    """Where a scripted process finds what to do, and its plan."""
    from mediator.answering import verdicts_of
    from mediator.assembly import Settings
    from mediator.query.understand import understand
    from pipeline.spread.plan import planned

    query = understand(SQL, web.catalog)
    plan = planned(
        web.catalog, query, verdicts_of(query, web.catalog), Settings(), lambda *_: 1.0, slots=1, askers=1
    )
    found = Folder(folder)
    found.begin(plan)
    (folder / "how.json").write_text(json.dumps(how))
    return found


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark: what would start one does what is written down."""
    monkeypatch.setattr(driving, "CHILD", "tests.pipeline.scripted_child")
    monkeypatch.setattr(engine, "_session", lambda: None)


async def answered(web: Web, folder: Path, stop: Callable[[], bool] = lambda: False) -> tuple[int, Report]:
    rows = 0
    async with (
        Mediator(web.catalog) as mediator,
        mediator.answering(SQL, engine="spark", checkpoint=str(folder)) as answers,
    ):
        if stop():
            answers.stop("interrupted")
        async for batch in answers:
            rows += batch.num_rows
    return rows, answers.report


def starts(folder: Path) -> int:
    return len(list(folder.glob("started-*")))


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    ("how", "kind", "said", "times"),
    [
        ({"code": FULL}, NoRoom, r"No space left on device\. Make room there", 1),
        ({"code": MISTAKEN, "words": "too large", "noise": NOISE}, SpreadError, r"^too large$", 1),
        (
            {"code": BROKEN, "words": "Lost: it crashed", "noise": NOISE},
            SpreadError,
            r"^Spark was lost 4 times without getting any further\. Lost: it crashed\. What was found so far is in",
            4,
        ),
        (
            {
                "code": BROKEN,
                "words": "it crashed",
                "noise": "Exception occurred during processing of request",
            },
            SpreadError,
            r"any further\. it crashed\. What",
            4,
        ),
        (
            {
                "code": STUCK,
                "words": "Spark did not start",
                "noise": f"{NOISE}Could not reserve enough space",
            },
            SpreadError,
            r"any further\. Spark did not start\nCould not reserve enough space\. What",
            4,
        ),
        (
            {"code": 139, "noise": f"{NOISE}Segmentation fault"},
            SpreadError,
            r"further\. Segmentation fault\. What",
            4,
        ),
        ({"code": 139, "noise": NOISE}, SpreadError, r"further\. it ended with 139\. What", 4),
    ],
)
async def test_it_is_started_again_only_where_that_may_help(
    how: dict[str, Any], kind: type[Exception], said: str, times: int, calm: Web, tmp_path: Path
) -> None:
    begun(tmp_path, calm, **how)
    with pytest.raises(kind, match=said) as caught:
        await answered(calm, tmp_path)
    assert starts(tmp_path) == times
    assert str(caught.value).count("\n") == (how["code"] == STUCK)


@pytest.mark.usefixtures("scripted")
def test_a_full_disk_ends_the_command_with_1(trade: Web, tmp_path: Path) -> None:
    begun(tmp_path, trade, code=FULL, noise=NOISE)
    result = called(
        "query", SQL, "--engine", "spark", "--checkpoint", str(tmp_path), "--no-progress", *at(trade)
    )
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "No space left on device" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("scripted")
async def test_one_that_cannot_write_down_that_it_is_to_stop_stops(
    calm: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FULL_DISK

    begun(tmp_path, calm, waits=True)
    monkeypatch.setattr("pipeline.spread.folder.put_text", full)
    rows, report = await answered(calm, tmp_path, stop=lambda: True)
    assert (rows, report.stopped) == (0, "interrupted")


@pytest.mark.usefixtures("scripted")
async def test_a_folder_that_is_read_only_is_found_out_first(
    calm: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    begun(tmp_path, calm, code=BROKEN)
    monkeypatch.setattr(engine, "put_text", closed)
    with pytest.raises(SpreadError, match=r"goes on only where its folder can be written: Read-only file"):
        await answered(calm, tmp_path)
    assert starts(tmp_path) == 0


@pytest.mark.usefixtures("scripted")
async def test_what_has_ended_is_answered_without_spark(
    calm: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path, calm, answers=3)
    rows, report = await answered(calm, tmp_path)
    assert (rows, starts(tmp_path)) == (3, 1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "find_java", lambda: pytest.fail("no Java is needed"))
    again, said = await answered(calm, tmp_path)
    assert (again, starts(tmp_path)) == (3, 1)
    assert said == report


@pytest.mark.usefixtures("scripted")
def test_nobody_is_told_to_wait_for_a_spark_that_is_not_started(calm: Web, tmp_path: Path) -> None:
    begun(tmp_path, calm, answers=3)
    asking = ("query", SQL, "--engine", "spark", "--checkpoint", str(tmp_path), *at(calm))
    first, again = called(*asking), called(*asking)
    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr
    assert "Spark is being started" in first.stderr
    assert "Spark is being started" not in again.stderr


# What is left behind.

OWNS = """\
import sys, time
from pathlib import Path
from pipeline.leftovers import own
owned = own(Path(sys.argv[1]))
print("owned", flush=True)
time.sleep(600)
"""


def test_folders_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone, mine, unowned, other = (
        tmp_path / name
        for name in ("mediator-spread-gone", "mediator-spark-mine", "mediator-spark-new", "else")
    )
    for folder in (gone, mine, unowned, other):
        (folder / "log").mkdir(parents=True)
    owned = own(mine)
    own(other).close()
    with subprocess.Popen([sys.executable, "-c", OWNS, str(gone)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"owned\n"
        assert (gone / "owner").read_text() == str(process.pid)
        sweep(tmp_path)
        assert gone.exists(), "its owner lives"
        process.send_signal(signal.SIGKILL)
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["else", mine.name, unowned.name]
    owned.close()
    sweep(tmp_path)
    assert not mine.exists()


@pytest.mark.usefixtures("scripted")
async def test_a_query_s_own_folders_are_its_own_and_go_with_it(
    calm: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "mediator-spread-left"
    left.mkdir()
    own(left).close()
    async with (
        Mediator(calm.catalog) as mediator,
        mediator.answering(SQL, engine="spark"),
    ):
        assert kinds(tmp_path) == ["mediator-spark", "mediator-spread"]
        assert not left.exists()
        sweep(tmp_path)
        assert len(kinds(tmp_path)) == 2
    assert not kinds(tmp_path)


def kinds(folder: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in folder.iterdir())


def test_what_spark_s_python_tells_of_each_start_goes_nowhere(tmp_path: Path) -> None:
    def said(module: str) -> str:
        done = [python_in(tmp_path), "-c", "print('Starting')", module]
        return subprocess.run(done, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout

    assert said("pyspark.daemon") == "Starting\n"
    assert said("pyspark.sql.streaming.transform_with_state_driver_worker") == ""
