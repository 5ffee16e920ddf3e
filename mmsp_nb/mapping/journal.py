"""What has been answered, so that it is not asked again: a file of JSON lines, and the memory of this process.

Each answer is found by what was asked: a hash of the model, the config, the type, the tools and the row's messages. So
rows may be added, moved or taken out between two runs, and a changed prompt is asked anew.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pydantic_core

from mmsp_nb._version import __version__
from mmsp_nb.masking import without_secrets
from mmsp_nb.protocol.suggestions import shown

__all__ = ["Journal", "key_of", "memory"]

FORMAT = "mmsp_nb rows"
VERSION = 1

REMEMBERED = 50_000
"""So many answers of unfinished runs are kept in this process."""


def key_of(plan: str, messages: Iterable[Mapping[str, Any]]) -> str:
    """The name of what is asked: ``plan`` stands for all that the rows have in common."""
    said = [{"role": message["role"], "items": message["content_items"]} for message in messages]
    written = _written(said, inf_nan_mode="strings")
    return hashlib.sha256(plan.encode() + b"\n" + written).hexdigest()[:32]


class Journal:
    """A checkpoint file: one line for each answer, written when it has come.

    A line is written at once and whole, so that a process that is killed loses none that was there. A line that cannot
    be read, as the last one of a full disk, is left out with a warning that says where it is.

    Args:
        path: The file; it is made when it is not there.

    Raises:
        ValueError: the file is something else.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint is the path of a file such as 'answers.jsonl', not {shown(path)}")
        self.path = Path(path).expanduser()
        self._records: dict[str, dict[str, Any]] = {}
        self._whole = True  # whether the file ends with a line's end
        self._failed = False
        self._read()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except FileNotFoundError:
            raise FileNotFoundError(
                errno.ENOENT, "checkpoint cannot be made: there is no such folder", str(self.path.parent)
            ) from None
        if not self._records and os.fstat(self._file).st_size == 0:
            self._append({"format": FORMAT, "version": VERSION, "by": f"mmsp_nb {__version__}"})

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of an answer; None when there is none."""
        return self._records.get(key)

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep an answer. Keys do not get into the file. A disk that is full is warned of once; the run goes on."""
        kept: dict[str, Any] = without_secrets(record)
        self._records[key] = kept
        try:
            self._append({"key": key, **kept})
        except OSError as error:
            self._whole = False
            if not self._failed:
                self._failed = True
                warnings.warn(
                    f"{self.path} cannot be written ({error.strerror}): what is answered from here on is not in it",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def close(self) -> None:
        """Have the system write what it still holds. A second call does nothing."""
        file, self._file = self._file, -1
        if file >= 0:
            try:
                os.fsync(file)
            except OSError:  # a pipe, or a disk that was warned of
                pass
            os.close(file)

    def _append(self, record: Mapping[str, Any]) -> None:
        line = _written(record) + b"\n"
        if not self._whole:
            line = b"\n" + line
        written = os.write(self._file, line)
        self._whole = written == len(line)
        if not self._whole:
            raise OSError(28, "no space left on device")

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        if not data:
            return
        first, *lines = data.split(b"\n")
        head = _parsed(first)
        if head is None or head.get("format") != FORMAT:
            raise ValueError(f"{self.path} is no checkpoint of map(), and is left as it is: name another file")
        if head.get("version") != VERSION:
            by = head.get("by", "another version")
            raise ValueError(f"{self.path} was written by {by}, which writes other records: name another file")
        self._whole = not lines or lines[-1] == b""
        for number, line in enumerate(lines, 2):
            if not line:
                continue
            record = _parsed(line)
            if record is None or not isinstance(record.get("key"), str):
                warnings.warn(
                    f"{self.path}, line {number}: damaged, and left out", RuntimeWarning, stacklevel=_callers()
                )
            else:
                self._records[record["key"]] = record


def _callers() -> int:
    """The ``stacklevel`` at which a warning names the line that called `map`, and none of ours."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "mmsp_nb",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1
    return level


def _written(value: Any, **options: Any) -> bytes:
    """JSON in one line. Text that UTF-8 cannot hold (half an emoji) is written escaped."""
    try:
        return pydantic_core.to_json(value, fallback=repr, bytes_mode="base64", **options)
    except pydantic_core.PydanticSerializationError:
        return json.dumps(value, default=_as_text).encode("ascii")


def _as_text(value: Any) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else repr(value)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class Memory:
    """The answers of runs that did not come to a good end, for the next run of the same cell. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def take(self, key: str) -> Any:
        """The answer of that name, which is forgotten then; None when there is none."""
        with self._lock:
            return self._kept.pop(key, None)

    def keep(self, answers: Mapping[str, Any]) -> None:
        """Remember them; the oldest are forgotten beyond `REMEMBERED`."""
        with self._lock:
            self._kept.update(answers)
            while len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)


memory = Memory()
"""That of this process."""
