"""A real small language model on loopback: SmolLM2-135M-Instruct in llama.cpp, in a child process.

It is good for showing streams, tools and conversations without a key, and weak at everything it says.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from .errors import LocalModelError
from .weights import fetch, find, model_id

__all__ = ["LocalModel", "fetch", "find", "usable_cores"]

# an interrupt goes to all processes of a kernel's group: this one is there for the next question
_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path.append({root!r}); "
    "from mmsp_nb.local.__main__ import main; sys.exit(main(['serve', '--stdin']))"
)


class LocalModel:
    """A running local model.

    Args:
        gguf: the model file; default: found or fetched by `fetch`.
        threads: threads that compute; default 1 on up to two usable cores, else half of them, at most 4.
        n_ctx: context window in tokens.
        n_predict: the longest answer in tokens, for a request without a smaller budget.
        start_timeout: seconds that the start may take.
        port: port of the server; 0 takes a free one.

    `start` returns when it serves, and raises LocalModelError (one line) when it cannot. It ends with `close`, or with
    this process, however that ends.

    ::

        with LocalModel() as model:
            model.base_url, model.api_key      # append /v1/chat/completions, /v1/responses, /v1/messages, ...
    """

    def __init__(
        self,
        gguf: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = None,
        n_ctx: int = 4096,
        n_predict: int = 512,
        start_timeout: float = 60.0,
        port: int = 0,
    ) -> None:
        self.gguf = Path(gguf) if gguf is not None else None
        self.threads = threads or threads_for(usable_cores())
        self.n_ctx, self.n_predict = n_ctx, n_predict
        self.start_timeout, self.port = start_timeout, port
        self.api_key = secrets.token_urlsafe(24)
        self.base_url = ""
        self.model = ""
        self.unknown_settings: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def __repr__(self) -> str:
        return f"LocalModel({self.model or 'not started'}{', ' + self.base_url if self.base_url else ''})"

    @property
    def pid(self) -> int | None:
        """The process id of the model, or None when it does not run."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> LocalModel:
        """Start the process and wait until it serves; a second call while it runs changes nothing."""
        if self.alive:
            return self
        if importlib.util.find_spec("xllamacpp") is None:
            raise LocalModelError('the local model needs its runtime: pip install "mmsp-nb[local]"')
        if not sys.executable:
            raise LocalModelError("the local model runs in a process of its own, which cannot be started here")
        gguf = self.gguf if self.gguf is not None else fetch()
        if not gguf.is_file():
            raise LocalModelError(f"no model file at {str(gguf)!r}")
        self.model = model_id(gguf)
        config = {
            "gguf": str(gguf),
            "model": self.model,
            "n_ctx": self.n_ctx,
            "n_predict": self.n_predict,
            "threads": self.threads,
            "api_key": self.api_key,
            "port": self.port,
            "parent": os.getpid(),
        }
        with tempfile.TemporaryFile() as log:
            facts = self._launch(config, log)
        self.base_url = facts["base_url"]
        self.unknown_settings = facts.get("unknown", [])
        return self

    def _launch(self, config: dict[str, Any], log: IO[bytes]) -> dict[str, Any]:
        # -P and the appended path: files in the working directory must not stand in for modules of ours
        root = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, "-P", "-c", _START.format(root=root)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8"
        )
        assert process.stdin and process.stdout
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.start_timeout, give_up)
        timer.daemon = True
        timer.start()
        line = ""
        try:
            with contextlib.suppress(OSError):  # it died before it read its settings
                process.stdin.write(json.dumps(config) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        finally:
            timer.cancel()
            if not line:
                _end(process)
        facts: dict[str, Any] = json.loads(line) if line else {}
        if "base_url" not in facts:
            code = _end(process)
            raise LocalModelError(self._reason(facts.get("error"), code, late.is_set(), log))
        self._process = process
        return facts

    def _reason(self, error: str | None, code: int, late: bool, log: IO[bytes]) -> str:
        if late:
            return f"the local model did not start within {self.start_timeout:g} s"
        if error:
            return f"the local model did not start: {error}"
        if code in (-4, 0xC000001D):
            return "the local model did not start: this processor lacks AVX2, which the runtime is built for"
        log.seek(0)
        said = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f"the local model did not start (exit {code})" + (f": {said[-1][:200]}" if said else "")

    def close(self) -> None:
        """End the process. Calling it again does nothing."""
        process, self._process = self._process, None
        self.base_url = ""
        if process is not None:
            _end(process)

    def abandon(self) -> None:
        """In a forked child: close this copy of the pipes, so that the model still ends with the parent."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError, AttributeError):
                    pipe.close()  # type: ignore[union-attr]
            process.returncode = 0  # the process is not ours to wait for

    def __enter__(self) -> LocalModel:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()


def _end(process: subprocess.Popen[str]) -> int:
    """Close the standard input of ``process``, wait for its end, or end it; returns its exit status."""
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
    return process.returncode


def threads_for(cores: int) -> int:
    """How many threads compute fastest. On one or two busy cores a second thread slows the first down."""
    return 1 if cores <= 2 else min(4, cores // 2)


def usable_cores(root: Path = Path("/")) -> int:
    """The cores this process may use: those it is bound to, and no more than its container's quota.

    ``root`` is where the file systems ``/proc`` and ``/sys`` are looked for.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(root)
    return max(1, count if quota is None else min(count, int(quota)))


def _quota(root: Path) -> float | None:
    """The number of cores that the cgroups (version 2, else 1) grant, or None without a limit."""
    base = root / "sys/fs/cgroup"
    granted: list[float] = []
    try:
        own = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        own = []
    path = next((line[3:] for line in own if line.startswith("0::")), "/").strip("/")
    places = [base / path, *(base / path).parents] if path else [base]
    for place in places:
        with contextlib.suppress(OSError, ValueError):
            quota, period = (place / "cpu.max").read_text().split()
            if quota != "max":
                granted.append(int(quota) / int(period))
        if place == base:
            break
    for place in (base / "cpu", base / "cpu,cpuacct"):
        with contextlib.suppress(OSError, ValueError):
            limit = int((place / "cpu.cfs_quota_us").read_text())
            if limit > 0:
                granted.append(limit / int((place / "cpu.cfs_period_us").read_text()))
    return min(granted, default=None)
