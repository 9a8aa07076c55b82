"""What can go wrong with a query on Spark, besides what can go wrong with any."""

from __future__ import annotations

from pipeline.errors import PipelineError


class SpreadError(PipelineError):
    """A query on Spark that cannot begin, or cannot go on."""
