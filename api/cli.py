"""The command line: `mediator query`, `explain`, `serve`, `sources`, `demo`, `cache`, ...

What a command needs is loaded when it runs, so that `--help` is there at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api import caching, doctoring, harvesting, keyring, profiling, serving, tracing, wrapping
from api.engines import Checkpoint, EngineName, Into, WithEngine, check_engine, check_into, starts_spark
from api.exits import EXPLAINED, INTERNAL, INTERRUPTED, READER_LEFT, Mistake, complain, told, warn
from api.limits import MaxBytes, MaxCalls, MaxSeconds, age, limits, silence
from api.options import (
    CatalogPaths,
    Format,
    GoalName,
    PolicyName,
    StalledAfter,
    Variables,
    WithDemo,
    WithGoal,
    WithPartials,
    pairs,
)
from api.receiving import check_trace, format_for, landing_in, receiver_for, records_for
from api.steering import Boost, Pause, Prefer, steering, weighed

if TYPE_CHECKING:
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
app.add_typer(wrapping.app, name="wrapper")
app.add_typer(tracing.app, name="trace")
app.add_typer(keyring.app, name="keys")
app.command("serve")(serving.serve)
app.command("doctor")(doctoring.doctor)
app.command("harvest", epilog=EXPLAINED)(harvesting.harvest)
app.command("profile")(profiling.profile)

Statement = Annotated[
    str | None,
    typer.Argument(metavar="[SQL]", help="The query; `-` reads it from stdin.", show_default=False),
]
SqlFile = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the query from a file.")
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

OutputFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Default: by the ending of --output; else a table in a terminal, csv in a pipe or a file, ndjson there "
        "with --partials.",
    ),
]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file. Parquet needs one.")
]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="A folder where rows, and what was measured of the sites, outlive the run: what is fresh there is not "
        "asked again. What is found on Spark is kept by --checkpoint instead.",
    ),
]
MaxAge = Annotated[
    str | None,
    typer.Option(
        "--max-age", metavar="TIME", help="Ask again what is older than this: 90 (seconds), 15m, 2h, 3d."
    ),
]

TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Keep what was decided and why, and all that the policy was told: `mediator trace show | replay FILE`.",
    ),
]


@app.command(epilog=EXPLAINED)
def query(
    sql: Statement = None,
    file: SqlFile = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    format_: OutputFormat = None,
    output: OutputFile = None,
    parameter: ParameterValues = None,
    max_calls: MaxCalls = None,
    max_bytes: MaxBytes = None,
    max_seconds: MaxSeconds = None,
    policy: Annotated[
        PolicyName, typer.Option(help="Who decides where rows go next.")
    ] = PolicyName.foresight,
    goal: WithGoal = GoalName.all_rows,
    store: StoreFolder = None,
    max_age: MaxAge = None,
    prefer: Prefer = None,
    pause: Pause = None,
    boost: Boost = None,
    trace: TraceFile = None,
    partials: WithPartials = False,
    stalled_after: StalledAfter = None,
    engine: WithEngine = EngineName.local,
    checkpoint: Checkpoint = None,
    into: Into = None,
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
    with told(killable=True):
        from api.catalogs import to_ask
        from api.running import Question
        from api.verdict import exit_code

        check_into(engine, into, output, format_)
        chosen = format_for(format_, output, partials)
        check_trace(trace, output)
        check_engine(engine, checkpoint, trace=trace, partials=partials, prefer=prefer)
        question = Question(
            _statement(sql, file),
            pairs("--parameter", parameter),
            policy.value,
            age(max_age),
            {
                **limits(max_calls, max_bytes, max_seconds),
                **steering(prefer, pause, boost),
                "goal": goal.value,
            },
            trace=trace,
            partials=partials,
            stalled_after=silence(partials, stalled_after),
            engine=engine.value,
            checkpoint=checkpoint,
        )
        if into is not None:
            receiver = landing_in(into)
        else:
            receiver = records_for(chosen, output) if partials else receiver_for(chosen, output)
        with to_ask(catalog or [], pairs("--set", variable), demo) as asked, weighed(prefer):
            showing = _progress(wanted=progress and not quiet)
            if progress and not quiet and starts_spark(engine, checkpoint):
                showing.note("Spark is being started, which takes some seconds")
            outcome = _run(asked, question, receiver, showing, store)
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
    max_calls: MaxCalls = None,
    max_bytes: MaxBytes = None,
    max_seconds: MaxSeconds = None,
    goal: WithGoal = GoalName.all_rows,
    store: StoreFolder = None,
    max_age: MaxAge = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Run the query, and show how its rows are routed and why, not the rows."),
    ] = False,
    policy: Annotated[
        PolicyName | None, typer.Option(help="With --live: who decides where rows go next.")
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Where it would run: on Spark, also how it would be cut into cells.")
    ] = EngineName.local,
) -> None:
    """Say how a query would be answered and what it would cost, or why it cannot be and what would help.

    Nothing is asked, except with --live. With a store the estimate rests on what was measured and is held there.
    """
    with told(killable=True):
        if live and engine is not EngineName.local:
            raise Mistake("--live runs the query in this process: leave out --engine, or --live")
        if live:
            said = {**limits(max_calls, max_bytes, max_seconds), "max_age": age(max_age), "goal": goal.value}
            said |= {"policy": policy.value} if policy is not None else {}
            given, variables = pairs("--parameter", parameter), pairs("--set", variable)
            from api.catalogs import to_ask
            from api.watching import explain_live

            with to_ask(catalog or [], variables, demo) as asked:
                raise typer.Exit(explain_live(asked, _statement(sql, file), given, said, store))
        if policy is not None:
            raise Mistake("--policy says who decides when the query is run: it goes with --live")
        from api.catalogs import to_read
        from api.explaining import explained
        from api.terminal import stdout

        known = to_read(catalog or [], pairs("--set", variable), demo)
        said = {**limits(max_calls, max_bytes, max_seconds), "max_age": age(max_age), "goal": goal.value}
        said["engine"] = engine.value
        for line in explained(_statement(sql, file), known, pairs("--parameter", parameter), said, store):
            stdout().print(line, soft_wrap=True)


@app.command()
def sources(
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    store: StoreFolder = None,
) -> None:
    """List the relations, their fields, and the ways in: what each site must be given, its mirrors, who declares it.

    With a store also what was measured of each, and how many requests are left today. Without a catalog: the plugins
    that are installed, none of which is run for that.
    """
    with told(killable=True):
        from api.catalogs import nothing_is_named, to_read
        from api.listing import installed_plugins, listed
        from api.terminal import stdout

        if not demo and nothing_is_named(catalog or []):
            for line in installed_plugins():
                stdout().print(line)
            return
        for line in listed(to_read(catalog or [], pairs("--set", variable), demo), store):
            stdout().print(line, soft_wrap=True)


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
                demo, served, stdout(), receiver_for(Format.table, None), _progress(wanted=True, plain=False)
            )
            outcome = asyncio.run(told_to)
        raise typer.Exit(exit_code(outcome))


def main() -> None:
    """The whole command line, once it is loaded; `api.entry` is what loads it."""
    from api.writing import STDOUT, let_go

    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        # So Typer and Rich end, with 1, where somebody leaves who was to read the help.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(_meant(end.__context__, READER_LEFT))
        raise
    except OSError as error:
        # The help is written before any command runs.
        complain(f"{STDOUT}: {error.strerror or error}")
        sys.exit(_meant(error, INTERNAL))
    finally:
        let_go()


def _meant(error: OSError, otherwise: int) -> int:
    """What Typer was to end with, had it not met this when it told what is wrong with the options."""
    return int(getattr(error.__context__, "exit_code", otherwise))


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
    if sql != "-":
        return sql
    if sys.stdin is None:
        raise Mistake(
            "standard input is closed: write the query as an argument, or name a file with --file FILE"
        )
    return sys.stdin.read()


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

    if outcome.unwritten:
        complain(outcome.unwritten)
    if not outcome.forsaken and not (quiet and outcome.report.complete):
        print_report(stderr(), outcome)
    elif outcome.untraced:
        warn(outcome.untraced)
