"""What the README and the tutorial of the clients show of HTTP can be done, as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.http.serving import Served

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Over HTTP")[2].partition("\n## ")[0]
SHOWN = "http://127.0.0.1:8080"


def test_curl_shows_rows_and_whether_they_are_all(served: Served) -> None:
    (command,) = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    told = subprocess.run(
        ["bash", "-c", command.replace(SHOWN, served.url)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    records = [json.loads(line) for line in told.stdout.splitlines()]
    assert records[0]["columns"][1] == {"name": "price", "type": "DOUBLE"}
    assert records[-1]["status"] == "complete"
    assert all(row["price"] < 9 for r in records if r["type"] == "rows" for row in r["rows"])


def test_the_examples_in_python_run(served: Served) -> None:
    examples = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", example.replace(SHOWN, served.url)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_pandas_reads_by_the_address_alone(served: Served) -> None:
    (said,) = re.findall(r"`(pandas\.read_sql\(.*?\))`", SECTION)
    example = said.replace("SELECT ...", "SELECT title FROM books").replace("127.0.0.1:8080", served.url[7:])
    done = subprocess.run(
        [sys.executable, "-c", f"import pandas\nprint(len({example}))"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "300", done.stderr
