"""A log: a folder to which the answers of one query are written once, piece by piece, before anybody uses them.

A site cannot be asked again and be expected to say the same. So what a stream gives comes from the log, and a
micro-batch that is repeated reads the same pieces again. In the folder are:

- `log.json`, which says what query it belongs to, and its own id, which offsets carry;
- `00000000.arrow`, `00000001.arrow`, ...: the pieces. Each appears under its name when it is whole, and never changes;
- `end.json`, when there are no more: how many there are, and the completeness report;
- `store`, while it is being written: what the sites have answered, so that who goes on with it need not ask again;
- `lock`, held by the one process that writes. A process that is killed holds it no more.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import LogError
from pipeline.files import new_of, put, put_text, synced, written

_FORMAT = 1
_WHOSE, _END, _LOCK, _STORE = "log.json", "end.json", "lock", "store"
_PIECE = re.compile(r"(\d{8,})\.arrow")
_ELSEWHERE = re.compile(r"[a-zA-Z][\w+.-]+:")


@dataclass(frozen=True, slots=True)
class End:
    """That there are no more pieces."""

    pieces: int
    report: Mapping[str, Any]


class Log:
    """One that is there, and belongs to the query that was meant."""

    def __init__(self, folder: Path, id_: str) -> None:
        self.folder = folder
        self.id = id_

    @classmethod
    def of(cls, folder: str, whose: Mapping[str, Any]) -> Log:
        """The log of this query, which is begun where there is none yet. Raises `LogError`."""
        if _ELSEWHERE.match(folder) and not folder.startswith("file:"):
            raise LogError(
                f"{folder}: a log is a folder of the file system, local or mounted, that the driver and every executor "
                "see by the same path"
            )
        path = Path(
            folder.removeprefix("file:").replace("///", "/", 1) if folder.startswith("file:") else folder
        )
        try:
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, _begun(path, whose))
        except OSError as error:
            raise LogError(f"{path}: a log cannot be kept there: {error.strerror or error}") from None

    @property
    def store(self) -> Path:
        return self.folder / _STORE

    def pieces(self) -> int:
        """How many there are. Raises `LogError` where one before them is gone."""
        numbers = {int(match[1]) for name in os.listdir(self.folder) if (match := _PIECE.fullmatch(name))}
        count = max(numbers, default=-1) + 1
        # What appears while the folder is listed may be left out of the list.
        missing = [
            number for number in range(count) if number not in numbers and not self.piece(number).exists()
        ]
        if missing:
            raise LogError(
                f"{self.piece(missing[0])} is missing: a log must not be changed. Begin another, with a new checkpoint"
            )
        return count

    def piece(self, number: int) -> Path:
        return self.folder / f"{number:08d}.arrow"

    @property
    def end(self) -> End | None:
        """None while there may be more pieces."""
        try:
            said = json.loads((self.folder / _END).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        end = End(said["pieces"], said["report"])
        # What comes as one piece is announced before it is there.
        return end if self.pieces() >= end.pieces else None

    @contextmanager
    def writing(self) -> Iterator[Writer | None]:
        """Who may write to it; None while another process does, in which case the pieces come from there."""
        file = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield Writer(self)
        finally:
            os.close(file)


class Writer:
    """Adds pieces to a log. There is one at a time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next = log.pieces()
        for left in log.folder.glob(".*.arrow.new"):  # by one that was killed
            left.unlink(missing_ok=True)

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """The next piece. It is on the disk when this returns, and seen by others only then."""
        target = self._log.piece(self._next)
        new = new_of(target)
        with pa.OSFile(str(new), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        put(new, target)
        self._next += 1

    def end(self, report: Mapping[str, Any], pieces: int | None = None) -> None:
        """There are no more, or so many in all."""
        said = {"pieces": self._next if pieces is None else pieces, "report": report}
        put_text(self._log.folder / _END, json.dumps(said, default=str))


def read_piece(path: Path) -> Iterator[pa.RecordBatch]:
    """Its batches. Raises `LogError` where it is not to be had."""
    try:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
    except (OSError, pa.ArrowInvalid) as error:
        raise LogError(
            f"{path}: this piece of the log cannot be read here ({error}): the log must be a folder that every "
            "executor sees, and must not be changed"
        ) from None


def _begun(folder: Path, whose: Mapping[str, Any]) -> str:
    """The log's id. Of two processes that begin it at once one does."""
    target = folder / _WHOSE
    mine = {"format": _FORMAT, "id": uuid.uuid4().hex, **whose}
    if not target.exists():
        new = folder / f".{mine['id']}.new"
        written(new, json.dumps(mine, indent=1, default=str))
        with suppress(FileExistsError):
            os.link(new, target)
        new.unlink()
        synced(folder)
    try:
        there = json.loads(target.read_text(encoding="utf-8"))
    except ValueError:
        raise LogError(f"{target}: not what a log begins with. Name another folder") from None
    if there.get("format") != _FORMAT:
        raise LogError(
            f"{folder}: a log of another version ({there.get('format')}, this is {_FORMAT}). Name another folder"
        )
    for name, value in json.loads(json.dumps(whose, default=str)).items():
        if there.get(name) != value:
            raise LogError(
                f"{folder}: this log belongs to another query: its {name} is {_short(there.get(name))}, not "
                f"{_short(value)}. Name another folder, and another checkpoint"
            )
    return str(there["id"])


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 200 else f"{text[:200]}..."
