"""What can go wrong with a query on Spark, besides what can go wrong with any."""

from __future__ import annotations

import re

from pipeline.errors import PipelineError

# Exit codes of the process that drives: it cannot be done; it may go better another time.
MISTAKEN, BROKEN = 3, 4

# How Python names one in what Spark tells of a task; and what it says of a machine that is not as it should be.
_NAMED = re.compile(r"^(?:pipeline|mediator|sources|wrappers)\.[\w.]+: (.+)$", re.MULTILINE)
_MISSING = re.compile(r"^ModuleNotFoundError: (No module named .+)$", re.MULTILINE)
_CLOSED = re.compile(r"^(?:OSError|PermissionError): \[Errno (?:1|13|30)\] .+: '(.+)'$", re.MULTILINE)
_CLOSED_TO_JAVA = re.compile(
    r"Exception: (?:mkdir of |Mkdirs failed to create )?(?:file:)?(/\S*)"
    r"(?: failed| \(exists=| \(Permission denied| \(Read-only file system)"
)
_NO_PYTHON = re.compile(r'Cannot run program "(.+?)".*?: error=\d+, (.+)')


class SpreadError(PipelineError):
    """A query on Spark that cannot begin, or cannot go on."""


def told(error: Exception) -> Exception:
    """What a task raised on purpose, or lacked where it ran, in place of Spark's report; else the error as it is."""
    said = str(error)
    if found := _NAMED.findall(said):
        return SpreadError(found[-1].strip())
    if found := _MISSING.findall(said):
        return SpreadError(
            f"an executor lacks what the driver has: {found[-1]}. Every executor needs the same packages and plugins"
        )
    if found := _CLOSED.findall(said) or _CLOSED_TO_JAVA.findall(said):
        return SpreadError(
            f"{found[-1]}: an executor cannot write there. The checkpoint must be a folder in which the driver and "
            "every executor may write"
        )
    if found := _NO_PYTHON.findall(said):
        program, why = found[-1]
        return SpreadError(
            f"Python cannot be started: {program}: {why}. What spark.pyspark.python names must be there on the driver "
            "and on every executor"
        )
    return error
