"""What `docs/harvesting.md` shows can be done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures import Web
from tests.cli.kit import called
from tests.harvest.kit import BOOK_TRADE

_PAGE = (Path(__file__).parents[2] / "docs" / "harvesting.md").read_text(encoding="utf-8")


def test_it_runs(
    trade: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = tmp_path / "my-sites"
    sites.mkdir()
    for file in BOOK_TRADE.glob("*.yaml"):
        declared = file.read_text(encoding="utf-8").replace("${book_trade}", trade.url)
        (sites / file.name).write_text(declared, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    exec(block, {})
    assert capsys.readouterr().out.startswith("complete\n")
    (shell,) = re.findall(r"```console\n(.*?)```", _PAGE, re.DOTALL)
    (tmp_path / "wanted.csv").write_text("isbn\n1\n")
    for line in shell.splitlines():
        words = [w.strip('"') for w in re.findall(r'"[^"]*"|\S+', line.partition("   #")[0])][1:]
        words = ["SELECT count(*) FROM books" if w == "SELECT ..." else w for w in words]
        assert called(*words).exit_code == 0, line
    assert trade.counters["books"].requests == 6


def test_every_option_of_the_command_that_is_named_is_there() -> None:
    said = called("harvest", "--help").output
    for option in set(re.findall(r"--[a-z-]+", _PAGE)):
        assert option in said, option
