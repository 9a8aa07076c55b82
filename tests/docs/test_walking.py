"""What follows the tutorial notices where a page is wrong."""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from pathlib import Path

import pytest

from tests.docs.walking import Change, Command, File, Wrong, comparable, pattern, steps, walk

_ENV = {"PATH": os.environ["PATH"], "TERM": "dumb"}
_PAGE = """Some text.

```yaml
# folder/a.yaml
one: 1
two: 2
```

```diff
--- folder/a.yaml
 one: 1
-two: 2
+two: 3
```

```console
$ cat folder/a.yaml
# folder/a.yaml
...
two: 3
$ export NAME=world
$ echo "hello $NAME, in 17 ms"; false
hello ..., in 3 ms
$ echo $?
1
$ echo one \\
    two
one two
```
"""


def test_a_page_that_is_right(tmp_path: Path) -> None:
    assert walk(_PAGE, tmp_path, _ENV, {}) == 7
    assert (tmp_path / "folder" / "a.yaml").read_text() == "# folder/a.yaml\none: 1\ntwo: 3\n"


def test_its_steps_know_their_lines() -> None:
    found = steps(_PAGE)
    assert [type(step) for step in found] == [File, Change, Command, Command, Command, Command, Command]
    assert found[1] == Change(9, "folder/a.yaml", "one: 1\ntwo: 2\n", "one: 1\ntwo: 3\n")
    lines = _PAGE.splitlines()
    assert [
        lines[s.line - 1] == f"$ {s.text}".partition("\n")[0] for s in found if isinstance(s, Command)
    ] == [True] * 5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\ntwo: 3\n$", "\ntwo: 4\n$", "line 17: $ cat folder/a.yaml"),  # a wrong output
        ("...\ntwo: 3\n", "one: 1\n", "line 17: $ cat"),  # one line too few
        ("hello ...,", "hello nobody,", "hello world, in 0 s"),  # what it is in fact is told
        ("$ echo $?\n1\n", "", "ends with exit code 1, and the page does not show it"),
        ("$ echo $?\n1\n", "$ echo $?\n0\n", "line 24: $ echo"),
        ("-two: 2\n", "-two: 7\n", "this is not, or not once, in folder/a.yaml"),
        ("# folder/a.yaml\none", "one", "nobody knows what to do with this block: yaml 'one: 1'"),
        ("```console", "```sh", "nobody knows what to do with this block: sh"),
        ("$ cat folder/a.yaml", "$ cat folder/b.yaml", "No such file"),
    ],
)
def test_a_page_that_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert _PAGE.count(old) == 1
    with pytest.raises(Wrong, match=re.escape(said)):
        walk(_PAGE.replace(old, new), tmp_path, _ENV, {})


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("", "", True),
        ("", "a\n", False),
        ("a\n", "", False),
        ("...\n", "", True),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("a ...)\n", "a (b)\n", True),
        ("a ...)\n", "a (b)\nc)\n", False),
        ("took 0.02 s, then 1,200 ms\n", "took 3.5 s, then 7 ms\n", True),
        ("2 rows\n", "3 rows\n", False),
        ("a\n", "a   \n", True),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_agrees(shown: str, printed: str, agree: bool) -> None:
    assert (pattern(shown).fullmatch(comparable(printed)) is not None) is agree


def test_what_runs_on_behind_is_ended_with_the_page(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    page = (
        "```console\n$ python3 -u -m http.server 8800 --bind 127.0.0.1 &\n"
        "Serving HTTP on 127.0.0.1 port 8800 ...\n$ echo $?\n0\n```\n"
    )
    assert walk(page, tmp_path, _ENV, {"8800": port}) == 2
    for _ in range(100):  # a process that was killed is gone a little later
        with socket.socket() as visitor:
            if visitor.connect_ex(("127.0.0.1", int(port))) == errno.ECONNREFUSED:
                return
        time.sleep(0.1)
    pytest.fail("the server still answers")
