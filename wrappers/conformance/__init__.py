"""The conformance suite: what an access method promises, looked at over a live site, a cassette or the fixtures.

First the sites are asked (`gathering`, with `asking` and `samples`), politely and a known number of times. Then each
of `CHECKS` looks at what came: pure functions from `Evidence` to one of pass, fail, skip.

    findings = await findings_of(Asker(catalog, transport), catalog.relations.values())

For one line in a pytest file see `sources.conformance`.
"""

from wrappers.conformance.asking import MOST_REQUESTS, Asker
from wrappers.conformance.checks import CHECKS
from wrappers.conformance.examining import DECLARATION, examined, findings_of, invalid
from wrappers.conformance.finding import Check, Finding

__all__ = [
    "CHECKS",
    "DECLARATION",
    "MOST_REQUESTS",
    "Asker",
    "Check",
    "Finding",
    "examined",
    "findings_of",
    "invalid",
]
