"""What can go wrong with a query on Spark, besides what can go wrong with any."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from pipeline.errors import PipelineError

# Exit codes of the process that drives: it cannot be done; it may go better another time; a disk is full; Spark did not
# start, which may go better, too.
MISTAKEN, BROKEN, FULL, STUCK = 3, 4, 5, 6

# How Python names one in what Spark tells of a task; and what it says of a machine that is not as it should be.
_NAMED = re.compile(r"^(?:pipeline|mediator|sources|wrappers)\.[\w.]+: (.+)$", re.MULTILINE)
_MISSING = re.compile(r"^ModuleNotFoundError: (No module named .+)$", re.MULTILINE)
_CLOSED = re.compile(r"^(?:OSError|PermissionError): \[Errno (?:1|13|30)\] .+: '(.+)'$", re.MULTILINE)
_CLOSED_TO_JAVA = re.compile(
    r"Exception: (?:mkdir of |Mkdirs failed to create )?(?:file:)?(/\S*)"
    r"(?: failed| \(exists=| \(Permission denied| \(Read-only file system)"
)
_NO_PYTHON = re.compile(r'Cannot run program "(.+?)".*?: error=\d+, (.+)')
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|\[[Ee]rrno (?:28|122)\]")
# Around what went wrong: Spark's own, and what Python says of where it was.
_AROUND = re.compile(r"\[STREAM_FAILED\] .*? terminated with exception: ", re.DOTALL)
_WAY = "Traceback (most recent call last):"
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:: .+)?)$", re.MULTILINE)
_SHORT = 500  # characters


class SpreadError(PipelineError):
    """A query on Spark that cannot begin, or cannot go on."""


class NoRoom(OSError):
    """A disk is full: the machine's fault, and nothing that another try would mend."""


def no_room(folder: Path) -> NoRoom:
    """`folder` is the spread's; Spark has another, for what it keeps meanwhile."""
    there = [path for path in (folder, Path(tempfile.gettempdir())) if path.exists()]
    full = min(there, key=lambda path: shutil.disk_usage(path).free, default=folder)
    return NoRoom(f"{full}: No space left on device. Make room there, or name a folder elsewhere")


def told(error: Exception, folder: Path) -> Exception:
    """What a task raised on purpose, or lacked where it ran, in place of Spark's report; else the error as it is.
    To be asked while the session is there, which knows what Java said."""
    said = text_of(error)
    if not isinstance(error, NoRoom) and _NO_ROOM.search(said):
        return no_room(folder)
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


def in_short(error: Exception) -> str:
    """What went wrong in one line, without the way it took through Python and Java."""
    said = text_of(error).partition("JVM stacktrace:")[0]
    if not said or isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return f"Spark's Java is gone ({type(error).__name__})"
    _, _, python = said.rpartition(_WAY)
    if _WAY in said and (raised := _RAISED.search(python)):
        return raised[1][:_SHORT]
    first = next((line.strip() for line in _AROUND.sub("", said).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:_SHORT]


def text_of(error: Exception) -> str:
    """Nothing where the Java is gone that knows what to say."""
    try:
        return str(error)
    except Exception:
        return ""
