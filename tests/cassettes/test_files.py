"""A cassette is read back as it was written, is the same however requests came, and says what is wrong with it."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from wrappers.cassettes import Asked, Cassette, CassetteError

_NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
_PAIRS = st.lists(st.tuples(_NAMES, st.text(max_size=20)), max_size=3).map(tuple)
_BODIES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.text('{}[],:" \n\r\t0aé\u2028\x85\ufeff', max_size=300).map(str.encode),
)
_ASKED = st.builds(
    Asked,
    source=_NAMES,
    path=st.text(string.ascii_letters + "/%é :#", max_size=20).map(lambda p: f"/{p}"),
    query=_PAIRS,
    method=st.sampled_from(["GET", "POST"]),
    headers=_PAIRS,
    body=_BODIES,
    rooted=st.booleans(),
)
_REPLIES = st.builds(
    Reply, st.integers(100, 599), st.dictionaries(_NAMES, st.text(max_size=20), max_size=3), _BODIES
)
_EXCHANGES = st.lists(st.tuples(_ASKED, _REPLIES), max_size=6)


def _cassette(exchanges: list[tuple[Asked, Reply]]) -> Cassette:
    cassette = Cassette({"shop": "https://shop.example/api"})
    for asked, reply in exchanges:
        cassette.add(asked, reply)
    return cassette


@given(_EXCHANGES)
def test_what_was_written_is_read(exchanges: list[tuple[Asked, Reply]]) -> None:
    cassette = _cassette(exchanges)
    assert Cassette.parsed(cassette.text()) == cassette


@given(st.lists(st.tuples(_ASKED, _REPLIES), max_size=6, unique_by=lambda e: e[0]))
def test_the_order_of_requests_does_not_matter(exchanges: list[tuple[Asked, Reply]]) -> None:
    assert _cassette(exchanges).text() == _cassette(exchanges[::-1]).text()


def test_a_cassette_can_be_read_and_changes_little(tmp_path: Path) -> None:
    rows = [b'{"isbn":"978%07d","title":"A book of some length, number %d"}' % (n, n) for n in range(40)]
    before, after = (
        _cassette([(Asked("shop", "/books"), Reply(200, {}, b'{"rows":[' + b",".join(found) + b"]}"))]).text()
        for found in (rows, [*rows[:7], b'{"isbn":"new"}', *rows[8:]])
    )
    lines = before.splitlines()
    assert len(lines) > 40
    assert "  request: GET /books" in lines
    changed = set(lines) ^ set(after.splitlines())
    assert len(changed) == 2


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    body = bytes(range(256))
    file = tmp_path / "a.cassette"
    _cassette([(Asked("shop", "/picture"), Reply(200, {}, body))]).write(file)
    assert "base64: AAECAwQF" in file.read_text()
    (replies,) = Cassette.read(file).exchanges.values()
    assert replies[0].body == body


@pytest.mark.parametrize(
    ("path", "base", "bases", "found"),
    [
        ("/books", "https://shop.example/api", (), ("/books", False)),
        ("/books", "https://shop.example/api/", (), ("/books", False)),
        ("https://shop.example/api/books", "https://shop.example/api", (), ("/books", False)),
        ("https://shop.example/other", "https://shop.example/api", (), ("/other", True)),
        (
            "https://was.example/api/books",
            "https://is.example/v2",
            ("https://was.example/api",),
            ("/books", False),
        ),
        ("https://was.example/x", "https://is.example/v2", ("https://was.example/api",), ("/x", True)),
        ("https://cdn.example/x", "https://shop.example/api", (), ("https://cdn.example/x", False)),
        ("https://shop.example/apices", "https://shop.example/api", (), ("/apices", True)),
    ],
)
def test_an_address_is_told_from_its_source(
    path: str, base: str, bases: tuple[str, ...], found: tuple[str, bool]
) -> None:
    asked = Asked.of(Mirror("shop", base), Request(path), bases)
    assert (asked.path, asked.rooted) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "it is no cassette"),
        ("{", "not YAML"),
        ("cassette: 2\nexchanges: []", "cassette: "),
        ("cassette: 1\nexchanges: [{source: a}]", "exchanges.0.request"),
        ("cassette: 1\nexchanges: [{source: a, request: GET /, replies: [{status: x}]}]", "replies.0.status"),
        (
            "cassette: 1\nexchanges: [{source: a, request: GET /, replies: [{status: 1, base64: '?'}]}]",
            "base64",
        ),
        ("cassette: 1\nmore: 1", "more"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
    ],
)
def test_what_is_no_cassette_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.cassette"
    file.write_text(text)
    with pytest.raises(CassetteError) as error:
        Cassette.read(file)
    assert str(error.value).startswith(f"{file}: ")
    assert said in str(error.value)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="cannot be read"):
        Cassette.read(tmp_path / "none.cassette")
    with pytest.raises(CassetteError, match="cannot be written"):
        Cassette().write(tmp_path / "no" / "folder.cassette")
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    with pytest.raises(CassetteError, match="not UTF-8"):
        Cassette.read(tmp_path / "latin")
