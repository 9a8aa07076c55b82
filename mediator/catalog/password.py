"""Where a password is to be found. The password itself is no part of a declaration, a message or a report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mediator.errors import Refused


@dataclass(frozen=True, slots=True)
class Password:
    """The name of an environment variable, or a file. Read for each connection, so that it can be changed."""

    env: str = ""
    file: str = ""

    def read(self) -> str:
        """Raises `Refused` where there is none."""
        if self.env:
            if found := os.environ.get(self.env):
                return found
            raise Refused(f"its password is missing: set the environment variable {self.env}")
        try:
            found = Path(self.file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8 text"
            raise Refused(f"its password file {self.file} cannot be read: {why}") from None
        if not found:
            raise Refused(f"its password file {self.file} is empty: write the password into it")
        return found
