"""Where a query runs, as the command line says it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from api.exits import Mistake
from api.options import Format


class EngineName(StrEnum):
    local = "local"
    spark = "spark"
    auto = "auto"


WithEngine = Annotated[
    EngineName,
    typer.Option(
        help="Where the rows are joined: in this process, in cells on Spark, or there as soon as they are too much for "
        "this process. The answers are the same."
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="On Spark: keep there what is found. The same query over the same folder goes on where it was "
        "killed. Default: a folder that is gone when the query ends.",
        show_default=False,
    ),
]
Into = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="On Spark: the answers as Parquet files of a folder, each as soon as a part of them is found.",
        show_default=False,
    ),
]


def check_into(engine: EngineName, into: Path | None, output: Path | None, chosen: object) -> None:
    """There is one place for the answers."""
    if into is None:
        return
    if engine is not EngineName.spark:
        raise Mistake("--into goes with --engine spark; elsewhere --output FILE.parquet keeps the answers")
    if output is not None or chosen not in (None, Format.parquet):
        raise Mistake(
            "--into puts the answers into Parquet files of a folder: leave out --output and --format"
        )


def check_engine(engine: EngineName, checkpoint: Path | None, **only_local: object) -> None:
    """What goes with one engine only is a mistake with another; and so is Spark where it is not installed."""
    if engine is EngineName.local:
        if checkpoint is not None:
            raise Mistake(
                "--checkpoint goes with --engine spark or auto; in this process --store keeps what was found"
            )
        return
    for name, said in only_local.items():
        if said:
            raise Mistake(f"--{name} goes with --engine local: on Spark there is no such thing")
    if engine is EngineName.spark:
        from pipeline.packages import check_spark

        check_spark()


def starts_spark(engine: EngineName, checkpoint: Path | None) -> bool:
    """Whether that is to be waited for: a query that has ended is answered from its folder."""
    if engine is not EngineName.spark or checkpoint is None:
        return engine is EngineName.spark
    from pipeline.spread.engine import has_ended
    from pipeline.spread.folder import Folder

    return not has_ended(Folder(checkpoint))
