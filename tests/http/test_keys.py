"""Keys: files of them, what opens and what does not, several writers, quotas."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from api.exits import Mistake
from api.http.keys import SCOPES, Key, Keyring, Meter, Quota, Scope, add, read, remove
from api.http.problems import Problem

BOTH: frozenset[Scope] = frozenset({"query", "read"})
DIGEST = hashlib.sha256(b"mk_x").hexdigest()


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ring_of(path: Path, time: Time, complain: Callable[[str], None] = pytest.fail) -> Keyring:
    return Keyring.load(path, now=time, clock=time, complain=complain)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_token_opens_what_it_was_made_for(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    quota = Quota(concurrent=2, per_minute=60, calls=100, seconds=1.5, rows=10, bytes=1000)
    token = add(path, "alice", BOTH, quota, expires=2000.0)
    assert token.startswith("mk_")
    assert len(token) >= 43  # 256 bits
    key = ring_of(path, Time()).find(token)
    assert key == Key("alice", hashlib.sha256(token.encode()).hexdigest(), BOTH, quota, 2000.0)
    assert token not in path.read_text()
    assert key.digest not in repr(key)


@pytest.mark.parametrize("wrong", ["", "mk_", "mk_x", " ", "mk_\udcff", "☃" * 1000])
def test_other_tokens_open_nothing(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "keys.yaml"
    token = add(path, "alice", BOTH)
    ring = ring_of(path, Time())
    assert ring.find(wrong) is None
    assert ring.find(token[:-1]) is None
    assert ring.find(token + "x") is None
    assert ring.find(hashlib.sha256(token.encode()).hexdigest()) is None  # what stands in the file is no key


def test_a_key_expires(tmp_path: Path) -> None:
    path, time = tmp_path / "keys.yaml", Time()
    token = add(path, "alice", BOTH, expires=time.now + 10)
    ring = ring_of(path, time)
    assert ring.find(token)
    time.now += 10
    assert ring.find(token) is None


def test_a_key_lacks_the_scopes_that_it_was_not_given() -> None:
    key = Key("alice", DIGEST, frozenset({"read"}))
    key.check("read")
    with pytest.raises(Problem, match="lacks the scope query") as raised:
        key.check("query")
    assert (raised.value.status, raised.value.kind) == (403, "forbidden")


def test_where_no_key_is_needed_everybody_may_do_everything() -> None:
    ring = Keyring.open_to_all()
    assert ring.everybody is not None
    assert ring.find("") is ring.everybody
    for scope in SCOPES:
        ring.everybody.check(scope)
    assert ring.everybody.quota == Quota()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    before = os.umask(0)
    try:
        add(path, "alice", BOTH)
        path.chmod(0o644)
        add(path, "bob", BOTH)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["keys.yaml", "keys.yaml.lock"]


def test_where_the_file_is_a_link_what_it_leads_to_is_changed(tmp_path: Path) -> None:
    path, link = tmp_path / "keys.yaml", tmp_path / "link.yaml"
    link.symlink_to(path)
    add(link, "alice", BOTH)
    assert link.is_symlink()
    assert list(read(path)) == ["alice"]


def test_names_are_plain_and_stand_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    for name in ("", "a b", "../x", "-x", "é", "x" * 65, "a\nb", "{a}"):
        with pytest.raises(Mistake, match="is no name for a key"):
            add(path, name, BOTH)
    with pytest.raises(Mistake, match="take another name"):
        add(path, "local", BOTH)
    for name in ("null", "123", "on", "1.5", "2026-01-01"):  # YAML has a meaning for each
        add(path, name, BOTH)
    assert list(read(path)) == ["null", "123", "on", "1.5", "2026-01-01"]
    with pytest.raises(Mistake, match="has a key '123' already"):
        add(path, "123", BOTH)


def test_what_is_removed_opens_nothing(tmp_path: Path) -> None:
    path, time = tmp_path / "keys.yaml", Time()
    token, other = add(path, "alice", BOTH), add(path, "bob", BOTH)
    ring = ring_of(path, time)
    remove(path, "alice")
    time.now += 1
    assert ring.find(token) is None
    assert ring.find(other)
    with pytest.raises(Mistake, match="has no key 'alice'; it has bob"):
        remove(path, "alice")
    with pytest.raises(Mistake, match="no such file"):
        remove(tmp_path / "none.yaml", "alice")
    assert not (tmp_path / "none.yaml").exists()


def test_the_file_is_looked_at_once_a_second_at_most(tmp_path: Path) -> None:
    path, time = tmp_path / "keys.yaml", Time()
    add(path, "alice", BOTH)
    ring = ring_of(path, time)
    token = add(path, "bob", BOTH)
    time.now += 0.5
    assert ring.find(token) is None
    time.now += 0.5
    assert ring.find(token)


def test_a_broken_file_leaves_the_keys_as_they_were_and_is_told_once(tmp_path: Path) -> None:
    path, time = tmp_path / "keys.yaml", Time()
    token = add(path, "alice", BOTH)
    told: list[str] = []
    ring = ring_of(path, time, told.append)
    good = path.read_text()
    written(path, "keys: [")
    for _ in range(3):
        time.now += 1
        assert ring.find(token)
    assert len(told) == 1
    assert f"{path}:1: not YAML" in told[0]
    path.unlink()
    time.now += 1
    assert ring.find(token)
    assert "no such file" in told[1]
    written(path, good.replace("alice", "anna"))
    time.now += 1
    found = ring.find(token)
    assert found is not None
    assert found.name == "anna"
    assert len(told) == 2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "expected 'keys' at the top"),
        ("- a\n", "expected 'keys' at the top"),
        ("key: {}\n", ":1: file: 'keys' is missing"),
        ("keys:\n  alice:\n    scopes: [read]\n", ":2: keys.alice: 'sha256' is missing: add it"),
        ("keys:\n  alice:\n    sha256: abc\n    scopes: [read]\n", ":3: keys.alice.sha256: "),
        (f"keys:\n  alice:\n    sha256: {DIGEST}\n    scopes: [write]\n", ":4: keys.alice.scopes.0: "),
        (f"keys:\n  alice:\n    sha256: {DIGEST}\n    scopes: []\n", ":4: keys.alice.scopes: "),
        (
            f"keys:\n  alice:\n    sha256: {DIGEST}\n    scopes: [read]\n    note: x\n",
            ":5: keys.alice.note: unknown field",
        ),
        (
            f"keys:\n  alice: {{sha256: {DIGEST}, scopes: [read], quota: {{calls: 0}}}}\n",
            ":2: keys.alice.quota.calls: ",
        ),
        (
            f"keys:\n  alice: {{sha256: {DIGEST}, scopes: [read], quota: {{rows: true}}}}\n",
            "keys.alice.quota.rows: ",
        ),
        (
            f"keys:\n  alice: {{sha256: {DIGEST}, scopes: [read], quota: {{seconds: .inf}}}}\n",
            "keys.alice.quota.seconds: ",
        ),
        (
            f"keys:\n  alice: {{sha256: {DIGEST}, scopes: [read], expires: soon}}\n",
            "keys.alice.expires: ",
        ),
        (
            f"keys:\n  a: {{sha256: {DIGEST}, scopes: [read]}}\n  a: {{sha256: {DIGEST}, scopes: [query]}}\n",
            "'a' stands twice",
        ),
        (
            f"keys:\n  a: {{sha256: {DIGEST}, scopes: [read]}}\n  b: {{sha256: {DIGEST}, scopes: [query]}}\n",
            ":3: keys.b.sha256: the same key as 'a'",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_the_place(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = written(tmp_path / "keys.yaml", content)
    with pytest.raises(Mistake) as raised:
        Keyring.load(path)
    assert str(path) in str(raised.value)
    assert complaint in str(raised.value)
    with pytest.raises(Mistake):
        add(path, "bob", BOTH)
    assert path.read_text() == content  # what cannot be read is not written over


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    content = f"keys:\n  alice: {{sha256: {DIGEST}, scopes: [read], expires: 1970-01-01 00:01:00}}\n"
    assert read(written(tmp_path / "keys.yaml", content))["alice"].expires == 60.0


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="cannot be written: No such file"):
        add(tmp_path / "none" / "keys.yaml", "alice", BOTH)
    with pytest.raises(Mistake, match="cannot be read"):
        read(tmp_path)


def _add_some(path: Path, writer: int) -> None:
    for n in range(5):
        add(path, f"w{writer}-{n}", BOTH)


def test_two_writers_lose_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    several = multiprocessing.get_context("spawn")
    writers = [several.Process(target=_add_some, args=(path, n)) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert sorted(read(path)) == sorted(f"w{w}-{n}" for w in range(2) for n in range(5))


def test_the_smaller_budget_counts() -> None:
    quota = Quota(calls=10, seconds=5.0)
    assert quota.within({"calls": 3, "seconds": 60, "rows": 7}) == {
        "calls": 3,
        "seconds": 5.0,
        "rows": 7,
        "bytes": None,
    }
    assert quota.within({}) == {"calls": 10, "seconds": 5.0, "rows": None, "bytes": None}


def keyed(name: str = "alice", **quota: int) -> Key:
    return Key(name, DIGEST, BOTH, Quota(**quota))


def test_so_many_queries_at_once_and_no_more() -> None:
    meter, key = Meter(Time()), keyed(concurrent=2)
    with meter.query(key):
        with pytest.raises(ValueError, match="spoilt"), meter.query(key):
            raise ValueError("spoilt")
        with meter.query(key):
            with pytest.raises(Problem) as raised:
                meter.acquire(key)
            assert (raised.value.status, raised.value.kind) == (429, "too-many-queries")
            assert int(raised.value.headers["Retry-After"]) >= 1
            assert raised.value.hint
            with meter.query(keyed("bob", concurrent=1)):
                pass
    assert meter.running(key) == 0


def test_so_many_queries_in_any_minute_and_no_more() -> None:
    time = Time()
    meter, key = Meter(time), keyed(per_minute=2)
    for _ in range(2):
        with meter.query(key):
            time.now += 20
    with pytest.raises(Problem) as raised:
        meter.acquire(key)
    assert raised.value.headers["Retry-After"] == "20"
    assert meter.running(key) == 0
    time.now += 19.5
    with pytest.raises(Problem) as raised:
        meter.acquire(key)
    assert raised.value.headers["Retry-After"] == "1"
    time.now += 0.5
    with meter.query(key), pytest.raises(Problem):
        meter.acquire(key)


def test_a_quota_that_was_lowered_counts_from_then_on() -> None:
    time = Time()
    meter = Meter(time)
    for _ in range(5):
        with meter.query(keyed(per_minute=5)):
            time.now += 5
    with pytest.raises(Problem) as raised:
        meter.acquire(keyed(per_minute=2))
    assert raised.value.headers["Retry-After"] == "50"  # when the last but one is a minute old


def test_a_query_that_was_refused_does_not_count() -> None:
    time = Time()
    meter, key = Meter(time), keyed(concurrent=1, per_minute=2)
    with meter.query(key):
        for _ in range(5):
            with pytest.raises(Problem, match="at once"):
                meter.acquire(key)
    with meter.query(key):
        pass
    with pytest.raises(Problem, match="a minute"):
        meter.acquire(key)
