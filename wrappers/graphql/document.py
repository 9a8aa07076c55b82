"""What a GraphQL document asks for: its variables, and the tree of names that the reply will have.

This is as much of GraphQL as a declaration can get wrong before anything is sent. Whether the site has such
fields only the site knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wrappers.graphql.tokens import NotGraphql, Token, tokens

_DEEPEST = 50
_MOST_NAMES = 20_000  # in the reply: fragments within fragments can make a few lines into any number
_PAIRS = {"{": "}", "(": ")", "[": "]"}
_CLOSING = frozenset(_PAIRS.values())
_NO_VALUE = frozenset({"!", "@", "...", "|", "&", "="})


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable as the document declares it: `[String!]!` is a list of `String`, and must be given."""

    type: str
    has_default: bool
    line: int

    @property
    def is_list(self) -> bool:
        return self.type.startswith("[")

    @property
    def must_be_given(self) -> bool:
        return self.type.endswith("!") and not self.has_default

    @property
    def scalar(self) -> str:
        """The name of the type, without what is around it."""
        return self.type.strip("[]!")


@dataclass(slots=True)
class Asked:
    """What is asked for of one object: the names in the reply, each with what is asked for below it."""

    below: dict[str, Asked] = field(default_factory=dict)

    def names(self) -> list[str]:
        return list(self.below)


@dataclass(frozen=True, slots=True)
class Document:
    """A query. `text` is how it is sent: without comments, and with a space after every brace."""

    text: str
    variables: Mapping[str, Variable]
    asked: Asked


def parse(text: str) -> Document:
    """Raises `NotGraphql` for what cannot be meant as one query."""
    return _Reading(list(tokens(text))).document()


@dataclass(slots=True)
class _Part:
    """A selection set as it is written: fields by their name in the reply, and the fragments that are spread there."""

    fields: list[tuple[str, _Part]] = field(default_factory=list)
    spreads: list[tuple[str, int]] = field(default_factory=list)


class _Reading:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._uses: dict[str, int] = {}  # variables, with the line of the first use
        self._variables: dict[str, Variable] = {}
        self._fragments: dict[str, _Part] = {}
        self._fragment_lines: dict[str, int] = {}
        self._spread_names: set[str] = set()
        self._names = 0
        _check_pairs(found)

    def document(self) -> Document:
        query: _Part | None = None
        while (token := self._here).kind != "end":
            if token.text == "fragment":
                self._fragment()
                continue
            if token.text in ("mutation", "subscription"):
                raise NotGraphql(token.line, f"a {token.text} does not read: write a query")
            if query is not None:
                raise NotGraphql(token.line, "a second operation: keep one of them")
            query = self._query()
        if query is None:
            raise NotGraphql(1, "there is no query: write query { ... }")
        asked = self._resolved(query, ())
        self._check_uses()
        return Document(_written(self._tokens[:-1]), self._variables, asked)

    @property
    def _here(self) -> Token:
        return self._tokens[self._at]

    def _take(self, expected: str = "", kind: str = "") -> Token:
        token = self._here
        if (expected and token.text != expected) or (kind and token.kind != kind):
            raise NotGraphql(token.line, f"expected {expected or 'a ' + kind}, found {token.text[:40]}")
        self._at += 1
        return token

    def _has(self, text: str) -> bool:
        """Whether this comes next; if so, it is taken."""
        if self._here.kind == "end" or self._here.text != text:
            return False
        self._at += 1
        return True

    def _query(self) -> _Part:
        if self._has("query"):
            if self._here.kind == "name":
                self._at += 1
            if self._has("("):
                while not self._has(")"):
                    self._variable()
            self._directives()
        return self._selection(0)

    def _variable(self) -> None:
        line = self._take("$").line
        name = self._take(kind="name").text
        self._take(":")
        type_ = ""
        while self._here.text in ("[", "]", "!") or (self._here.kind == "name" and not type_.strip("[")):
            type_ += self._take().text
        if not type_.strip("[]!"):
            raise NotGraphql(line, f"${name} has no type")
        if name in self._variables:
            raise NotGraphql(line, f"${name} is declared twice")
        has_default = self._has("=")
        if has_default:
            self._value()
        self._directives()
        self._variables[name] = Variable(type_, has_default, line)

    def _fragment(self) -> None:
        self._take("fragment")
        line, name = self._here.line, self._take(kind="name").text
        if name in self._fragments:
            raise NotGraphql(line, f"the fragment {name} is there twice")
        self._fragment_lines[name] = line
        self._take("on")
        self._take(kind="name")
        self._directives()
        self._fragments[name] = self._selection(0)

    def _selection(self, depth: int) -> _Part:
        line = self._take("{").line
        if depth > _DEEPEST:
            raise NotGraphql(line, f"more than {_DEEPEST} braces deep")
        part = _Part()
        while not self._has("}"):
            if self._has("..."):
                self._spread(part, depth)
            else:
                self._field(part, depth)
        if not part.fields and not part.spreads:
            raise NotGraphql(line, "nothing is asked for between these braces")
        return part

    def _field(self, part: _Part, depth: int) -> None:
        name = self._take(kind="name").text
        if self._has(":"):
            self._take(kind="name")  # the site's name for it; the reply has the one before
        self._arguments()
        self._directives()
        below = self._selection(depth + 1) if self._here.text == "{" else _Part()
        part.fields.append((name, below))

    def _spread(self, part: _Part, depth: int) -> None:
        here = self._here
        if here.kind == "name" and here.text != "on":
            part.spreads.append((self._take().text, here.line))
            self._directives()
            return
        if self._has("on"):
            self._take(kind="name")
        self._directives()
        inline = self._selection(depth + 1)
        part.fields += inline.fields
        part.spreads += inline.spreads

    def _arguments(self) -> None:
        if self._has("("):
            while not self._has(")"):
                self._take(kind="name")
                self._take(":")
                self._value()

    def _directives(self) -> None:
        while self._has("@"):
            self._take(kind="name")
            self._arguments()

    def _value(self) -> None:
        """A value of any depth. Brackets are known to match: it ends where as many are closed as were opened."""
        depth = 0
        while True:
            token = self._take()
            if token.kind == "end" or token.text in _NO_VALUE or (not depth and token.text == ":"):
                raise NotGraphql(token.line, f"expected a value, found {token.text}")
            if token.text == "$":
                self._uses.setdefault(self._take(kind="name").text, token.line)
            depth += (token.text in _PAIRS) - (token.text in _CLOSING)
            if depth < 0:
                raise NotGraphql(token.line, f"expected a value, found {token.text}")
            if depth == 0:
                return

    def _resolved(self, part: _Part, within: tuple[str, ...]) -> Asked:
        """The tree of names, with fragments in their places."""
        asked = Asked()
        self._names += len(part.fields) + len(part.spreads)
        if self._names > _MOST_NAMES:
            raise NotGraphql(1, f"asks for more than {_MOST_NAMES:,} fields")
        for name, below in part.fields:
            _merge(asked.below.setdefault(name, Asked()), self._resolved(below, within))
        for name, line in part.spreads:
            if name not in self._fragments:
                raise NotGraphql(line, f"there is no fragment {name}")
            if name in within or len(within) > _DEEPEST:
                raise NotGraphql(line, f"the fragment {name} contains itself")
            self._spread_names.add(name)
            _merge(asked, self._resolved(self._fragments[name], (*within, name)))
        return asked

    def _check_uses(self) -> None:
        for name, line in self._uses.items():
            if name not in self._variables:
                raise NotGraphql(line, f"${name} is used but not declared: write query (${name}: String)")
        for name, variable in self._variables.items():
            if name not in self._uses:
                raise NotGraphql(variable.line, f"${name} is declared but not used: remove it")
        for name, line in self._fragment_lines.items():
            if name not in self._spread_names:
                raise NotGraphql(line, f"the fragment {name} is not used: remove it")


def _written(found: list[Token]) -> str:
    """One line. A brace is never next to a name: `{name}` stands for a bind-field in a declaration."""
    text, before = "", ""
    for token in found:
        glued = before in ("", "$", "@", "...", "(", "[") or token.text in (":", "!", ")", "]", "(")
        text += token.text if glued else f" {token.text}"
        before = token.text
    return text


def _merge(into: Asked, other: Asked) -> None:
    for name, below in other.below.items():
        _merge(into.below.setdefault(name, Asked()), below)


def _check_pairs(found: list[Token]) -> None:
    """Every brace, bracket and parenthesis is closed by its own kind."""
    opened: list[Token] = []
    for token in found:
        if token.kind != "mark":
            continue
        if token.text in _PAIRS:
            opened.append(token)
        elif token.text in _CLOSING:
            if not opened:
                raise NotGraphql(token.line, f"{token.text} closes nothing: remove it")
            last = opened.pop()
            if _PAIRS[last.text] != token.text:
                raise NotGraphql(
                    token.line,
                    f"{token.text} where {_PAIRS[last.text]} should close the {last.text} of line {last.line}",
                )
    if opened:
        last = opened[-1]
        raise NotGraphql(last.line, f"{last.text} is not closed: add {_PAIRS[last.text]}")
