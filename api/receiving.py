"""Where the answers of a command go, and in which format, by what its options say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from api.exits import Mistake
from api.options import SUFFIXES, Format

if TYPE_CHECKING:
    from api.formats import Encoder
    from api.output import Receiver


def check_trace(trace: Path | None, output: Path | None) -> None:
    """A trace has a file of its own."""
    if trace is None:
        return
    if str(trace) == "-":
        raise Mistake(
            "--trace -: a trace is written to a file, since the answers go to standard output: name one"
        )
    if output is not None and _one_file(trace, output):
        raise Mistake(f"--trace {trace}: the answers are written there (--output): name another file")


def _one_file(one: Path, other: Path) -> bool:
    """Whatever they are called. What is no file, such as /dev/null, takes all that comes."""
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)
    return one.resolve() == other.resolve()


def format_for(chosen: Format | None, output: Path | None, partials: bool = False) -> Format:
    """What was chosen, or what goes with where it is written, and with partial answers."""
    if output is None and sys.stdout is None:
        raise Mistake("standard output is closed: name a file with --output FILE")
    if chosen is None and output is not None:
        chosen = SUFFIXES.get(output.suffix.lower())
    if chosen is None:
        lines = Format.ndjson if partials else Format.csv
        chosen = Format.table if output is None and sys.stdout.isatty() else lines
    if chosen is Format.parquet and output is None:
        raise Mistake("parquet can be read only when it is whole: write it to a file with --output FILE")
    if chosen is Format.arrow and output is None and sys.stdout.isatty():
        raise Mistake("arrow is not for terminals: write it to a file with --output FILE, or into a pipe")
    return chosen


def records_for(chosen: Format, output: Path | None) -> Receiver:
    """For answers and partial answers."""
    from api.partials import Records, check_format, record_encoder
    from api.terminal import colourful, stdout

    check_format(chosen)
    console = stdout()
    width = console.width if output is None and console.is_terminal else None
    colour = output is None and colourful(console)
    return Records(lambda schema: record_encoder(chosen, schema, width, colour), output)


def landing_in(folder: Path) -> Receiver:
    """For answers that are put into files where they are found."""
    from api.output import Parts

    return Parts(folder)


def receiver_for(chosen: Format, output: Path | None) -> Receiver:
    import pyarrow as pa

    from api.formats import encoder
    from api.output import Document
    from api.terminal import colourful, stdout

    console = stdout()
    width = console.width if output is None and console.is_terminal else None

    def make(schema: pa.Schema) -> Encoder:
        return encoder(chosen, schema, width=width, colour=output is None and colourful(console))

    return Document(make, output)
