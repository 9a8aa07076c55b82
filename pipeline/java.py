"""The Java that Spark runs on: where it is, and whether it is new enough.

`python -m pipeline.java` says it, and ends with 1 where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import NoSpark

LEAST = 17
PLACES = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))
FIX = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME to one that is there already"
_PATIENCE = 20.0  # seconds for a `java -version`, which takes a tenth of one
# `openjdk version "17.0.15"`; up to Java 8 it was "1.8.0_402".
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """One that Spark can use."""

    home: Path  # what JAVA_HOME is to be
    version: int

    def __str__(self) -> str:
        return f"Java {self.version} in {self.home}"


class _Unfit(Exception):
    """A Java that does not do, and why."""


def find_java(
    environment: Mapping[str, str] | None = None,
    places: tuple[Path, ...] = PLACES,
    patience: float = _PATIENCE,
) -> Java:
    """The first that is new enough: what JAVA_HOME says, then the one on the PATH, then the usual places.

    Raises `NoSpark`, which says of each that was found why it does not do.
    """
    unfit: list[str] = []
    for what, home in _candidates(os.environ if environment is None else environment, places):
        try:
            return Java(home, _version(home, patience))
        except _Unfit as error:
            unfit.append(f"{what} {error}")
    found = f": {'; '.join(unfit)}" if unfit else ", and there is none here"
    raise NoSpark(f"Spark needs Java {LEAST} or newer{found}. Install one: {FIX}")


def _candidates(environment: Mapping[str, str], places: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    """Homes of Javas, each once, and what they are called in messages."""
    seen: set[Path] = set()
    for what, home in _everywhere(environment, places):
        if home not in seen:
            seen.add(home)
            yield what, home


def _everywhere(environment: Mapping[str, str], places: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    if said := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME ({said})", Path(said)
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        program = Path(on_path).resolve()
        yield f"the java on the PATH ({on_path})", program.parent.parent
    for place in places:
        for program in sorted([*place.glob("*/bin/java"), *place.glob("*/Contents/Home/bin/java")]):
            yield str(program), program.resolve().parent.parent


def _version(home: Path, patience: float) -> int:
    program = home / "bin" / "java"
    try:
        done = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        raise _Unfit(f"did not say its version within {patience:g} seconds") from None
    except OSError as error:
        raise _Unfit(f"cannot be run: {error.strerror}") from None
    said = done.stderr + done.stdout
    if done.returncode != 0:
        first = next(iter(said.strip().splitlines()), "and says nothing")
        raise _Unfit(f"does not run: {first[:200]}")
    version = _VERSION.search(said)
    if version is None:
        raise _Unfit("does not say which version it is")
    if int(version[1]) < LEAST:
        raise _Unfit(f"is Java {version[1]}, which is too old")
    return int(version[1])


def _main() -> int:
    try:
        sys.stdout.write(f"{find_java()}\n")
    except NoSpark as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
