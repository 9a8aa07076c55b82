"""The conformance suite as one line in the author's own pytest file.

    from sources.conformance import suite

    test_my_site = suite("my_site.yaml", cassette="my_site.cassette")

pytest is needed here and nowhere else, so it is loaded when it is asked for.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from mediator.access import HttpTransport
from mediator.access.databases.database import DatabaseTransport
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources.loading import load
from wrappers.cassettes import Cassette, Replaying, offline
from wrappers.conformance import CHECKS, DECLARATION, MOST_REQUESTS, Asker, Finding, findings_of, invalid

Case = tuple[str, str, str]  # relation, method, check


def suite(
    path: Path | str,
    *,
    cassette: Path | str | None = None,
    variables: Mapping[str, str] | None = None,
    most_requests: int = MOST_REQUESTS,
    waive: Mapping[str, str] | None = None,
) -> Callable[[Case], None]:
    """A test function with a case for every check of every access method: it passes, fails or is skipped, with reasons.

    Paths are relative to the file that calls this. Without a cassette the site itself is asked, once for all cases.
    `waive` are checks that may fail, by their names, and why: such a case is an expected failure.
    """
    import pytest

    home = Path(sys._getframe(1).f_globals.get("__file__", ".")).parent
    run = _Run(
        home / path, None if cassette is None else home / cassette, dict(variables or {}), most_requests
    )
    waived = _known(dict(waive or {}))

    @pytest.mark.parametrize(
        "case", run.cases, ids=[".".join(filter(None, c[:2])) + f"-{c[2]}" for c in run.cases]
    )
    def test_conformance(case: Case) -> None:
        finding = run.findings[case]
        if finding.outcome == "fail":
            if case[2] in waived:
                pytest.xfail(f"{waived[case[2]]}: {finding.why}")
            pytest.fail(finding.told(), pytrace=False)
        if finding.outcome == "does not apply":
            pytest.skip(f"does not apply: {finding.why}")
        if finding.outcome == "skip":
            pytest.skip(f"{finding.why}: {finding.remedy}" if finding.remedy else finding.why)

    return test_conformance


class _Run:
    """The suite over one declaration, run when the first case wants to know."""

    def __init__(
        self, path: Path, cassette: Path | None, variables: Mapping[str, str], most_requests: int
    ) -> None:
        self._cassette = cassette
        self._most_requests = most_requests
        try:
            self._catalog: Catalog | CatalogError = load(path, variables)
        except CatalogError as error:
            self._catalog = error

    @cached_property
    def cases(self) -> list[Case]:
        if isinstance(self._catalog, CatalogError):
            return [("", "", DECLARATION.name)]
        return [
            (relation.name, method.name, check.name)
            for relation in self._catalog.relations.values()
            for method in relation.methods
            if method.wrapper is not None
            for check in CHECKS
        ]

    @cached_property
    def findings(self) -> dict[Case, Finding]:
        if isinstance(self._catalog, CatalogError):
            return {self.cases[0]: invalid(self._catalog)}
        found = asyncio.run(self._asked(self._catalog))
        return {(f.relation, f.method, f.check): f for f in found}

    async def _asked(self, catalog: Catalog) -> list[Finding]:
        if self._cassette is not None:
            player = Replaying(Cassette.read(self._cassette))
            asker = Asker(offline(catalog), player, self._most_requests)
            return await findings_of(asker, asker.catalog.relations.values())
        async with (
            HttpTransport(catalog.sources) as web,
            DatabaseTransport(catalog.sources, web, web.redaction) as transport,
        ):
            asker = Asker(catalog, transport, self._most_requests, redaction=web.redaction)
            return await findings_of(asker, catalog.relations.values())


def _known(waived: dict[str, str]) -> dict[str, str]:
    names = [check.name for check in CHECKS]
    for name in waived:
        if name not in names:
            raise ValueError(f"there is no check {name!r} to waive: there are {', '.join(names)}")
    return waived
