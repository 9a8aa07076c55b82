"""A build backend (PEP 517) for pure Python: the project's one package, and its metadata, in a zip file."""

from __future__ import annotations

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Any

_METADATA = "Metadata-Version: 2.1\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = project["name"].replace("-", "_")
    stem = f"{package}-{project['version']}"
    info = f"{stem}.dist-info"
    groups = project.get("entry-points", {})
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in groups.items()
    )
    needs = "".join(f"Requires-Dist: {name}\n" for name in project.get("dependencies", ()))
    files = {str(path): path.read_bytes() for path in sorted(Path(package).glob("*.*"))}
    files |= {
        f"{info}/METADATA": f"{_METADATA}Name: {project['name']}\nVersion: {project['version']}\n{needs}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: wheels\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entries.encode(),
    }
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for name, data in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            archive.writestr(name, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
