"""`mediator wrapper schema`: the JSON Schema of a declaration, which editors complete and check with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.exits import Mistake, told


def add_to(app: typer.Typer) -> None:
    """Makes `schema` a command of this group."""
    app.command()(schema)


def schema(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file, anew if it is there."),
    ] = None,
) -> None:
    """Write the JSON Schema of a declaration, so that an editor completes and checks while one is written.

    Most editors take it from the first line of a file: `# yaml-language-server: $schema=FILE`.
    """
    with told():
        import json

        from api.terminal import stdout
        from sources.schema import json_schema

        text = json.dumps(json_schema(), indent=2, ensure_ascii=False)
        if output is None:
            stdout().out(text)
            return
        try:
            output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise Mistake(f"{output}: cannot be written: {error.strerror}") from None
