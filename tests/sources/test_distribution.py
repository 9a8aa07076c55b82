"""A plugin that is a distribution of its own is installed by pip, found by its entry point, and queried."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.kit import Site, serving

PROJECT = Path(__file__).parent / "distribution"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the distribution was installed into."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    isolated = ["--no-build-isolation", "--no-deps", "--no-compile", "--target", str(target), str(PROJECT)]
    done = subprocess.run([*pip, *isolated], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert (target / "little_shop-1.2.dist-info" / "entry_points.txt").exists()
    assert not (PROJECT / "build").exists()
    return target


def _called(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, in a process that has the distribution installed."""
    env = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "300"}
    env.pop("MEDIATOR_PLUGINS", None)
    env.pop("MEDIATOR_CATALOG", None)
    script = [sys.executable, "-c", "from api.cli import main; main()"]
    done = subprocess.run(
        [*script, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=env, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def shop() -> Iterator[Site]:
    def answer(method: str, path: str, body: str) -> tuple[int, str]:
        if path == "/prices":
            return 200, "1: 9.50\n2: 12.00\n3: 7.25\n"
        asked = path.partition("?")[2].replace("isbn=", "").split("&")
        return 200, "".join(f"{isbn} x {int(isbn) * 10}\n" for isbn in asked if isbn != "2")

    with serving(answer) as site:
        yield site


def test_it_is_listed_without_being_run(installed: Path) -> None:
    said = _called(installed, "sources")
    assert said.returncode == 0, said.stderr
    assert "little_shop   little_shop, of little-shop 1.2" in said.stdout
    assert "little_shop_week   little_shop.week:Bargains, of little-shop 1.2" in said.stdout
    assert "closed" not in said.stdout + said.stderr


def test_its_relations_say_where_they_come_from(installed: Path) -> None:
    said = _called(installed, "sources", "-c", "plugin:little_shop")
    assert said.returncode == 0, said.stderr
    assert "declared in plugin little_shop (little-shop 1.2)" in said.stdout
    assert "from little_shop, https://little-shop.example" in said.stdout


@pytest.mark.parametrize("variable", ["little_shop", "little_shop.little_shop"])
def test_it_is_queried(installed: Path, shop: Site, variable: str) -> None:
    sql = (
        "SELECT p.isbn, price, copies FROM little_prices p JOIN little_stock s ON s.isbn = p.isbn ORDER BY 1"
    )
    chosen = ["-c", "plugin:little_shop", "--set", f"{variable}={shop.url}", "--format", "csv", "--quiet"]
    said = _called(installed, "query", sql, *chosen)
    assert said.returncode == 0, said.stderr
    rows = list(csv.reader(io.StringIO(said.stdout)))
    assert rows == [["isbn", "price", "copies"], ["1", "9.5", "10"], ["3", "7.25", "30"]]


def test_one_that_cannot_be_imported_does_not_take_the_others_down(installed: Path, shop: Site) -> None:
    chosen = ["-c", "plugins", "--set", f"little_shop={shop.url}", "--format", "csv", "--quiet"]
    said = _called(installed, "query", "SELECT count(*) AS n FROM little_prices", *chosen)
    assert said.stdout.splitlines() == ["n", "3"], said.stderr
    assert said.returncode == 0
    (warning,) = [line for line in said.stderr.splitlines() if line.startswith("warning")]
    assert "plugin 'little_shop_week' of little-shop 1.2: " in warning
    assert "little_shop/week.py:3: cannot be imported: RuntimeError: the shop is closed this week" in warning
    assert "book_trade" not in said.stderr  # it was given no address, which is no fault


def test_asking_for_what_it_would_have_had_gives_its_error(installed: Path) -> None:
    said = _called(installed, "query", "SELECT * FROM bargains", "-c", "plugins", "--quiet")
    assert said.returncode == 2
    assert "there is no relation 'bargains'" in said.stderr
    assert "it may be in what cannot be used: plugin 'little_shop_week' of little-shop 1.2: " in said.stderr
    said = _called(installed, "query", "SELECT * FROM bargains", "-c", "plugin:little_shop_week")
    assert said.returncode == 2
    assert "error: plugin 'little_shop_week' of little-shop 1.2: " in said.stderr
    assert "the shop is closed this week" in said.stderr


def test_a_plugin_that_is_not_there(installed: Path) -> None:
    said = _called(installed, "sources", "-c", "plugin:litle_shop")
    assert said.returncode == 2
    assert "error: unknown plugin 'litle_shop': did you mean 'little_shop'?" in said.stderr
