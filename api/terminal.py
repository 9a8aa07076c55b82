"""The two ends of a command that people look at."""

from __future__ import annotations

import os

from rich.console import Console


def stderr() -> Console:
    """For everything that is not the answer."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def stdout() -> Console:
    """For text that is the answer: explanations and lists."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def colourful(console: Console) -> bool:
    """Whether to send colours: to a terminal that has them, unless `NO_COLOR` asks for none."""
    return console.is_terminal and not console.is_dumb_terminal and not os.environ.get("NO_COLOR")
