"""`mediator keys`: a key is made and shown once, listed, removed; what is wrong is told in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from api.http.keys import SCOPES, Keyring, Quota, read
from api.keyring import ScopeName, app
from mediator.clock import wall


def called(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def done(*arguments: str) -> str:
    result = called(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str) -> str:
    result = called(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "keys.yaml")


def test_the_key_alone_is_on_stdout(file: str) -> None:
    result = called("add", "alice", "--keys", file)
    token = result.stdout.strip()
    assert result.stdout == f"{token}\n"
    assert token not in result.stderr
    assert "cannot be shown again" in result.stderr
    found = Keyring.load(Path(file)).find(token)
    assert found is not None
    assert found.name == "alice"
    assert found.scopes == {"query", "read"}
    assert found.quota == Quota()
    assert found.expires is None


def test_scopes_quotas_and_an_end(file: str) -> None:
    options = "--scope metrics --scope read --concurrent 4 --per-minute 60 --max-calls 100 --max-seconds 15m"
    more = "--max-rows 1000 --max-bytes 10MB --expires 90d"
    before = wall()
    done("add", "ops", "--keys", file, *options.split(), *more.split())
    key = read(Path(file))["ops"]
    assert key.scopes == {"metrics", "read"}
    assert key.quota == Quota(4, 60, 100, 900.0, 1000, 10_000_000)
    assert key.expires is not None
    assert before - 1 <= key.expires - 90 * 86_400 <= wall() + 1


def test_list_has_a_line_for_each_key_and_no_secret(file: str) -> None:
    tokens = [
        done("add", "alice", "--keys", file, "--expires", "90d", "--max-bytes", "10MB").strip(),
        done("add", "bob", "--keys", file, "--scope", "metrics", "--per-minute", "5").strip(),
    ]
    said = done("list", "--keys", file)
    assert said.splitlines() == [
        "alice: query, read; bytes 10,000,000; expires in 90 days",
        "bob: metrics; per minute 5; does not expire",
    ]
    for token in tokens:
        assert token not in said
    assert all(key.digest not in said for key in read(Path(file)).values())


def test_a_key_that_has_expired_is_listed_as_such(file: str) -> None:
    done("add", "alice", "--keys", file)
    path = Path(file)
    path.write_text(path.read_text() + "    expires: 1970-01-01T00:00:00Z\n")
    assert "; expired " in done("list", "--keys", file)


def test_what_is_removed_is_gone(file: str) -> None:
    done("add", "alice", "--keys", file)
    assert done("remove", "alice", "--keys", file) == f"alice removed from {file}\n"
    assert done("list", "--keys", file) == "there are no keys\n"
    assert "has no key 'alice'; it has none" in refused("remove", "alice", "--keys", file)


def test_mistakes_are_told_in_one_sentence(file: str) -> None:
    assert "there is no such file: `mediator keys add NAME --keys" in refused("list", "--keys", file)
    assert "is no name for a key" in refused("add", "a b", "--keys", file)
    assert "--expires soon: expected a length of time" in refused(
        "add", "a", "--keys", file, "--expires", "soon"
    )
    assert "--expires: expected more than nothing" in refused("add", "a", "--keys", file, "--expires", "0")
    assert "cannot be written as a date" in refused("add", "a", "--keys", file, "--expires", "9999999999d")
    assert "--max-bytes lots: expected a number of bytes" in refused(
        "add", "a", "--keys", file, "--max-bytes", "lots"
    )
    assert "--max-seconds: expected more than nothing" in refused(
        "add", "a", "--keys", file, "--max-seconds", "0"
    )
    assert "--concurrent" in refused("add", "a", "--keys", file, "--concurrent", "0")
    assert "--scope" in refused("add", "a", "--keys", file, "--scope", "write")
    assert not Path(file).exists()
    done("add", "a", "--keys", file)
    assert "has a key 'a' already" in refused("add", "a", "--keys", file)


def test_the_command_line_knows_the_scopes_of_the_server() -> None:
    assert tuple(ScopeName) == SCOPES
