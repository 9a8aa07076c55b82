"""Which secrets are missing before anything is asked. Looks at the environment and at files, and at no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mediator.binding.model import Verdict
from mediator.catalog.model import Catalog
from mediator.query.model import BlockStage, Query


def lacking(query: Query, verdicts: Mapping[str, Verdict], catalog: Catalog) -> list[str]:
    """`source shop needs the environment variable SHOP_KEY, which is not set`: of all sources that may be asked.

    It is told, and no reason to refuse the query: a mirror may do without, and so may rows that are stored already.
    """
    said: dict[str, None] = {}
    for name in dict.fromkeys(_sources(query, verdicts)):
        for secret in catalog.sources[name].secrets:
            if lack := secret.lack():
                said[f"source {name} needs {lack}"] = None
    return list(said)


def _sources(query: Query, verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    for stage in query.stages:
        if isinstance(stage, BlockStage) and not stage.block.never:
            for providers in verdicts[stage.name].providers:
                for provider in providers:
                    yield from (mirror.source for mirror in provider.method.mirrors)
