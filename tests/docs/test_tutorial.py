"""The tutorial is followed to its end, with its own site on a free port: what it shows is what happens."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest

from tests.docs.walking import Wrong, steps, walk

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "tutorial.md").read_text(encoding="utf-8")


def _environment(folder: Path) -> dict[str, str]:
    """A reader's, with the commands of this Python first. What is installed goes into a folder, from no network."""
    installed = str(folder / "installed")
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": installed,
        "PIP_TARGET": installed,
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # as pip reads it, this is what `--no-build-isolation` says
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_it_is_so(tmp_path: Path) -> None:
    assert walk(_PAGE, tmp_path, _environment(tmp_path), {"8800": _free_port()}) == len(steps(_PAGE))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"copies": 3}', '"copies": 4}', '{"stock": [{"id": 101, "copies": 3}, {"id": 102, "copies": 0}]}'),
        ('{"error": "at most 4 ids"}\n', "", "--- on the page:\n--- in fact (exit code 0):\n{"),
        ("at most 4 ids", "at most four ids", '{"error": "at most 4 ids"}'),
    ],
)
def test_that_it_is_not_so_would_be_noticed(old: str, new: str, said: str, tmp_path: Path) -> None:
    beginning, _, rest = _PAGE.partition("## 3. ")
    assert rest
    head, found, tail = beginning.rpartition(old)
    assert found
    with pytest.raises(Wrong, match=re.escape(said)):
        walk(head + new + tail, tmp_path, _environment(tmp_path), {"8800": _free_port()})


def test_it_leads_somewhere_and_is_found() -> None:
    links = re.findall(r"\]\(([\w./-]+?\.md)(?:#[\w-]+)?\)", _PAGE)
    assert len(links) >= 5
    assert [link for link in links if not (_DOCS / link).is_file()] == []
    assert "(docs/tutorial.md)" in (_DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "(tutorial.md)" in (_DOCS / "declaring-a-site.md").read_text(encoding="utf-8")
