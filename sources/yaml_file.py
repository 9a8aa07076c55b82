"""A YAML file as content and as marks: what it says, and in which line it says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mediator.errors import CatalogError
from sources.complaint import Where

_MOST_PARTS = 50_000  # aliases can make a few lines into more than there is memory for
_DEEPEST = 50


@dataclass(frozen=True)
class YamlFile:
    path: Path
    root: yaml.Node
    content: dict[str, Any]

    def error(self, where: Where, message: str) -> CatalogError:
        """What is wrong at a place of this file, with the line."""
        line, steps = _locate(self.root, where)
        return _error(self.path, line, ".".join(steps) or "file", message)


def read_yaml(path: Path) -> YamlFile:
    """Raises `CatalogError`, with line and fix, for what is not YAML or would not be read as it looks."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CatalogError(f"{path}: not UTF-8: save it in that encoding") from None
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _check(path, root)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        fix = "put texts that hold any of {}[]:#%@` in quotes, and indent with spaces"
        raise CatalogError(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {said}: {fix}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CatalogError(f"{path}: not YAML: {str(error).splitlines()[0]}: correct it") from None
    if not isinstance(content, dict) or root is None:
        raise CatalogError(f"{path}: expected 'sources' and 'relations' at the top")
    return YamlFile(path, root, content)


def _check(path: Path, root: yaml.Node) -> None:
    """Keys that stand twice, of which YAML keeps the last in silence, and aliases that multiply."""
    waiting: list[tuple[yaml.Node, tuple[str, ...]]] = [(root, ())]
    parts = 0
    while waiting:
        node, steps = waiting.pop()
        parts += 1
        if parts > _MOST_PARTS or len(steps) > _DEEPEST:
            raise _error(
                path, node.start_mark.line + 1, "file", "too large or too deep: write it without aliases"
            )
        if isinstance(node, yaml.MappingNode):
            waiting += [(value, (*steps, str(key.value)[:60])) for key, value in node.value]
            _check_keys(path, node, steps)
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(value, (*steps, str(n))) for n, value in enumerate(node.value)]


def _check_keys(path: Path, node: yaml.MappingNode, steps: tuple[str, ...]) -> None:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _error(
                path,
                line,
                ".".join(steps) or "file",
                'not a key: write "{field}" in quotes',
            )
        name = ".".join((*steps, key.value))
        if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
            raise _error(
                path, line, name, f'YAML does not read {key.value} as a text: write "{key.value}" in quotes'
            )
        if key.value in lines:
            first = lines[key.value]
            raise _error(
                path, line, name, f"{key.value!r} stands twice, first in line {first}: remove one of them"
            )
        lines[key.value] = line


def _error(path: Path, line: int, place: str, message: str) -> CatalogError:
    return CatalogError(f"{path}:{line}: {place}: {message}")


def _locate(node: yaml.Node, where: Where) -> tuple[int, list[str]]:
    """The line of the deepest part of `where` that the file has, and the steps to it.

    Steps that are not in the file are names that pydantic adds for the members of a union.
    """
    line, steps = node.start_mark.line, []
    for step in where:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = (node.value[step], node.value[step])
        else:
            found = None
        if found is None:
            continue
        line, node = found[0].start_mark.line, found[1]
        steps.append(str(step))
    return line + 1, steps
