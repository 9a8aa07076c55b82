"""A query that is submitted to a cluster of Spark's: the answers and the report of this process, whoever is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from fixtures import book_trade
from fixtures.behaviour import Behaviour
from mediator.answering import answer
from pipeline.spread.errors import SpreadError, told
from pipeline.spread.folder import Folder
from pipeline.spread.given import given
from pipeline.spread.registering import wait_for_executors
from tests.pipeline import killed_executors
from tests.pipeline.cluster import Cluster
from tests.pipeline.kit import APART
from tests.pipeline.test_docs import SUBMITTED, declared

SQL = "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id"
SLOW = "Python worker failed to connect back"  # within ten seconds, on a machine that does too much
_FOREVER = 3_000.0  # seconds: longer than anybody waits


class FirstAlone:
    """The first page comes at once, and the others when it was struck: whoever has asked for them before is dead."""

    def __init__(self, struck: Path) -> None:
        self._struck, self._requests = struck, 0

    def __call__(self, random: Random) -> float:
        self._requests += 1
        return 0.0 if self._requests == 1 or self._struck.exists() else _FOREVER


@APART
@pytest.mark.timeout(300)
def test_executors_are_killed_and_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    run, answers, program = tmp_path / "run", tmp_path / "answers", tmp_path / "submitted.py"
    program.write_text(
        f"from {killed_executors.__name__} import armed\narmed()\n{SUBMITTED}", encoding="utf-8"
    )
    pages = Behaviour(latency=FirstAlone(run / killed_executors.STRUCK))
    with book_trade(60, book_page=20, behaviours={"books": pages}) as web:
        sites = tmp_path / "my-sites"
        declared(sites, web)
        books = (sites / "books.yaml").read_text().replace("base:", f"deadline: {_FOREVER}\n    base:")
        (sites / "books.yaml").write_text(books)
        with Cluster(tmp_path / "cluster") as cluster:
            cluster.variables["MEDIATOR_CATALOG"] = str(sites)
            done = cluster.submitted(program, SQL, str(run), str(answers))
            while SLOW in done.stderr:  # said again, it goes on
                done = cluster.submitted(program, SQL, str(run), str(answers))
        assert not cluster.processes()
        table, report = answer(SQL, web.catalog)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"{table.num_rows} rows", *report.lines()]
    found = pq.read_table(answers)
    assert Counter(map(str, found.to_pylist())) == Counter(map(str, table.to_pylist()))
    assert len((run / killed_executors.STRUCK).read_text().split()) > 1, "one asks, others have cells"
    plan, there = Folder(run).plan(), list(given(Folder(run).given))
    assert (plan.slots, len(plan.cells)) == (2, 2)
    assert "anew" in {status["how"] for one in there for status in one.cells.values()}


def test_whatever_goes_wrong_nothing_is_left(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster")

    def fail() -> None:
        with cluster:
            assert cluster.processes()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not cluster.processes()


class Coming:
    """A session whose executors come one by one, each time that somebody looks."""

    def __init__(self, master: str, conf: dict[str, str], cores: list[int]) -> None:
        self.sparkContext, self.master, self._conf, self.cores = self, master, conf, cores

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's names
        return self._conf

    @property
    def defaultParallelism(self) -> int:  # noqa: N802
        return self.cores.pop(0) if len(self.cores) > 1 else self.cores[0]


@pytest.mark.parametrize(
    ("master", "conf", "cores"),
    [
        ("spark://there:7077", {"spark.cores.max": "6"}, 6),
        ("spark://there:7077", {"spark.cores.max": "7", "spark.executor.cores": "2"}, 6),
        ("yarn", {"spark.executor.instances": "2", "spark.executor.cores": "3"}, 6),
        ("k8s://there", {"spark.executor.instances": "6"}, 6),
        ("spark://there:7077", {"spark.executor.instances": "6"}, 2),
        ("spark://there:7077", {}, 2),
        ("local[2]", {"spark.cores.max": "6"}, 2),
    ],
)
def test_cells_are_for_as_many_executors_as_were_asked_for(
    master: str, conf: dict[str, str], cores: int
) -> None:
    """Where it was not said, for those that are there when it is laid out."""
    session: Any = Coming(master, conf, [2, 2, 4, 6])
    wait_for_executors(session, look=0.0)
    assert session.defaultParallelism == cores


def test_those_that_never_come_are_done_without() -> None:
    session: Any = Coming("yarn", {"spark.executor.instances": "9"}, [2])
    wait_for_executors(session, patience=0.0)


@pytest.mark.parametrize(
    ("said", "told_"),
    [
        (
            'Traceback (most recent call last):\n  File "worker.py", line 1\nModuleNotFoundError: No module named '
            "'little_shop'\n\n\tat java.base/java.lang.Thread.run",
            "an executor lacks what the driver has: No module named 'little_shop'. Every executor needs the same "
            "packages and plugins",
        ),
        *(
            (
                said,
                "/run/c: an executor cannot write there. The checkpoint must be a folder in which the driver and "
                "every executor may write",
            )
            for said in (
                "thrown from the Python worker:\nOSError: [Errno 30] Read-only file system: '/run/c'\n",
                "Caused by: java.io.IOException: mkdir of file:/run/c failed\n\tat ...",
                "java.io.IOException: Mkdirs failed to create file:/run/c (exists=false, cwd=file:/)",
                "java.io.FileNotFoundException: /run/c (Permission denied)",
            )
        ),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or directory\n\tat ...',
            "Python cannot be started: ./env/bin/python: No such file or directory. What spark.pyspark.python names "
            "must be there on the driver and on every executor",
        ),
        ("pipeline.spread.errors.SpreadError: on purpose\n", "on purpose"),
    ],
)
def test_what_an_executor_lacks_is_one_sentence(said: str, told_: str) -> None:
    error = told(RuntimeError(said), Path("/run"))
    assert isinstance(error, SpreadError)
    assert str(error) == told_


def test_what_nobody_knows_is_told_as_it_is() -> None:
    error = RuntimeError("OSError: [Errno 5] Input/output error: 'x'")
    assert told(error, Path("/run")) is error
