"""A standalone cluster of Spark's on loopback, and whatever is begun in it: all of it is gone at the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sysconfig
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from pipeline.java import find_java
from pipeline.session import BRIEF, FILES, QUIET, python_in

MARK = "MEDIATOR_CLUSTER"  # the variable that everything that is begun here has
_HOST = "127.0.0.1"
_ROOT = Path(__file__).parents[2]


class Cluster:
    """One worker, that has room for so many executors of one core each."""

    def __init__(self, folder: Path, executors: int = 3, cores: int = 1) -> None:
        self._folder, self._executors, self._cores = folder, executors, cores
        self._flags = f"{BRIEF} -Djava.io.tmpdir={folder / 'tmp'}"
        self._id = uuid.uuid4().hex
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.variables: dict[str, str] = {}  # of all that is begun from now on
        self.master = f"spark://{_HOST}:{_free_port()}"

    def __enter__(self) -> Self:
        for name in ("conf", "local", "tmp"):
            (self._folder / name).mkdir(parents=True)
        (self._folder / "conf" / "log4j2.properties").write_text(QUIET, encoding="utf-8")
        self._python = python_in(self._folder)
        try:
            self._daemon("master.Master", "--host", _HOST, "--port", self.master.rpartition(":")[2])
            self._daemon(
                *("worker.Worker", "--host", _HOST, "--cores", str(self._executors * self._cores)),
                *(
                    "--memory",
                    f"{700 * self._executors}m",
                    "--work-dir",
                    str(self._folder / "work"),
                    self.master,
                ),
            )
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submitted(self, program: Path, *arguments: str, **conf: str) -> subprocess.CompletedProcess[str]:
        """As a user does it, to the end."""
        said = {
            "spark.executor.cores": str(self._cores),
            "spark.executor.memory": "512m",
            "spark.cores.max": str(self._executors * self._cores),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.extraJavaOptions": self._flags,
            "spark.executor.extraJavaOptions": self._flags,
            "spark.ui.enabled": "false",
            **FILES,
            "spark.local.dir": str(self._folder / "local"),
            **conf,
        }
        settings = [part for name, value in said.items() for part in ("--conf", f"{name}={value}")]
        return subprocess.run(
            [_script("spark-submit"), "--master", self.master, *settings, str(program), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def processes(self) -> list[int]:
        """All that was begun here and is there still."""
        wanted = f"{MARK}={self._id}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError):
                    if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                        found.append(int(name))
        return found

    def close(self) -> None:
        while pids := self.processes():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for daemon in self._daemons:
            daemon.wait()

    def _daemon(self, what: str, *arguments: str) -> None:
        daemon = subprocess.Popen(
            [_script("spark-class"), f"org.apache.spark.deploy.{what}", *arguments, "--webui-port", "0"],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._daemons.append(daemon)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            MARK: self._id,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": self._python,
            "PYTHONPATH": str(_ROOT),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_CONF_DIR": str(self._folder / "conf"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {self._flags}",
            "TMPDIR": str(self._folder / "tmp"),
            **self.variables,
        }


def _free_port() -> int:
    with socket.socket() as there:
        there.bind((_HOST, 0))
        port: int = there.getsockname()[1]
        return port


def _script(name: str) -> str:
    scripts = Path(sysconfig.get_path("scripts")) / name
    return str(scripts if scripts.exists() else Path(pyspark.__file__).parent / "bin" / name)
