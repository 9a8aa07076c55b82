"""What can be chosen on the command line, apart from the engine, so that `--help` need not load it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from api.exits import Mistake


class Format(StrEnum):
    table = "table"
    csv = "csv"
    ndjson = "ndjson"
    json = "json"
    parquet = "parquet"
    arrow = "arrow"


class PolicyName(StrEnum):
    """The engine's policies; a test holds the two lists together."""

    foresight = "foresight"
    rank = "rank"
    benefit = "benefit"
    windowed = "windowed"
    lottery = "lottery"
    naive = "naive"
    random = "random"
    fixed = "fixed"


class GoalName(StrEnum):
    """The engine's goals; a test holds the two lists together."""

    first_rows = "first_rows"
    all_rows = "all_rows"
    fewest_calls = "fewest_calls"


SUFFIXES = {
    ".txt": Format.table,
    ".csv": Format.csv,
    ".ndjson": Format.ndjson,
    ".jsonl": Format.ndjson,
    ".json": Format.json,
    ".parquet": Format.parquet,
    ".arrow": Format.arrow,
    ".arrows": Format.arrow,
}

CatalogPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        "-c",
        metavar="PATH",
        help="A file that declares sources and relations (YAML or Python), a folder of them, plugin:NAME for one that "
        "is installed, or plugins for all of those; may be repeated. Default: what MEDIATOR_CATALOG names.",
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="The value of ${NAME} in the catalog's files."),
]
WithGoal = Annotated[
    GoalName,
    typer.Option(
        "--goal", help="What matters more: the first rows early, all rows early, or few calls to the sites."
    ),
]
WithPartials = Annotated[
    bool,
    typer.Option(
        "--partials",
        help="While a source is silent also give answers without its columns, each with an id, and say later which "
        "answers complete it or that none does. For ndjson and table.",
    ),
]
StalledAfter = Annotated[
    str | None,
    typer.Option(
        "--stalled-after",
        metavar="TIME",
        help="With --partials: how long a source is silent until it is done without: 0.5 (seconds), 2m. Default: as "
        "long as its requests mostly take.",
    ),
]
WithDemo = Annotated[
    bool, typer.Option("--demo", help="Ask a scripted web, served for this run, instead of a catalog.")
]


def pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """What options such as `--set NAME=VALUE` say."""
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Mistake(f"{option} {text}: expected NAME=VALUE")
        found[name] = value
    return found
