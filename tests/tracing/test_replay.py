"""A trace is replayed to the same decisions, whatever the policy; what cannot be replayed says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mediator.assembly import POLICIES
from mediator.tracing.reading import Reader, TraceError
from mediator.tracing.replaying import Replay, replay
from tests.any_route.search import Effort, search
from tests.tracing.kit import lines, rewritten, traced

BLOCK = 25


def replayed(path: Path, policy: str | None = None) -> Replay:
    return replay(Reader(path), policy)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_decides_the_same_once_more(tmp_path: Path, policy: str, seed: int) -> None:
    path = tmp_path / "trace"
    traced(path, policy=policy, seed=seed, revisit=1)
    found = replayed(path)
    assert found.same, found.first[0]
    assert found.policy == found.recorded == policy
    assert found.choices == sum(line.get("verb") == "choose" for line in lines(path))
    assert found.told == sum("verb" in line for line in lines(path)) > 0


@pytest.mark.parametrize("first", range(0, 2 * BLOCK, BLOCK))
def test_random_cases_are_replayed_to_the_same_decisions(first: int) -> None:
    """The search raises where a policy, made anew, says something else."""
    effort = Effort()
    for seed in range(first, first + BLOCK):
        search(seed, effort)
    assert effort.replayed > 0


def test_another_seed_decides_otherwise_and_the_first_difference_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    traced(path, policy="random", seed=1, revisit=1)
    changed = lines(path)
    changed[0]["settings"]["seed"] = 2
    rewritten(path, changed)
    found = replayed(path)
    assert not found.same
    first = found.first[0]
    verbs = [line.get("verb") for line in changed]
    assert verbs[first.line - 1] == first.verb
    assert f"line {first.line}, after" in str(first)
    assert first.recorded != first.now


def test_a_choice_that_was_tampered_with_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    traced(path, policy="fixed")
    changed = lines(path)
    number, line = next((n, c) for n, c in enumerate(changed) if c.get("verb") == "choose")
    other = next(d for d in line["told"][1] if d != line["said"])
    changed[number] = {**line, "said": other}
    rewritten(path, changed)
    found = replayed(path)
    assert found.differences == 1
    assert found.first[0].line == number + 1
    assert found.first[0].where


def test_another_policy_says_where_it_would_have_gone_and_with_how_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    traced(path, policy="fixed", order=(0, 1, 2))
    found = replayed(path, "random")
    assert (found.policy, found.recorded) == ("random", "fixed")
    assert 0.0 < found.share <= 1.0
    assert sum(found.elsewhere.values()) == found.rows_elsewhere <= found.rows
    same = replayed(path, "fixed")
    assert (same.differences, same.share) == (0, 0.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_any_policy_can_be_asked_for_its_opinion_on_any_trace(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "trace"
    traced(path, policy="random", seed=5)
    found = replayed(path, policy)
    assert found.choices > 0
    assert found.policy == policy


def _cut(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _cut_in_a_line(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: int(len(text) * 0.6)])


def _header(path: Path, **said: Any) -> None:
    first, *rest = lines(path)
    rewritten(path, [first | said, *rest])


def _of_an_unknown_policy(path: Path) -> None:
    _header(path, policy="crystal ball")


def _without_a_block(path: Path) -> None:
    _header(path, blocks={})


def _with_a_block_of_nonsense(path: Path) -> None:
    _header(path, blocks={"block": {"aliases": 3}})


def _without_its_sql(path: Path) -> None:
    first, *rest = lines(path)
    del first["sql"]
    rewritten(path, [first, *rest])


def _one_line_less(path: Path) -> None:
    found = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*found[:3], *found[4:]]))


def _a_foreign_line(path: Path) -> None:
    found = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*found[:3], "what?\n", *found[3:]]))


def _nested_deeply(path: Path) -> None:
    found = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*found[:3], '{"a":' * 200_000 + "\n", *found[3:]]))


def _twice(path: Path) -> None:
    path.write_text(path.read_text() * 2)


def _a_verb(path: Path, **said: Any) -> None:
    found = lines(path)
    at = next(n for n, line in enumerate(found) if "verb" in line)
    line = {k: v for k, v in found[at].items() if k in ("at", "block")}
    rewritten(path, [*found[:at], line | said, *found[at + 1 :]])


def _an_unknown_verb(path: Path) -> None:
    _a_verb(path, verb="dream", told=[], said=None)


def _an_unknown_record(path: Path) -> None:
    _a_verb(path, verb="learn", told=[{"Dream": [1]}], said=None)


def _something_lost(path: Path) -> None:
    _a_verb(path, verb="learn", lost="ndarray")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "cut short after line"),
        (_cut_in_a_line, "cut short after line"),
        (_one_line_less, "and says that they are"),
        (_twice, "a trace goes on after its last line"),
        (_a_foreign_line, "line 4: no JSON object"),
        (_of_an_unknown_policy, "there is no policy 'crystal ball' here; there are"),
        (_without_a_block, "of a block that the header does not have"),
        (_with_a_block_of_nonsense, "line 1: the header of block cannot be understood"),
        (_without_its_sql, "line 1: a trace's header without 'sql'"),
        (lambda path: _header(path, trace=99), "a trace of version 99, and this mediator reads version 1"),
        (_an_unknown_verb, "no policy here knows the verb 'dream'"),
        (_an_unknown_record, "nothing here is called 'Dream'"),
        (lambda path: _header(path, sql=1), "line 1: of a trace's header 'sql' is 1, and no text"),
        (lambda path: _header(path, blocks=[]), "line 1: of a trace's header 'blocks' is [], and no object"),
        (lambda path: _header(path, blocks={"block": 1}), "'block' is 1, and no object"),
        (lambda path: path.write_text("[" * 200_000), "not a trace"),
        (_nested_deeply, "line 4: no JSON object"),
        (lambda path: _a_verb(path, verb="learn", told=[1], said=None), "cannot be told what was told here"),
        (lambda path: _a_verb(path, verb="learn"), "cannot be understood: there is no 'told'"),
        (_something_lost, "something that a trace cannot hold"),
        (lambda path: path.write_text("isbn,title\n1,x\n"), "not a trace"),
        (lambda path: path.write_text('{"rows": []}\n'), "not a trace"),
        (lambda path: path.write_text(""), "not a trace"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00\n" * 9), "not a trace: not UTF-8"),
        (lambda path: path.unlink(), "cannot be read: No such file"),
    ],
)
def test_what_cannot_be_replayed_is_told_in_one_message(tmp_path: Path, spoil: Any, said: str) -> None:
    path = tmp_path / "trace"
    traced(path)
    spoil(path)
    with pytest.raises(TraceError) as raised:
        replayed(path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_trace_can_be_read_as_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    traced(path)
    first = json.loads(path.read_text().splitlines()[0])
    assert first["settings"]["max_age"] == {"number": "inf"}
