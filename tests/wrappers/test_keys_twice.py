"""An object that says two things of one key is not understood, however it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mediator.errors import Unreadable
from wrappers.record_reader import understood

_TEXTS = st.text(st.sampled_from('ab":\\ {}\n'), max_size=4)
_SPACES = st.sampled_from(["", "", " ", "\n\t"])


@st.composite
def _written(draw: st.DrawFn, text: str) -> str:
    """A text as JSON, some of its characters by their numbers."""
    numbered = draw(st.booleans())
    return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"' if numbered else json.dumps(text)


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(st.tuples(_TEXTS.flatmap(_written), _SPACES, inner), max_size=4))
    return "{" + ",".join(f"{name}{space}:{value}" for name, space, value in items) + "}"


_DOCUMENTS = st.recursive(
    st.one_of(_TEXTS.flatmap(_written), st.sampled_from(["1", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[" + ",".join(parts) + "]"), _objects(inner)
    ),
    max_leaves=12,
)


class _Twice(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found


@given(_DOCUMENTS)
@example('{"a": "\\u0022:", "b": 1, "b": 2}')  # as many quotes before colons as there are keys
@example('{"a\\\\": 1, "a\\\\": 2, "b": "\\":"}')
@example('{"":[],"":"\\u003a"}')
@example('{"a": 1, "a": "\\u003A"}')
@example("[" * 300 + '{"a": 1, "a": 1}' + "]" * 300)
def test_no_key_is_taken_twice(text: str) -> None:
    try:
        meant = json.loads(text, object_pairs_hook=_once)
    except _Twice:
        with pytest.raises(Unreadable, match="stands twice in one object"):
            understood("r", text.encode())
    else:
        assert understood("r", text.encode()) == meant
