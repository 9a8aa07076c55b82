"""The two ends of a command that people look at."""

from __future__ import annotations

import errno
import os

from rich.console import Console

from api.writing import answers, asides


class _Stdout(Console):
    """Rich ends the command where the reader leaves, as if something were wrong: how it ends is not for it to say."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def stderr() -> Console:
    """For everything that is not the answer."""
    return Console(stderr=True, file=asides(), highlight=False, markup=False, emoji=False)


def stdout() -> Console:
    """For text that is the answer: explanations and lists."""
    return _Stdout(file=answers(), highlight=False, markup=False, emoji=False, soft_wrap=True)


def colourful(console: Console) -> bool:
    """Whether to send colours: to a terminal that has them, unless `NO_COLOR` asks for none."""
    return console.is_terminal and not console.is_dumb_terminal and not os.environ.get("NO_COLOR")
