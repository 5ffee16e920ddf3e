"""Proves that binder/ gives a working Binder, without Docker: `binder.py [--keep]`, or `make binder`.

What repo2docker does is done in a temporary folder: the files of the repository are copied, an environment is made of
binder/'s files alone, postBuild runs. Then every notebook runs from top to bottom, and JupyterLab is started and driven
in Chromium. All of it with an empty home, without keys, and with 2 GB of memory: no process may map more
(RLIMIT_AS), and all of them together may not use more (proportional set size, measured all the time).
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 2 * 1024**3
QUICKSTART = "notebooks/quickstart.ipynb"
UNWANTED = ("_API_KEY", "_BASE_URL", "_TOKEN", "MMSP_", "CLIENT_TYPE", "VIRTUAL_ENV", "PYTHONPATH", "JUPYTER")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build what Binder builds, and try it.")
    parser.add_argument("--keep", action="store_true", help="leave the folder in place")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mmsp-nb-binder-"))
    try:
        return Binder(folder).run()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"kept: {folder}")


class Binder:
    def __init__(self, folder: Path) -> None:
        self.repository, self.venv, self.home = folder / "repository", folder / "venv", folder / "home"
        self.home.mkdir()
        environ = {name: value for name, value in os.environ.items() if not any(part in name for part in UNWANTED)}
        path = f"{self.venv / 'bin'}{os.pathsep}{environ.get('PATH', '')}"
        self.environ = {**environ, "HOME": str(self.home), "PATH": path}
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            self.environ.pop(name, None)

    def run(self) -> int:
        self.build()
        for notebook in sorted((self.repository / "notebooks").glob("*.ipynb")):
            self.execute(notebook)
        self.browse()
        say("everything works")
        return 0

    def build(self) -> None:
        """The files of the repository, the environment, postBuild."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                target = self.repository / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        wanted = (self.repository / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
        python = shutil.which(f"python{wanted}") or sys.executable
        with step(f"a fresh environment of binder/requirements.txt ({Path(python).name})"):
            self.call(python, "-m", "venv", str(self.venv))
            # the cache of downloads is the machine's: it is no part of the image
            pip = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            self.call(*pip, "-r", "binder/requirements.txt", HOME=os.environ.get("HOME", str(self.home)))
        with step("postBuild"):
            self.call(str(self.repository / "binder" / "postBuild"))

    def execute(self, notebook: Path) -> None:
        """Run a notebook under the limit; an error in a cell ends it all."""
        command = ["python", "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", "--log-level=ERROR"]
        with step(f"{notebook.name}"), Memory() as memory:
            self.call(*command, str(notebook), limited=True, watch=memory)
        say(f"    {memory}")

    def browse(self) -> None:
        """JupyterLab as Binder starts it, and the quick start run in a browser."""
        token, port = secrets.token_hex(16), free_port()
        command = ["python", "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
        command += [f"--IdentityProvider.token={token}", "--ServerApp.log_level=ERROR", "--allow-root"]
        command += ["--LanguageServerManager.autodetect=False"]
        with step(f"{QUICKSTART} in JupyterLab, in Chromium"), Memory() as memory:
            server = subprocess.Popen(command, cwd=self.repository, env=self.environ, preexec_fn=limit_memory)
            memory.root = server.pid
            try:
                wait_for(f"http://127.0.0.1:{port}/api?token={token}", server)
                run_all(f"http://127.0.0.1:{port}/lab/tree/{QUICKSTART}?token={token}")
            finally:
                server.terminate()
                server.wait(30)
        say(f"    {memory}")

    def call(self, *command: str, limited: bool = False, watch: Memory | None = None, **environ: str) -> None:
        process = subprocess.Popen(
            command if "/" in command[0] else [shutil.which(command[0], path=self.environ["PATH"]) or "", *command[1:]],
            cwd=self.repository,
            env={**self.environ, **environ},
            stdout=subprocess.DEVNULL,
            preexec_fn=limit_memory if limited else None,
        )
        if watch is not None:
            watch.root = process.pid
        if process.wait():
            raise SystemExit(f"this failed, with status {process.returncode}: {' '.join(command)}")


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


class Memory:
    """Watches what a process and its descendants use together, and ends them when it is more than the limit."""

    def __init__(self) -> None:
        self.root: int | None = None
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        if self.peak > LIMIT:
            raise SystemExit(f"that used {self.peak / 1e6:.0f} MB, more than Binder gives")

    def __str__(self) -> str:
        return f"at most {self.peak / 1e6:.0f} MB"

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            if self.root is not None:
                self.peak = max(self.peak, sum(map(used, descendants(self.root))))


def descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def used(process: int) -> int:
    """Proportional set size in bytes."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    last = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > last:
                raise SystemExit("JupyterLab did not start") from None
            time.sleep(0.2)


def run_all(url: str) -> None:
    """Open a notebook, run all of its cells, and look for errors."""
    from install import find_chromium
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(url)
        cells = page.locator(".jp-CodeCell")
        expect(cells.first).to_be_visible(timeout=60_000)
        expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_attached(timeout=60_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Restart Kernel and Run All Cells").click()
        page.locator(".jp-Dialog .jp-mod-accept").click()
        # the last cell has run when its prompt is a number that was not there before the restart
        page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(e => e.textContent);
                return prompts.length && prompts.every(text => /\\[\\d+\\]/.test(text));
            }""",
            timeout=180_000,
        )
        expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_attached(timeout=60_000)
        errors = page.locator("[data-mime-type='application/vnd.jupyter.error']")
        if errors.count():
            raise SystemExit(f"an error in the browser: {errors.first.inner_text()}")
        said = page.locator(".jp-OutputArea-output .mmsp")
        if not said.count():
            raise SystemExit("no answer is to be seen in the browser")
        say(f"    {cells.count()} cells ran, {said.count()} answers are to be seen")
        browser.close()


class step:
    """Says what is being done, and how long it took."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        self.started = time.monotonic()

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            say(f"{self.what}: {time.monotonic() - self.started:.1f} s")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def say(text: str) -> None:
    print(f"binder: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
