"""`mediator wrapper schema`: what editors check declarations with."""

from __future__ import annotations

import json
from pathlib import Path

from sources.schema import json_schema
from tests.cli.kit import called


def test_the_schema_is_printed_or_written(tmp_path: Path) -> None:
    printed = called("wrapper", "schema")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == json_schema()
    file = tmp_path / "declaration.json"
    assert called("wrapper", "schema", "--output", str(file)).exit_code == 0
    assert json.loads(file.read_text()) == json_schema()


def test_where_it_cannot_be_written_is_said(tmp_path: Path) -> None:
    refused = called("wrapper", "schema", "-o", str(tmp_path / "nowhere" / "declaration.json"))
    assert refused.exit_code == 2
    assert "cannot be written: No such file or directory" in refused.stderr
