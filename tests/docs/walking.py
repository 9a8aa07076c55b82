"""A page is followed as its reader would: its files are written, its commands run, what they print is compared.

Its fenced blocks are, in their order:

- `python`, `yaml`, `toml`: a file; the first line is a comment with its name.
- `diff`: a change of a file; the first line is `--- NAME`, the others begin with a space, `-` or `+`.
- `console`: commands after `$ `, each with what it prints; one that ends in a backslash goes on below. `...` stands
  for any lines, or for any part of one; times are not compared. A command that fails is followed by `$ echo $?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.shell import Shell

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILES = ("python", "yaml", "toml")
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_TIME = re.compile(r"\b\d[\d.,]* ?(ms|s)\b")
_ANY = "..."


class Wrong(AssertionError):
    """Where the page is not what happens."""


@dataclass(frozen=True)
class File:
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Change:
    line: int
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    shown: str


Step = File | Change | Command


def steps(page: str) -> list[Step]:
    """What the page tells its reader to do."""
    found: list[Step] = []
    for block in _FENCE.finditer(page):
        line = page.count("\n", 0, block.start()) + 1
        found.extend(_steps(block[1], block[2], line))
    return found


def _steps(kind: str, body: str, line: int) -> Iterator[Step]:
    first, _, rest = body.partition("\n")
    if kind in _FILES and first.startswith("# "):
        yield File(line, first.removeprefix("# "), body)
    elif kind == "diff" and first.startswith("--- "):
        lines = rest.splitlines()
        before = "".join(f"{text[1:]}\n" for text in lines if not text.startswith("+"))
        after = "".join(f"{text[1:]}\n" for text in lines if not text.startswith("-"))
        yield Change(line, first.removeprefix("--- "), before, after)
    elif kind == "console" and first.startswith("$ "):
        for part in _COMMAND.finditer(body):
            yield Command(line + 1 + body.count("\n", 0, part.start()), part[1], part[2])
    else:
        raise Wrong(f"line {line}: nobody knows what to do with this block: {kind} {first!r}")


def walk(page: str, folder: Path, env: Mapping[str, str], swaps: Mapping[str, str]) -> int:
    """Follows the page in this folder, and says how many steps there were. `swaps` are texts of the page, such as a
    port, and what stands in their places here."""
    todo = steps(page)
    with Shell(folder, env) as shell:
        for step, then in zip(todo, [*todo[1:], None], strict=True):
            match step:
                case File():
                    file = folder / step.name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(_swapped(step.text, swaps), encoding="utf-8")
                case Change():
                    _change(step, folder / step.name, swaps)
                case Command():
                    told = isinstance(then, Command) and then.text == "echo $?"
                    _run(step, shell, swaps, may_fail=told)
    return len(todo)


def _swapped(text: str, swaps: Mapping[str, str]) -> str:
    for here, there in swaps.items():
        text = re.sub(rf"\b{re.escape(here)}\b", there.replace("\\", r"\\"), text)
    return text


def _change(step: Change, file: Path, swaps: Mapping[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    before = _swapped(step.before, swaps)
    if f"\n{text}".count(f"\n{before}") != 1:
        raise Wrong(f"line {step.line}: this is not, or not once, in {step.name}:\n{step.before}")
    start = f"\n{text}".index(f"\n{before}")
    file.write_text(
        text[:start] + _swapped(step.after, swaps) + text[start + len(before) :], encoding="utf-8"
    )


def _run(step: Command, shell: Shell, swaps: Mapping[str, str], *, may_fail: bool) -> None:
    back = {there: here for here, there in swaps.items()}

    def agrees(printed: str) -> bool:
        return pattern(step.shown).fullmatch(comparable(_swapped(printed, back))) is not None

    printed, code = shell.run(_swapped(step.text, swaps), agrees)
    if not agrees(printed):
        raise Wrong(
            f"line {step.line}: $ {step.text}\n--- on the page:\n{step.shown}"
            f"--- in fact (exit code {code}):\n{comparable(_swapped(printed, back))}"
        )
    if code and not may_fail:
        raise Wrong(
            f"line {step.line}: $ {step.text}\nends with exit code {code}, and the page does not show it"
        )


def comparable(text: str) -> str:
    """The text without what is never the same twice."""
    return "".join(f"{line.rstrip()}\n" for line in _TIME.sub("0 s", text).splitlines())


def pattern(shown: str) -> re.Pattern[str]:
    """What matches all that the page's text may stand for."""
    lines = comparable(shown).splitlines()
    return re.compile(
        "".join(
            r"(?:.*\n)*" if line.strip() == _ANY else re.escape(line).replace(re.escape(_ANY), ".*") + r"\n"
            for line in lines
        )
    )
