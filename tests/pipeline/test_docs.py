"""What `docs/spark.md` shows can be done, in its order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fixtures import Web
from pipeline.options import _NAMES
from tests.pipeline.kit import BOOK_TRADE, SHARED, truth

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


def test_every_option_is_told() -> None:
    table = _PAGE.partition("| option |")[2].partition("\n\n")[0]
    assert (
        set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))) == _NAMES
    )
