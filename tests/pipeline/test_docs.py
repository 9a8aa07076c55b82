"""What `docs/spark.md` shows can be done, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fixtures import Web
from pipeline.java import find_java
from pipeline.options import _NAMES
from tests.pipeline.kit import APART, BOOK_TRADE, SHARED, truth

_PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
# The first starts a session of its own, which another test does; there is one here already.
_, *_ALL = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
SUBMITTED = next(block for block in _ALL if block.startswith("# submitted.py"))
_BLOCKS = [block for block in _ALL if block != SUBMITTED]
_FOLDERS = ("my-sites/", "books-log", "books-parquet", "books-checkpoint", "cheap-offers")


@SHARED
def test_it_runs(spark: SparkSession, calm: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared(tmp_path / "my-sites", calm)
    names: dict[str, object] = {"spark": spark}
    for block in _BLOCKS:
        for folder in _FOLDERS:
            block = block.replace(f'"{folder}"', f'"{tmp_path / folder}"')
        exec(block, names)
    shown = capsys.readouterr().out
    assert shown.startswith(f"{sum((book['year'] or 0) > 2000 for book in truth(calm, 'books'))}\n")
    assert "min(price)" in shown
    assert shown.endswith("60\n")


def declared(sites: Path, web: Web) -> None:
    """The book trade, in a folder of its own."""
    sites.mkdir()
    for file in BOOK_TRADE.glob("*.yaml"):
        text = file.read_text(encoding="utf-8").replace("${book_trade}", web.url)
        (sites / file.name).write_text(text, encoding="utf-8")


@APART
@pytest.mark.timeout(300)
def test_what_is_submitted_runs(calm: Web, tmp_path: Path) -> None:
    declared(tmp_path / "my-sites", calm)
    program = tmp_path / "submitted.py"
    program.write_text(SUBMITTED, encoding="utf-8")
    done = subprocess.run(
        [
            str(Path(sysconfig.get_path("scripts")) / "spark-submit"),
            *("--master", "local[2,4]", "--conf", "spark.ui.enabled=false", str(program)),
            "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id",
            *(str(tmp_path / "run"), str(tmp_path / "answers")),
        ],
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "MEDIATOR_CATALOG": str(tmp_path / "my-sites"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    authors = set(calm.tables["authors"]["id"].to_pylist())
    answers = sum(id_ in authors for id_ in calm.tables["books"]["author_id"].to_pylist())
    assert done.stdout.splitlines()[:2] == [f"{answers} rows", "complete"]
    assert pq.read_table(tmp_path / "answers").num_rows == answers


def test_every_option_is_told() -> None:
    table = _PAGE.partition("| option |")[2].partition("\n\n")[0]
    assert (
        set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))) == _NAMES
    )
