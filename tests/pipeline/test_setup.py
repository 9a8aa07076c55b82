"""What Spark needs: found where it is, and missed in words where it is not."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

from api import doctoring
from pipeline import packages
from pipeline.errors import NoSpark
from pipeline.java import find_java
from pipeline.packages import Need, check_spark, needs
from pipeline.session import local_session
from tests.cli.kit import called, finished, started

_ALL = "select title from books"


def a_java(place: Path, script: str) -> Path:
    """A home with a `java` that does what is written here. Most say it on stderr, as the real one does."""
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return place


def saying(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_java_home_comes_first(tmp_path: Path, said: str, version: int) -> None:
    home = a_java(tmp_path / "home", saying(said))
    a_java(tmp_path / "path", saying("22"))
    found = find_java({"JAVA_HOME": str(home), "PATH": str(tmp_path / "path" / "bin")}, ())
    assert (found.home, found.version) == (home, version)


def test_then_the_path_then_the_usual_places(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", saying("1.8.0_402"))
    a_java(tmp_path / "jvm" / "java-11", saying("11.0.2"))
    new = a_java(tmp_path / "jvm" / "java-17", saying("17"))
    path = a_java(tmp_path / "real", saying("18"))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(path / "bin" / "java")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path / "links")}, ()).home == path
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, (tmp_path / "jvm",)).home == new


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (saying("1.8.0_402"), "is Java 8, which is too old"),
        (saying("11.0.2"), "is Java 11, which is too old"),
        ("echo 'libjvm.so is missing' >&2; exit 1", "does not run: libjvm.so is missing"),
        ("exit 3", "does not run: and says nothing"),
        ("echo hello", "does not say which version it is"),
        ("exec sleep 60", "did not say its version within 0.3 seconds"),
    ],
)
def test_one_that_does_not_do_is_named_with_the_reason(tmp_path: Path, script: str, why: str) -> None:
    home = a_java(tmp_path / "home", script)
    with pytest.raises(NoSpark) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": ""}, (), 0.3)
    assert str(caught.value).startswith(
        f"Spark needs Java 17 or newer: JAVA_HOME ({home}) {why}. Install one: apt-get"
    )


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(NoSpark, match="Spark needs Java 17 or newer, and there is none here"):
        find_java({"PATH": str(tmp_path)}, (tmp_path,))
    with pytest.raises(NoSpark, match=r"JAVA_HOME .* cannot be run: No such file"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}, ())


def test_packages_are_those_that_the_project_declares() -> None:
    found = {(need.package, need.extra): need for need in needs()}
    assert found["pandas", "spark"].versions.replace(" ", "") in ("<3,>=2.2", ">=2.2,<3")
    assert found["aiohttp", ""].fault == ""
    assert not [need.fault for need in found.values() if need.extra == "spark" and need.fault]


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("3.0.1", "pandas 3.0.1 is installed, not <3,>=2.2"),
        ("2.1.4", "pandas 2.1.4 is installed, not <3,>=2.2"),
        ("2.3.3", ""),
        ("2.2", ""),
    ],
)
def test_a_version_that_does_not_do(monkeypatch: pytest.MonkeyPatch, version: str, fault: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    assert Need("pandas", "<3,>=2.2", "spark").fault == fault


def test_spark_is_missed_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "pyspark":
            raise metadata.PackageNotFoundError(name)
        return {"pandas": "3.0.1", "protobuf": "5.29.1"}.get(name, "1")

    monkeypatch.setattr(packages.metadata, "version", version)
    with pytest.raises(NoSpark) as caught:
        check_spark()
    said = str(caught.value)
    assert "pyspark is not installed" in said
    assert "pandas 3.0.1 is installed" in said
    assert "protobuf 5.29.1 is installed" in said
    assert said.endswith("Install what goes together: pip install 'mediator[spark]'")
    with pytest.raises(NoSpark), local_session():
        pass


# In a process where nothing of these extras is installed, whatever is on this machine.
_WITHOUT = """\
import sys
from importlib import metadata

GONE = {"pyspark", "py4j", "pandas", "fastapi", "uvicorn", "starlette"}


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def version(name, version=metadata.version):
    if name in GONE:
        raise metadata.PackageNotFoundError(name)
    return version(name)


sys.meta_path.insert(0, Missing())
metadata.version = version
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has the core alone."""
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT, encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("query", "--engine", "spark", _ALL), "pyspark is not installed"),
        (("serve",), "is needed for this, and is not installed: pip install 'mediator[api]'"),
    ],
)
def test_what_is_not_installed_is_named(bare: dict[str, str], command: tuple[str, ...], said: str) -> None:
    code, out, complaint = finished(started(*command, "--demo", env=bare))
    assert (code, out) == (2, b"")
    assert said in complaint
    assert "internal" not in complaint
    assert "being started" not in complaint


def test_the_core_goes_without(bare: dict[str, str], tmp_path: Path) -> None:
    code, out, said = finished(started("query", "--engine", "auto", _ALL, "--demo", env=bare))
    assert code == 0, said
    assert out.count(b"\n") > 1_000
    harvest = ("harvest", "books", "--demo", "--store", str(tmp_path / "store"))
    code, _, said = finished(started(*harvest, env=bare))
    assert code == 0, said


def test_the_doctor_finds_what_is_here(tmp_path: Path) -> None:
    done = called("doctor", "--store", str(tmp_path / "store"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert f"ok       Python: {'.'.join(map(str, sys.version_info[:3]))}" in lines
    assert f"ok       the store: {tmp_path / 'store'} can be written" in lines
    assert any(line.startswith("ok       Java: Java ") for line in lines)
    told = json.loads(called("doctor", "--json").stdout)
    assert told["ok"] is True
    assert {"name", "purpose", "found", "missing", "fix", "core", "ok"} == set(told["items"][0])


def test_the_doctor_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", saying("11"))))
    monkeypatch.setattr("pipeline.java.find_java.__defaults__", (None, (), 1.0))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = called("doctor", "--store", str(tmp_path / "file" / "store"))
    assert done.exit_code == doctoring.LACKING
    java = f"missing  Java, for Spark: JAVA_HOME ({tmp_path / 'home'}) is Java 11, which is too old. apt-get install"
    assert any(line.startswith(java) for line in done.stdout.splitlines())
    assert f"{tmp_path / 'file' / 'store'}: Not a directory. Make it writable" in done.stdout
    # Java alone is nothing that the engine needs.
    assert called("doctor").exit_code == 0
    assert called("doctor", "--spark").exit_code == doctoring.LACKING
