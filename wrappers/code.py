"""The author's own code in a wrapper: which functions it has, and whose fault it is when they fail."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from mediator.errors import SourceError

_FARTHEST = 200  # of what an exception says


@dataclass(frozen=True)
class Code:
    """Functions of `owner`, whose instance each is given first; one that is not here is declared as data.

    `request` is given the bind-fields by name and returns a `Request`; `rows` is given a `SiteReply`, and yields
    rows and further requests. `defaults` are the fields that a row may leave out. The same code is equal in another
    process, too, though its functions are others there.
    """

    name: str
    owner: type
    request: Callable[..., object] | None = field(default=None, compare=False)
    rows: Callable[..., object] | None = field(default=None, compare=False)
    defaults: tuple[tuple[str, object], ...] = ()
    made: Callable[[], object] | None = field(
        default=None, compare=False
    )  # the instance; the class is called where this is left out

    def instance(self) -> object:
        return self.made() if self.made is not None else self.owner()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Taken:
    """The bind-fields that a function takes, as its signature says."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    others: bool  # it takes any other as well

    @classmethod
    def by(cls, function: Callable[..., object]) -> Taken:
        """Its first parameter is the instance. Raises `ValueError` for a signature that cannot be asked by name."""
        parameters = list(inspect.signature(function).parameters.values())[1:]
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ValueError(f"{parameter} cannot be given by name: write one parameter per bind-field")
        return cls(
            tuple(p.name for p in named if p.default is p.empty),
            tuple(p.name for p in named if p.default is not p.empty),
            any(p.kind is p.VAR_KEYWORD for p in parameters),
        )


def is_asynchronous(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def place(function: Callable[..., Any]) -> tuple[str, int]:
    """The file and the line where a function stands; empty and 0 where that is unknown."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def blamed(error: BaseException, function: Callable[..., Any]) -> str:
    """What was raised, and the line of the author's file where: `KeyError: 'price' (shop/offers.py, line 12)`."""
    file, line = place(function)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    if own:
        line = own[-1].lineno or line
    where = f" ({_short_path(file)}, line {line})" if file else f" (in {function!r:.60})"
    return f"{said(error)}{where}"


def said(error: BaseException) -> str:
    """An exception in one line, whatever it does when it is made into a text."""
    try:
        words = " ".join(str(error).split())
    except Exception:
        words = ""
    if len(words) > _FARTHEST:
        words = words[: _FARTHEST - 3] + "..."
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def ours(error: BaseException) -> bool:
    """Whether an exception goes on as it is: it was raised on purpose, or is the user's Ctrl-C."""
    return isinstance(error, SourceError | KeyboardInterrupt)


def _short_path(file: str) -> str:
    """A file by its name and its folder's: reports go to people who have other folders."""
    return "/".join(PurePath(file).parts[-2:]) if Path(file).is_absolute() else file
