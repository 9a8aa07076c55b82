"""The one line in an author's pytest file, run by a pytest of its own."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

from mediator.access import HttpTransport
from tests.conformance.faults import DECLARATION, Fault, catalog
from tests.conformance.shop import Shop, served
from wrappers.cassettes import Recording
from wrappers.conformance import CHECKS, Asker, findings_of

_LINE = """\
from sources.conformance import suite

test_shop = suite("shop.yaml", cassette="shop.cassette", variables={"shop": "http://shop.example"}%s)
"""
_ROOT = Path(__file__).parent.parent.parent


def _recorded(folder: Path, fault: str = "") -> None:
    """A declaration, a cassette of the suite's own requests, and the author's test file beside them."""

    async def record() -> None:
        async with served(Shop(fault)) as address:
            found = catalog(Fault(fault, ""), folder, address)
            async with HttpTransport(found.sources) as transport:
                recording = Recording(transport)
                await findings_of(Asker(found, recording, pause=0.0), found.relations.values())
        recording.cassette.write(folder / "shop.cassette")

    asyncio.run(record())


def _pytest(folder: Path, more: str = "", *options: str) -> tuple[int, str]:
    (folder / "test_shop.py").write_text(_LINE % more)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *options, "test_shop.py"],
        cwd=folder,
        env={"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_good_site_passes(tmp_path: Path) -> None:
    _recorded(tmp_path)
    code, said = _pytest(tmp_path)
    assert code == 0, said
    assert "PASSED test_shop.py::test_shop[items.by_sku-batch-is-union]" in said
    assert "failed" not in said
    passed, skipped = (said.count(f"\n{word} ") for word in ("PASSED", "SKIPPED"))
    assert passed > 6 * len(CHECKS) // 2
    assert skipped == said.count("does not apply: ")


def test_a_bad_site_fails_by_name(tmp_path: Path) -> None:
    _recorded(tmp_path, "one of a batch is dropped")
    code, said = _pytest(tmp_path)
    assert code == 1
    assert "FAILED test_shop.py::test_shop[items.by_sku-batch-is-union]" in said
    assert "1 failed" in said
    assert "items.by_sku: batch-is-union: 3 bindings together do not bring what they bring one by one" in said
    assert "to do:    look at join" in said
    assert "Traceback" not in said


def test_what_is_waived_may_fail(tmp_path: Path) -> None:
    _recorded(tmp_path, "one of a batch is dropped")
    code, said = _pytest(tmp_path, ', waive={"batch-is-union": "they know, ticket 17"}')
    assert code == 0
    assert "1 xfailed" in said
    assert "they know, ticket 17" in said


def test_a_waiver_of_nothing_is_an_error(tmp_path: Path) -> None:
    _recorded(tmp_path)
    code, said = _pytest(tmp_path, ', waive={"batch-is-onion": "?"}')
    assert code == 2
    assert "there is no check 'batch-is-onion' to waive" in said


def test_requests_that_are_not_recorded_are_told_as_that(tmp_path: Path) -> None:
    _recorded(tmp_path)
    file = tmp_path / "shop.yaml"
    file.write_text(
        file.read_text().replace(
            'request: {path: /find, query: {sku: "{sku}"}}', 'request: {path: /find, query: {q: "{sku}"}}'
        )
    )
    code, said = _pytest(tmp_path)
    assert code == 1
    assert "FAILED test_shop.py::test_shop[items.by_sku-recorded]" in said
    assert "there is no parameter 'q'" in said
    assert "1 failed" in said


def test_a_declaration_that_means_nothing_is_one_failure(tmp_path: Path) -> None:
    _recorded(tmp_path)
    file = tmp_path / "shop.yaml"
    file.write_text(file.read_text().replace("required: [kind]", "required: [kin]"))
    code, said = _pytest(tmp_path)
    assert code == 1
    assert "FAILED test_shop.py::test_shop[-declaration-valid]" in said or "declaration-valid" in said
    assert "did you mean 'kind'?" in said


def test_a_missing_cassette_is_an_error(tmp_path: Path) -> None:
    shutil.copy(DECLARATION, tmp_path / "shop.yaml")
    code, said = _pytest(tmp_path, "", "-k", "site-answers")
    assert code == 1
    assert "shop.cassette: cannot be read" in said


def test_the_suite_needs_no_pytest_until_it_is_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, sources.conformance; print('pytest' in sys.modules)"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert done.stdout.strip() == "False"
