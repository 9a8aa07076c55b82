"""The suite passes an honest site, and finds every planted fault by name, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from mediator.access import HttpTransport
from mediator.errors import CatalogError
from tests.conformance.faults import FAULTS, Fault, catalog
from tests.conformance.shop import SECRET, Shop, served
from wrappers.conformance import CHECKS, Asker, Finding, findings_of, invalid

HONEST = Fault("", "")


async def _findings(fault: Fault, folder: Path) -> list[Finding]:
    async with served(Shop(fault.name)) as address:
        try:
            found = catalog(fault, folder, address)
        except CatalogError as error:
            return [invalid(error)]
        async with HttpTransport(found.sources) as transport:
            return await findings_of(Asker(found, transport, pause=0.0), found.relations.values())


async def test_an_honest_site_passes_everything(tmp_path: Path) -> None:
    findings = await _findings(HONEST, tmp_path)
    assert [f.told() for f in findings if f.outcome == "fail"] == []
    assert [(f.place, f.check, f.why) for f in findings if f.outcome == "skip"] == []
    passed = {f.check for f in findings if f.outcome == "pass"}
    assert {c.name for c in CHECKS} - passed == {"order-kept", "at-most-holds", "no-secret-told", "recorded"}


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
async def test_a_fault_is_found_by_name(fault: Fault, tmp_path: Path) -> None:
    failing = [f for f in await _findings(fault, tmp_path) if f.outcome == "fail"]
    told = "\n".join(f.told() for f in failing)
    assert {f.check for f in failing} == {fault.found_by, *fault.follows}, told
    assert all(f.remedy for f in failing), told
    assert SECRET not in told


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 20
    assert len({f.name for f in FAULTS}) == len(FAULTS)
    # Requests that are not on a cassette are looked at in test_suite.py.
    assert {check.name for check in CHECKS} - {f.found_by for f in FAULTS} == {"recorded"}
