"""The command line: `mediator query`, `explain`, `sources`, `demo`, `cache`.

What a command needs is loaded when it runs, so that `--help` is there at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api import caching
from api.exits import EXPLAINED, INTERRUPTED, Mistake, told
from api.options import SUFFIXES, Format, PolicyName

if TYPE_CHECKING:
    from api.formats import Encoder
    from api.output import Receiver
    from api.progress import Progress
    from api.running import Outcome, Question
    from mediator.catalog.model import Catalog

app = typer.Typer(
    name="mediator",
    help="Asks many web sites with one SQL query, and streams each answer the moment it exists.",
    epilog=EXPLAINED,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(caching.app, name="cache")

Statement = Annotated[
    str | None,
    typer.Argument(metavar="[SQL]", help="The query; `-` reads it from stdin.", show_default=False),
]
SqlFile = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the query from a file.")
]
CatalogPaths = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        "-c",
        metavar="PATH",
        help="A YAML file that declares sources and relations, or a folder of them; may be repeated. "
        "Default: what MEDIATOR_CATALOG names.",
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="The value of ${NAME} in the catalog's files."),
]
WithDemo = Annotated[
    bool, typer.Option("--demo", help="Ask a scripted web, served for this run, instead of a catalog.")
]
ParameterValues = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="The value of $NAME in the query. It is a quoted literal there, never SQL; "
        "where a number must be a number, cast it: $n::int.",
    ),
]


@app.command(epilog=EXPLAINED)
def query(
    sql: Statement = None,
    file: SqlFile = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Default: by the ending of --output; else a table in a terminal, csv in a pipe or a file.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file. Parquet needs one."),
    ] = None,
    parameter: ParameterValues = None,
    limit_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Stop after so long, with what was found so far; the answer is then partial."
        ),
    ] = None,
    policy: Annotated[PolicyName, typer.Option(help="Who decides where rows go next.")] = PolicyName.rank,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A folder where rows outlive the run: what is fresh there is not asked again."
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Ask again what is older than this: 90 (seconds), 15m, 2h, 3d."),
    ] = None,
    progress: Annotated[
        bool, typer.Option("--progress/--no-progress", help="A line per source on stderr.")
    ] = True,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="No progress, and a report only if the answer is partial."),
    ] = False,
) -> None:
    """Answer a query: rows on stdout as they are found, progress and the completeness report on stderr.

    Ctrl-C ends the run with what was found so far; a second one ends it at once.
    """
    with told():
        from api.catalogs import to_ask
        from api.durations import seconds_of
        from api.running import Question
        from api.verdict import exit_code

        chosen = _format(format_, output)
        question = Question(
            _statement(sql, file),
            _pairs("--parameter", parameter),
            policy.value,
            limit_seconds,
            float("inf") if max_age is None else seconds_of("--max-age", max_age),
        )
        receiver = _receiver(chosen, output)
        with to_ask(catalog or [], _pairs("--set", variable), demo) as asked:
            outcome = _run(asked, question, receiver, _progress(wanted=progress and not quiet), store)
        _report(outcome, quiet)
        raise typer.Exit(exit_code(outcome))


@app.command(epilog=EXPLAINED)
def explain(
    sql: Statement = None,
    file: SqlFile = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    parameter: ParameterValues = None,
) -> None:
    """Say how a query would be answered, or why it cannot be and what would help. Nothing is asked."""
    with told():
        from api.catalogs import to_read
        from api.explaining import explained
        from api.terminal import stdout

        known = to_read(catalog or [], _pairs("--set", variable), demo)
        for line in explained(_statement(sql, file), known, _pairs("--parameter", parameter)):
            stdout().print(line)


@app.command()
def sources(catalog: CatalogPaths = None, variable: Variables = None, demo: WithDemo = False) -> None:
    """List the relations, their fields, and the ways in: what each site must be given, and its mirrors."""
    with told():
        from api.catalogs import to_read
        from api.listing import listed
        from api.terminal import stdout

        for line in listed(to_read(catalog or [], _pairs("--set", variable), demo)):
            stdout().print(line)


@app.command("demo")
def demonstrate() -> None:
    """Answer a query over a scripted web with a slow mirror, a flaky source and a stall."""
    with told():
        import asyncio

        from api.demo import found_demo
        from api.telling import tell
        from api.terminal import stdout
        from api.verdict import exit_code

        demo = found_demo()
        with demo.serve() as served:
            told_to = tell(
                demo, served, stdout(), _receiver(Format.table, None), _progress(wanted=True, plain=False)
            )
            outcome = asyncio.run(told_to)
        raise typer.Exit(exit_code(outcome))


def main() -> None:
    """The entry point `mediator`."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _statement(sql: str | None, file: Path | None) -> str:
    if (sql is None) == (file is None):
        raise Mistake("one query, please: as an argument, as `-` to read it from stdin, or with --file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Mistake(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from None
        except OSError as error:
            raise Mistake(f"{file}: cannot be read: {error.strerror}") from None
    assert sql is not None
    return sys.stdin.read() if sql == "-" else sql


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Mistake(f"{option} {text}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _format(chosen: Format | None, output: Path | None) -> Format:
    """What was chosen, or what goes with where it is written."""
    if chosen is None and output is not None:
        chosen = SUFFIXES.get(output.suffix.lower())
    if chosen is None:
        chosen = Format.table if output is None and sys.stdout.isatty() else Format.csv
    if chosen is Format.parquet and output is None:
        raise Mistake("parquet can be read only when it is whole: write it to a file with --output FILE")
    if chosen is Format.arrow and output is None and sys.stdout.isatty():
        raise Mistake("arrow is not for terminals: write it to a file with --output FILE, or into a pipe")
    return chosen


def _receiver(chosen: Format, output: Path | None) -> Receiver:
    import pyarrow as pa

    from api.formats import encoder
    from api.output import Document
    from api.terminal import colourful, stdout

    console = stdout()
    width = console.width if output is None and console.is_terminal else None

    def make(schema: pa.Schema) -> Encoder:
        return encoder(chosen, schema, width=width, colour=output is None and colourful(console))

    return Document(make, output)


def _progress(*, wanted: bool, plain: bool = True) -> Progress:
    from api.progress import Silent, progress_for
    from api.terminal import stderr

    console = stderr()
    return (
        progress_for(console, wanted=True) if wanted and (plain or console.is_terminal) else Silent(console)
    )


def _run(
    catalog: Catalog, question: Question, receiver: Receiver, progress: Progress, store: Path | None
) -> Outcome:
    import asyncio

    from api.running import run
    from mediator.answering import Mediator

    async def ask() -> Outcome:
        async with Mediator(catalog, devoted=True, store=store) as mediator:
            return await run(mediator, question, receiver, progress)

    return asyncio.run(ask())


def _report(outcome: Outcome, quiet: bool) -> None:
    from api.terminal import stderr
    from api.verdict import print_report

    if not outcome.forsaken and not (quiet and outcome.report.complete):
        print_report(stderr(), outcome)
