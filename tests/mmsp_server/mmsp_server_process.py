"""Starts the reference's server and ends it. Nothing is used of it but its command line and its HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.reference import environments

KEY = "team-key"
DEMO = {
    "demo": ("openai-chat", "/v1"),
    "demo-responses": ("openai-responses", "/v1"),
    "demo-messages": ("ant-messages", ""),
    "demo-interactions": ("google-official", ""),
    "demo-generate": ("google-genai", ""),
}
"""The server's model -> how it reaches the demo model."""
_READY = "Running on http"
_ATTEMPTS = 3
_PATIENCE = 60.0


class MmspServer:
    """A server with these rows of models, for callers with `KEY`; its files go into ``folder``."""

    def __init__(self, rows: list[dict[str, Any]], folder: Path) -> None:
        self.folder = folder
        self._config = folder / "server.json"
        self._config.write_text(json.dumps({"api_keys": [KEY], "models": [{"api_key": "k", **row} for row in rows]}))
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""

    def __enter__(self) -> MmspServer:
        said = ""
        for _ in range(_ATTEMPTS):  # somebody else may take the port that was free a moment ago
            port = _free_port()
            said = self._start(port)
            if _READY in said:
                self.base_url = f"http://127.0.0.1:{port}/v1"
                return self
            self._stop()
        raise RuntimeError(f"the server did not start:\n{said}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _start(self, port: int) -> str:
        environment = {"HOME": str(self.folder), "MMSP_CACHE_DIR": str(self.folder), "PATH": os.defpath}
        self._process = process = subprocess.Popen(
            [environments.python_of("reference"), "-u", "-W", "ignore", "-m", "mmsp.integration.server"]
            + ["--config", self._config, "--host", "127.0.0.1", "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env={**environment, "LANG": "C.UTF-8"},
            cwd=self.folder,
        )
        assert process.stdout is not None
        watchdog = threading.Timer(_PATIENCE, process.kill)
        watchdog.start()
        said = ""
        for line in process.stdout:
            said += line
            if _READY in line:
                # what else it says must not fill the pipe
                threading.Thread(target=process.stdout.read, daemon=True).start()
                break
        watchdog.cancel()
        return said

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
