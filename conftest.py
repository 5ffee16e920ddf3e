"""What holds for every test, the notebooks included.

* No test sees a real key, a real endpoint or the settings of whoever runs it.
* No test connects to anything but this machine.
* Jupyter, IPython and matplotlib keep their files in a folder that is removed at the end.
* Notebooks run on the demo model.
* An interrupt interrupts, also where the tests were started in the background of a shell, which ignores it.
* In CI nothing is skipped: a skip is a failure there.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbval.plugin
import pytest

VENDORS = ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "ZAI", "MOONSHOT", "DEEPSEEK", "MINIMAX", "VLLM", "MMSP")
FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR")
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
MADE: list[str] = []

for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN"))]:
    if variable.partition("_")[0] in VENDORS:
        del os.environ[variable]
for variable in ("CLIENT_TYPE", "MMSP_MODEL"):
    os.environ.pop(variable, None)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist inherit the folders
        MADE.append(tempfile.mkdtemp(prefix="mmsp-nb-tests-"))
        for folder in FOLDERS:
            os.environ[folder] = str(Path(MADE[0], folder.lower()))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # processes that tests start would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    socket.socket.connect = only_here(socket.socket.connect)  # type: ignore[method-assign]
    nbval.plugin.setup_coverage = nbval.plugin.teardown_coverage = lambda *_: None  # kernels measure themselves


def pytest_unconfigure() -> None:
    while MADE:
        shutil.rmtree(MADE.pop(), ignore_errors=True)


def only_here(connect: Any) -> Any:
    """``socket.connect`` that fails the test when the address is not on this machine."""

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if not (host.startswith("127.") or host in ("::1", "localhost", "0.0.0.0")):
                pytest.fail(f"a test tried to connect to {host}:{address[1]}; tests only talk to this machine")
        return connect(self, address)

    return guarded


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.path.suffix != ".ipynb":
        return (yield)
    os.environ["MMSP_MODEL"] = "demo"  # inherited by the kernel, which nbval starts with the first cell
    try:
        return (yield)
    finally:
        del os.environ["MMSP_MODEL"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    fail_when_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    fail_when_skipped(report)
    return report


def fail_when_skipped(report: Any) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped, and in CI nothing may be: {reason}"
