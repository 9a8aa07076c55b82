"""What `docs/clients.md` shows can be done."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.conftest import House

_PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)


# What the entry points say, also where the package was installed before it had them.
_REGISTERED = """from sqlalchemy.dialects import registry
registry.register("mediator", "api.client.dialect", "MediatorDialect")
"""

# What asyncio says of a busy machine: a step took 0.1 seconds.
_NOT_SO_SLOW = """
import logging
logging.getLogger("asyncio").setLevel(logging.ERROR)
"""


@pytest.mark.parametrize("number", range(len(_BLOCKS)))
def test_it_runs(calm: House, number: int) -> None:
    """Each in a process of its own; the first imports are those of the page."""
    code = _BLOCKS[number].replace("http://127.0.0.1:8080", calm.url)
    code = code.replace("mediator://127.0.0.1:8080", calm.url.replace("http", "mediator"))
    before = (
        "from api.client import connect\n" + _NOT_SO_SLOW + (_REGISTERED if "mediator://" in code else "")
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning", "-c", before + code],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_nothing_of_the_engine_is_loaded() -> None:
    code = "import sys, api.client, api.client.dbapi; print({name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'(\w+)'", done.stdout))
    assert not loaded & {
        "mediator",
        "wrappers",
        "sources",
        "duckdb",
        "sqlglot",
        "fastapi",
        "sqlalchemy",
        "pandas",
    }
