"""What `make lab`, `make demo`, `make fetch-model` and `make notebooks` run inside the environment.

``lab.py fetch [--strict]``, ``lab.py lab NOTEBOOK``, ``lab.py demo NOTEBOOK``, ``lab.py store NOTEBOOK...``. Everything
that Jupyter and IPython keep (settings, history, connection files) stays under the virtual environment: nothing is
written to the home folder but the local model, which goes to the user's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

STATE = Path(sys.prefix) / "var"
CELL_SECONDS = 600


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the notebooks of this project.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch").add_argument("--strict", action="store_true", help="fail when there is no model")
    commands.add_parser("lab").add_argument("notebook", type=Path)
    commands.add_parser("demo").add_argument("notebook", type=Path)
    commands.add_parser("store").add_argument("notebooks", type=Path, nargs="+")
    options = parser.parse_args(argv)
    os.environ.update(private_folders(STATE))
    try:
        if options.command == "fetch":
            return fetch(options.strict or bool(os.environ.get("CI")))
        if options.command == "lab":
            return lab(options.notebook)
        if options.command == "store":
            return store(options.notebooks)
        return Demo(options.notebook).run()
    except KeyboardInterrupt:
        return 130


def private_folders(state: Path) -> dict[str, str]:
    """The variables that keep Jupyter, IPython and matplotlib inside ``state``."""
    names = {
        "JUPYTER_CONFIG_DIR": "jupyter/config",
        "JUPYTER_DATA_DIR": "jupyter/data",
        "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
        "JUPYTERLAB_SETTINGS_DIR": "jupyter/settings",
        "JUPYTERLAB_WORKSPACES_DIR": "jupyter/workspaces",
        "IPYTHONDIR": "ipython",
        "MPLCONFIGDIR": "matplotlib",
    }
    return {name: str(state / folder) for name, folder in names.items()}


def fetch(strict: bool) -> int:
    """Fetch the local model. Without it everything works on the demo model, so only ``strict`` fails."""
    from mmsp_nb.local import weights
    from mmsp_nb.local.errors import LocalModelError

    try:
        if find_spec("xllamacpp") is None:
            raise LocalModelError("there is no runtime of the local model for this machine")
        if weights.find() is None:
            say("fetching the local model (93 MB, once)")
            weights.fetch()
    except LocalModelError as error:
        say(f"{error}{'' if strict else ' (the demo model takes its place)'}")
        return 1 if strict else 0
    return 0


def lab(notebook: Path) -> int:
    """Become JupyterLab with ``notebook`` open; its log shows the address with the token."""
    settings = STATE / "jupyter/settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    if not settings.exists():  # else the first thing a newcomer sees is a question about news
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
    root = Path.cwd()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", "--ServerApp.log_level=WARN"]
    # the address that is shown leads to the notebook; no language servers, whose search runs npm
    command += [f"--LabApp.default_url=/lab/tree/{notebook.as_posix()}", "--LanguageServerManager.autodetect=False"]
    if not has_display():
        command.append("--no-browser")
        say("no display here: open the address with the token that JupyterLab prints below")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    os.execv(sys.executable, command)


def has_display() -> bool:
    """Whether a browser could open a window here."""
    if sys.platform in ("darwin", "win32"):
        return not os.environ.get("SSH_CONNECTION")
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def store(notebooks: list[Path]) -> int:
    """Run notebooks on the demo model, quietly, and keep their outputs in them: what nbval compares with."""
    import nbformat
    from nbclient import NotebookClient

    os.environ.update(MMSP_MODEL="demo", MMSP_NB_LIVE="0")
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=CELL_SECONDS,
            record_timing=False,
            coalesce_streams=True,
            store_widget_state=False,
            resources={"metadata": {"path": str(path.parent)}},
        )
        client.execute()
        notebook.metadata.pop("widgets", None)
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        print(f"{path}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells", flush=True)
    return 0


class Demo:
    """Runs a notebook in a real kernel and prints its cells and what they answer, as it comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.color = sys.stdout.isatty()
        self.shown: dict[str, str] = {}

    def run(self) -> int:
        from jupyter_client.manager import start_new_kernel

        cells = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
        started = time.monotonic()
        manager, client = start_new_kernel(kernel_name="python3", cwd=str(self.path.parent))
        try:
            code = [cell for cell in cells if cell["cell_type"] == "code"]
            failed = 0
            for number, cell in enumerate(code, 1):
                failed += self.cell(client, number, cell)
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
        seconds = time.monotonic() - started
        print(f"{len(code)} cells, {len(code) - failed} ran as they should, {seconds:.0f} s", flush=True)
        return 1 if failed else 0

    def cell(self, client: Any, number: int, cell: Mapping[str, Any]) -> int:
        """Run one cell; 1 when it failed and was not meant to."""
        source = "".join(cell["source"])
        self.write("\n".join(self.dim(f"[{number}] {line}" if n == 0 else f"    {line}") for n, line in lines(source)))
        self.write("\n\n")
        self.shown.clear()
        self.column = 0
        error = None
        request = client.execute(source, allow_stdin=False)
        while True:
            message = client.get_iopub_msg(timeout=CELL_SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "stream":
                self.write(content["text"])
            elif kind in ("display_data", "update_display_data", "execute_result"):
                self.display(content)
            elif kind == "error":
                error = content
                self.write("\n".join([*content["traceback"][-1:], ""]))
        self.fresh_line()
        self.write("\n")
        return 1 if error and "raises-exception" not in cell["metadata"].get("tags", []) else 0

    def display(self, content: Mapping[str, Any]) -> None:
        """Print an output; of one that is updated only what it has grown by."""
        data = content["data"]
        text = data.get("text/plain") or in_words(data.get("text/html", ""))
        name = content.get("transient", {}).get("display_id")
        before = self.shown.get(name, "") if name else ""
        if name:
            self.shown[name] = text
        if text.startswith(before):
            if not before:
                self.fresh_line()
            self.write(text[len(before) :])
        elif squeezed(text) != squeezed(before):
            self.fresh_line()
            self.write(text)

    def write(self, text: str) -> None:
        if text:
            print(text, end="", flush=True)
            self.column = len(text) - text.rfind("\n") - 1

    def fresh_line(self) -> None:
        if self.column:
            self.write("\n")

    def dim(self, text: str) -> str:
        return f"\033[2m{text}\033[0m" if self.color else text


def say(text: str) -> None:
    print(f"mmsp_nb: {text}", flush=True)


def lines(text: str) -> enumerate[str]:
    return enumerate(text.splitlines())


def squeezed(text: str) -> str:
    return " ".join(text.split())


def in_words(html: str) -> str:
    """The text of an HTML output, paragraphs on lines of their own."""
    reader = _Words()
    reader.feed(html)
    reader.close()
    return "".join(reader.parts).strip()


class _Words(HTMLParser):
    UNSEEN = ("style", "script", "button")
    BLOCKS = ("p", "div", "li", "pre", "tr", "summary", "details", "h1", "h2", "h3", "h4", "br")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in self.UNSEEN

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in self.UNSEEN
        if tag in self.BLOCKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


if __name__ == "__main__":
    sys.exit(main())
