"""How a command ends: an exit code that means something, and on stderr one message that names the thing."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COMPLETE = 0
INTERNAL = 1
AT_FAULT = 2
PARTIAL = 3
INTERRUPTED = 130
READER_LEFT = 141

# Set, it adds the traceback to what is said about an internal error.
DEBUG = "MEDIATOR_DEBUG"

EXPLAINED = """\
Exit codes:
  0    complete
  3    partial: something failed, or a limit was reached
  2    the query, the catalog or the command line is at fault
  1    an internal error, or the machine's (a full disk)
  130  interrupted; what was found so far has been printed
  141  the reader of the output left early, as `head` does
"""


class Mistake(Exception):
    """Something that the user can put right: told as it is, exit code 2."""


class Unwritten(Exception):
    """Where it is to be written takes no more, as a disk that is full: told as it is, exit code 1."""


@contextmanager
def told(*, killable: bool = False) -> Iterator[None]:
    """Whatever goes wrong inside becomes a message and an exit code; a traceback is never shown unasked.

    `killable` says that Ctrl-C may end the process where it is: nothing is begun inside that would have to be ended, or
    not before it is `interrupting` that hears of it.
    """
    if not killable:
        _hear_interrupts()
    from mediator.errors import MediatorError
    from pipeline.packages import need_of

    try:
        yield
    except typer.Exit:
        raise
    except (MediatorError, Mistake) as error:
        complain(str(error))
        raise typer.Exit(AT_FAULT) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise typer.Exit(READER_LEFT) from None
    except (OSError, Unwritten) as error:
        complain(str(error))
        raise typer.Exit(INTERNAL) from None
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (missing := need_of(error.name or "")):
            complain(f"{missing.package} is needed for this, and is not installed: {missing.fix}")
            raise typer.Exit(AT_FAULT) from None
        _confess(error)
        raise typer.Exit(INTERNAL) from None


def _hear_interrupts() -> None:
    """Ctrl-C is an exception again, if it was none while the command line was loaded."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def complain(message: str) -> None:
    """`error: ...` on stderr, with the mark under a position in colour where there is any."""
    from rich.text import Text

    from api.cells import harmless
    from api.terminal import stderr

    console = stderr()
    first, *rest = message.split("\n")
    console.print(
        Text.assemble(("error: ", "bold red"), (harmless(first), "bold")), soft_wrap=not console.is_terminal
    )
    for number, line in enumerate(rest):
        marked = number + 1 < len(rest) and rest[number + 1].strip() == "^"
        if marked:
            for part in _pointed(line, rest[number + 1].index("^"), console):
                console.print(part, soft_wrap=True)
        elif line.strip() != "^":
            console.print(Text(harmless(line)), soft_wrap=not console.is_terminal)


def warn(message: str) -> None:
    """`warning: ...` on stderr: what is wrong, but ends nothing."""
    from rich.text import Text

    from api.cells import harmless
    from api.terminal import stderr

    console = stderr()
    said = Text.assemble(("warning: ", "bold yellow"), harmless(" ".join(message.splitlines())))
    console.print(said, soft_wrap=not console.is_terminal)


def _pointed(line: str, at: int, console: Console) -> tuple[Text, Text]:
    """A line of the statement and the mark below it; in a terminal, as much of the line as has room."""
    from rich.cells import cell_len
    from rich.text import Text

    from api.cells import harmless

    line = line.replace("\t", " ")
    if console.is_terminal and cell_len(line) >= console.width:
        start = max(0, at - console.width // 2)
        line, at = line[start : start + console.width - 1], at - start
    before = cell_len(harmless(line[:at]))
    return Text(harmless(line)), Text(" " * before + "^", "bold red")


def _confess(error: Exception) -> None:
    from api.terminal import stderr

    complain(f"internal error: {type(error).__name__}: {error}")
    if os.environ.get(DEBUG):
        stderr().out("".join(traceback.format_exception(error)), end="")
    else:
        stderr().out(f"This is a fault of the mediator, not of the query. {DEBUG}=1 shows the traceback.")
