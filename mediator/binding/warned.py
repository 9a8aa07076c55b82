"""What is said of a query before anything is asked, and is no reason to refuse it."""

from __future__ import annotations

from collections.abc import Mapping

from mediator.binding.lacking import lacking
from mediator.binding.model import Verdict
from mediator.catalog.model import Catalog
from mediator.query.model import BlockStage, Query


def warned(query: Query, verdicts: Mapping[str, Verdict], catalog: Catalog) -> list[str]:
    """Secrets that are missing, and joins that are hardly meant."""
    mixed = [text for stage in query.stages if isinstance(stage, BlockStage) for text in stage.block.mixed]
    return [*lacking(query, verdicts, catalog), *dict.fromkeys(mixed)]
