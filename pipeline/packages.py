"""Which packages this distribution needs, for what, and whether they are there in a version that does.

What is needed is said in one place, `pyproject.toml`; it is read from what was installed of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from pipeline.errors import NoSpark

DISTRIBUTION = "mediator"
SPARK = "spark"

# `pandas<3,>=2.2; extra == "spark"`
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?\s*(?P<versions>[^;]*)(;.*extra == ['\"](?P<extra>[\w-]+)['\"])?"
)
_LIMIT = re.compile(r"(>=|<=|==|!=|>|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class Need:
    """A package that is needed, in which versions, and by which extra; by the core where that is empty."""

    package: str
    versions: str  # as pip writes it
    extra: str = ""

    @property
    def installed(self) -> str:
        """The version that is there; nothing where it is not."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return ""

    @property
    def fault(self) -> str:
        """What is wrong with it; nothing where it does."""
        version = self.installed
        if not version:
            return f"{self.package} is not installed"
        return (
            ""
            if _within(version, self.versions)
            else f"{self.package} {version} is installed, not {self.versions}"
        )

    @property
    def fix(self) -> str:
        return f"pip install '{DISTRIBUTION}[{self.extra}]'" if self.extra else f"pip install {DISTRIBUTION}"


def needs() -> list[Need]:
    """Those of the core and of every extra. None where this was not installed, but only put on a path."""
    try:
        said = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    return [need for text in said if (need := _read(text)).package != DISTRIBUTION]


def need_of(module: str) -> Need | None:
    """The one whose package a module should have come from, and is not there."""
    package = module.partition(".")[0].replace("_", "-")
    return next((need for need in needs() if need.package == package and not need.installed), None)


def version() -> str:
    """This distribution's own; nothing where it was not installed, but only put on a path."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ""


def check_spark() -> None:
    """Raises `NoSpark` where PySpark is not there, or with packages that it does not go with."""
    if faults := [need for need in _for_spark() if need.fault]:
        said = "; ".join(need.fault for need in faults)
        raise NoSpark(f"Spark cannot be used: {said}. Install what goes together: {faults[0].fix}")


def _for_spark() -> Iterator[Need]:
    found = [need for need in needs() if need.extra == SPARK]
    yield from found or [Need("pyspark", "", SPARK)]


def _read(text: str) -> Need:
    match = _REQUIREMENT.match(text)
    assert match is not None
    return Need(match["name"], match["versions"].strip(), match["extra"] or "")


def _within(version: str, limits: str) -> bool:
    there = _numbers(version)
    for operator, limit in _LIMIT.findall(limits):
        bound = _numbers(limit)
        length = max(len(there), len(bound))
        one, other = (numbers + (0,) * (length - len(numbers)) for numbers in (there, bound))
        holds = {
            ">=": one >= other,
            "<=": one <= other,
            "==": one == other,
            "!=": one != other,
            ">": one > other,
            "<": one < other,
        }
        if not holds[operator]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
