"""The reference implementation as a black box: its own environment, its own process, JSON lines in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("driver.py")

sys.path.insert(0, str(ROOT / "scripts"))
import environments  # noqa: E402


class Reference:
    """The running reference. One that stops answering is replaced: the case is then reported as such."""

    def __init__(self, timeout: float = 90.0) -> None:
        self._python = environments.make("reference")
        self._timeout = timeout
        self._home = tempfile.TemporaryDirectory(prefix="reference-")
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()
        self._home.cleanup()

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """The result of one case."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        # a hung reference is ended: its stdout then closes, and readline returns
        watchdog = threading.Timer(self._timeout, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            self._stop()
            return {"driver": "the reference ended or hung"}
        return json.loads(line)

    def _start(self) -> subprocess.Popen[str]:
        # an environment of its own: no keys, no proxies, no traces in the user's home
        environment = {
            "HOME": self._home.name,
            "MMSP_CACHE_DIR": self._home.name,
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
        }
        self._process = subprocess.Popen(
            [self._python, "-W", "ignore", DRIVER, "mmsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env=environment,
        )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
