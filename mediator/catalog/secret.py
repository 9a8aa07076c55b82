"""Where a secret is to be found. The secret itself is no part of a declaration, a message or a report."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from mediator.errors import Refused

_LONGEST = 64 << 10  # bytes; what is longer is no secret, but the wrong file


@dataclass(frozen=True, slots=True)
class Secret:
    """The name of an environment variable, or a file. Read whenever it is needed, so that it can be changed."""

    env: str = ""
    file: str = ""
    what: str = "password"  # as messages call it

    @property
    def place(self) -> str:
        return f"the environment variable {self.env}" if self.env else f"the file {self.file}"

    def __str__(self) -> str:
        return f"the {self.what} in {self.place}"

    def read(self) -> str:
        """Raises `Refused` where there is none."""
        found = os.environ.get(self.env, "").rstrip("\r\n") if self.env else self._in_file()
        if found:
            return found
        if self.env:
            raise Refused(f"its {self.what} is missing: set the environment variable {self.env}")
        raise Refused(f"its {self.what} file {self.file} is empty: write the {self.what} into it")

    def lack(self) -> str:
        """What is missing for it to be read, as in "it needs ..."; nothing where it is there."""
        try:
            self.read()
        except Refused as error:
            return (
                f"{self.place}, which is not set"
                if self.env
                else f"another {self.what} file: {error.message}"
            )
        return ""

    def _in_file(self) -> str:
        try:
            # Of a pipe or a device nobody knows whether it ends, and the event loop would wait for it.
            if not stat.S_ISREG(os.stat(self.file).st_mode):
                raise Refused(
                    f"its {self.what} file {self.file} is no ordinary file: write the {self.what} into one"
                )
            with Path(self.file).open("rb") as file:
                data = file.read(_LONGEST + 1)
            if len(data) > _LONGEST:
                raise Refused(
                    f"its {self.what} file {self.file} is larger than {_LONGEST:,} bytes: is it the right one?"
                )
            return data.decode("utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise Refused(f"its {self.what} file {self.file} cannot be read: {why}")
