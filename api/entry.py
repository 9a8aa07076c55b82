"""Where the command `mediator` begins: nothing that takes time is loaded yet."""

from __future__ import annotations

import signal


def main() -> None:
    # While all that is loaded, Ctrl-C ends the process as `kill` does: nothing has been asked that could be answered,
    # and an exception in the middle of an import is a traceback at best, and swallowed by who imports at worst.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from api.cli import main as command_line

    command_line()
