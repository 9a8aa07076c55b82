"""Whatever a site sends, it ends as a classified failure, soon, and in little memory."""

from __future__ import annotations

import pytest
from access_kit import answered, catalog, lookups
from hostile_kit import MEGABYTE, memory_growth, raw_site
from hostile_replies import REPLIES

from mediator.access import Access
from mediator.catalog.model import Source


def test_there_are_enough_of_them() -> None:
    assert len(REPLIES) >= 150


@pytest.mark.parametrize("name", REPLIES)
async def test_ends_as_a_classified_failure_in_little_memory(name: str) -> None:
    reply = REPLIES[name]
    # What does not end by itself is given little time; the others must not depend on how fast they go.
    source = Source("site", allow_private=True, attempts=1, deadline=0.5 if reply.slow else 60.0)
    async with raw_site(reply.script) as site, Access(catalog(source, base=site.base)) as access:
        with memory_growth() as growth:
            told = await answered(access, lookups(1))
    kind, _, message = told.cause.partition(": ")
    assert kind in reply.kinds, told.cause
    assert message.startswith("r.by_k at site: ")
    assert reply.says in message
    assert message.isprintable()
    assert len(message) < 400
    assert growth.bytes < 64 * MEGABYTE
