"""A throw-away Jupyter server on 127.0.0.1 and Debian's Chromium in front of it, driven through Playwright.

Everything lies in one temporary folder that goes away at the end; only processes started here are stopped.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000  # milliseconds; conditions are met far sooner, this bounds a broken run
UNWANTED = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "MMSP_NB_LIVE")  # the kernel is to behave as for a person

expect.set_options(timeout=PATIENCE)


class Jupyter:
    """JupyterLab (``app="lab"``) or Notebook 7 (``"notebook"``). Use it as a context manager.

    theme: ``light`` or ``dark``. scale: device pixels to a CSS pixel. env: more variables for the server, and so for
    the kernels.
    """

    def __init__(self, browser: Browser, app: str = "lab", theme: str = "light", scale: float = 1, **env: str) -> None:
        self.browser, self.app, self.theme, self.scale, self.env = browser, app, theme, scale, env
        self.folder = Path(tempfile.mkdtemp(prefix="mmsp-nb-browser-"))
        self.root = self.folder / "notebooks"
        self.token = secrets.token_hex(16)
        self.count = 0
        self.ends = ExitStack()
        self.ends.callback(shutil.rmtree, self.folder, ignore_errors=True)

    def __enter__(self) -> Jupyter:
        self.root.mkdir()
        self._write_settings()
        try:
            self._start_server()
            self.context = self.browser.new_context(
                viewport={"width": 1100, "height": 900},
                device_scale_factor=self.scale,
                color_scheme="dark" if self.theme == "dark" else "light",
            )
            self.ends.callback(self.context.close)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.close()

    def _write_settings(self) -> None:
        theme = "JupyterLab Dark" if self.theme == "dark" else "JupyterLab Light"
        for name, value in {
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "apputils-extension/themes": {"theme": theme},
            "docmanager-extension/plugin": {"autosave": False},
        }.items():
            path = self.folder / "settings/@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))

    def _start_server(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        env = {name: value for name, value in os.environ.items() if name not in UNWANTED}
        for name in ("config", "data", "runtime"):
            env[f"JUPYTER_{name.upper()}_DIR"] = str(self.folder / name)
        env["JUPYTERLAB_SETTINGS_DIR"] = str(self.folder / "settings")
        env["JUPYTERLAB_WORKSPACES_DIR"] = str(self.folder / "workspaces")
        env["IPYTHONDIR"] = str(self.folder / "ipython")
        module = "jupyterlab" if self.app == "lab" else "notebook"
        expose = "LabApp" if self.app == "lab" else "JupyterNotebookApp"
        command = [sys.executable, "-m", module, "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
        command += ["--LanguageServerManager.autodetect=False"]
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={self.root}"]
        command += [f"--IdentityProvider.token={self.token}", f"--{expose}.expose_app_in_browser=True"]
        self.url = f"http://127.0.0.1:{port}"
        log = self.folder / "server.log"
        with log.open("w") as output:
            self.server = subprocess.Popen(
                command, env={**env, **self.env}, cwd=self.root, stdout=output, stderr=subprocess.STDOUT
            )
        self.ends.callback(end, self.server)
        deadline = time.monotonic() + PATIENCE / 1000
        while not self._answers():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Jupyter server did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def notebook(self, *cells: str) -> Notebook:
        """Open a new notebook with these code cells, once its kernel is ready."""
        return self.open(document(cells))

    def open(self, notebook: dict[str, Any]) -> Notebook:
        """The same with a whole notebook, outputs included; nobody has signed it, so that it is not trusted."""
        self.count += 1
        path = self.root / f"test{self.count}.ipynb"
        path.write_text(json.dumps(notebook))
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        where = "lab/tree" if self.app == "lab" else "notebooks"
        page.goto(f"{self.url}/{where}/{path.name}?token={self.token}" + ("&reset" if self.app == "lab" else ""))
        page.wait_for_function(f"() => {{ {PANEL} return panel && panel.sessionContext.isReady; }}")
        return Notebook(page)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to end, which ends its kernels; insist after a while."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


PANEL = """
const shell = window.jupyterapp && window.jupyterapp.shell;
const panel = shell && [shell.currentWidget, ...shell.widgets('main')].find(w => w && w.content && w.sessionContext);
"""


class Notebook:
    """One open notebook: what a person does with it, and what they see."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def output(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-OutputArea").first

    def prompt(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-InputPrompt")

    def start(self, index: int) -> None:
        """Click into a cell and press Shift+Enter."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")

    def run(self, *indexes: int) -> None:
        """Run cells one after the other, each to its end."""
        for index in indexes:
            self.start(index)
            self.finished(index)

    def finished(self, index: int) -> None:
        """Wait until the cell has its number."""
        expect(self.prompt(index)).to_have_text(re.compile(r"\[\d+\]"))

    def is_running(self, index: int) -> bool:
        return "*" in (self.prompt(index).text_content() or "")

    def interrupt(self) -> None:
        """The toolbar's stop button."""
        self.page.locator('[data-jp-item-name="interrupt"] jp-button').click()

    def saved(self) -> dict[str, Any]:
        """The notebook as it would be saved now."""
        return self.page.evaluate(f"() => {{ {PANEL} return panel.content.model.toJSON(); }}")

    def save(self) -> None:
        """Save it, which signs what this kernel has put out."""
        self.page.evaluate(f"() => {{ {PANEL} return panel.context.save(); }}")

    def close(self) -> None:
        self.page.evaluate(f"() => {{ {PANEL} return panel.sessionContext.shutdown(); }}")
        self.page.close()


def document(cells: Sequence[str]) -> dict[str, Any]:
    """A notebook in the file format, with code cells only."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for number, source in enumerate(cells)
        ],
    }
