"""The client in the cells of a notebook that a real kernel runs, each of them within the kernel's event loop."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from tests.client.conftest import House


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of one that runs in these packages, whatever else this machine's notebooks run in."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    spec = tmp_path / "kernels" / "here"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "here", "language": "python"}), encoding="utf-8"
    )
    return "here"


async def run(kernel: str, *cells: str) -> list[list[dict[str, Any]]]:
    """What each cell shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    # Not by TCP: whoever starts a kernel chooses its ports before it, and others may have them by then. Nor by
    # sockets of the usual name: it is the same for all kernels that are started in one folder.
    with TemporaryDirectory(prefix="kernel") as sockets:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/socket"}})
        await NotebookClient(notebook, kernel_name=kernel, timeout=120, config=config).async_execute()
    return [cell["outputs"] for cell in notebook["cells"]]


async def test_cells_that_wait_and_cells_that_do_not(calm: House, kernel: str) -> None:
    connected, counted, framed, rows = await run(
        kernel,
        f"from api.client import connect, connect_async\nmediator = connect({calm.url!r})",
        "sum(b.num_rows for b in mediator.query('SELECT title FROM books').batches())",
        "mediator.query('SELECT year, count(*) AS books FROM books GROUP BY year ORDER BY year LIMIT 2').pandas()",
        f"async with connect_async({calm.url!r}) as waiting:\n"
        "    query = await waiting.query('SELECT title FROM books LIMIT 3')\n"
        "    table = await query.arrow()\n"
        "mediator.close()\n"
        "table.num_rows",
    )
    assert connected == []
    assert counted[0]["data"]["text/plain"] == "300"
    assert "<table" in framed[0]["data"]["text/html"]
    assert rows[0]["data"]["text/plain"] == "3"


FAULTY = """
from api.client import connect
from api.client.errors import UnknownColumn

with connect({url!r}) as mediator:
    try:
        mediator.query("SELECT titel FROM books").arrow()
    except UnknownColumn as error:
        print(error)
"""


async def test_an_error_shows_what_is_wrong_and_where(calm: House, kernel: str) -> None:
    (shown,) = await run(kernel, FAULTY.format(url=calm.url))
    assert "titel" in shown[0]["text"]
    assert "title" in shown[0]["text"]
