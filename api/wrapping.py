"""`mediator wrapper`: what the author of a wrapper does with it: drafts, checks, records, replays, tries it."""

from __future__ import annotations

import typer

from api import checking, drafting, replaying, schema, trying

app = typer.Typer(
    name="wrapper",
    help="For authors of wrappers: draft one, check it, record and replay a site, try a lookup.",
    no_args_is_help=True,
)
drafting.add_to(app)
trying.add_to(app)
checking.add_to(app)
replaying.add_to(app)
schema.add_to(app)
