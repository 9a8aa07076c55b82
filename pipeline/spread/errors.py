"""What can go wrong with a query on Spark, besides what can go wrong with any."""

from __future__ import annotations

import re

from pipeline.errors import PipelineError

# Exit codes of the process that drives: it cannot be done; it may go better another time.
MISTAKEN, BROKEN = 3, 4

# How Python names one in what Spark tells of a task.
_NAMED = re.compile(r"^(?:pipeline|mediator|sources|wrappers)\.[\w.]+: (.+)$", re.MULTILINE)


class SpreadError(PipelineError):
    """A query on Spark that cannot begin, or cannot go on."""


def told(error: Exception) -> Exception:
    """What a task raised on purpose, in place of Spark's report of it; else the error as it is."""
    found = _NAMED.findall(str(error))
    return SpreadError(found[-1].strip()) if found else error
