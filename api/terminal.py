"""The two ends of a command that people look at."""

from __future__ import annotations

import os
import sys
from functools import cache

from rich.console import Console


@cache
def _console(stream: object) -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """For everything that is not the answer."""
    return _console(sys.stderr)


def stdout() -> Console:
    """For text that is the answer: explanations and lists."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def colourful(console: Console) -> bool:
    """Whether to send colours: to a terminal that has them, unless `NO_COLOR` asks for none."""
    return console.is_terminal and not console.is_dumb_terminal and not os.environ.get("NO_COLOR")
