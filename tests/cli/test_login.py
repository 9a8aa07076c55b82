"""A secret that is missing is told before anything is asked, and keeps nobody from what can do without it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.kit import called

CATALOG = """\
sources:
  shop: {base: "http://127.0.0.1:%d", allow_private: true, attempts: 1, auth: {kind: key, query: k, key_env: SHOP_KEY}}
  library: {base: "http://127.0.0.1:%d", allow_private: true, attempts: 1, auth: {kind: bearer, token_file: %s}}
  archive: {base: "http://127.0.0.1:%d", allow_private: true, attempts: 1}
relations:
  offers:
    fields: {isbn: string}
    methods: {all: {mirrors: [shop, library], request: {path: /offers}, reply: {kind: json}}}
  books:
    fields: {isbn: string}
    methods: {all: {mirrors: [archive], request: {path: /books}, reply: {kind: json}}}
"""
OF_THE_SHOP = "warning: source shop needs the environment variable SHOP_KEY, which is not set"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    path = tmp_path / "catalog.yaml"
    path.write_text(CATALOG % (port, port, tmp_path / "token", port))
    return ["--catalog", str(path)]


def test_explain_names_what_is_missing(catalog: list[str], tmp_path: Path) -> None:
    result = called("explain", "SELECT * FROM offers", *catalog)
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    assert OF_THE_SHOP in said
    assert (
        f"warning: source library needs another token file: its token file {tmp_path}/token cannot be" in said
    )


def test_a_query_says_it_first_and_fails_those_lookups(catalog: list[str]) -> None:
    result = called("query", "SELECT * FROM offers", "--quiet", *catalog)
    assert result.exit_code == 3
    assert result.stderr.splitlines()[0] == OF_THE_SHOP
    assert "its key is missing: set the environment variable SHOP_KEY" in result.stderr or (
        "its token file" in result.stderr
    )


def test_nothing_is_said_of_sources_that_are_not_asked(catalog: list[str]) -> None:
    for command in ("explain", "query"):
        assert "SHOP_KEY" not in called(command, "SELECT * FROM books", *catalog).output


def test_nor_once_it_is_there(catalog: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "k3y-of-the-shop")
    (tmp_path / "token").write_text("t0ken-of-the-library")
    said = called("explain", "SELECT * FROM offers", *catalog).output
    assert "warning" not in said
    assert "k3y-of-the-shop" not in said


def test_a_query_of_sql_alone_needs_nobody(catalog: list[str]) -> None:
    result = called("query", "SELECT * FROM offers WHERE 1 = 2", *catalog)
    assert "warning" not in result.output


def test_sources_says_where_each_secret_is(catalog: list[str], tmp_path: Path) -> None:
    said = " ".join(called("sources", *catalog).output.split())
    assert "logs in with the key in the environment variable SHOP_KEY" in said
    assert f"logs in with the token in the file {tmp_path}/token" in said
