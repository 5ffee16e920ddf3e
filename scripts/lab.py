"""What `make lab`, `make demo`, `make fetch-model` and `make notebooks` run inside the environment.

``lab.py fetch [--strict]``, ``lab.py lab NOTEBOOK``, ``lab.py demo NOTEBOOK``, ``lab.py store NOTEBOOK...``. Everything
that Jupyter and IPython keep (settings, history, connection files) stays under the virtual environment: nothing is
written to the home folder but the local model, which goes to the user's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

STATE = Path(sys.prefix) / "var"
PORT = re.compile(r"127\.0\.0\.1:\d+")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the notebooks of this project.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch").add_argument("--strict", action="store_true", help="fail when there is no model")
    commands.add_parser("lab").add_argument("notebook", type=Path)
    commands.add_parser("demo").add_argument("notebook", type=Path)
    commands.add_parser("store").add_argument("notebooks", type=Path, nargs="+")
    options = parser.parse_args(argv)
    STATE.mkdir(exist_ok=True)
    os.environ.update(private_folders(STATE))
    try:
        if options.command == "fetch":
            return fetch(options.strict or bool(os.environ.get("CI")))
        if options.command == "lab":
            return lab(options.notebook)
        if options.command == "store":
            return store(options.notebooks)
        from demo import Demo

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
    from demo import CELL_SECONDS, QUIET_KERNEL
    from nbclient import NotebookClient

    os.environ.update(MMSP_MODEL="demo", MMSP_NB_LIVE="0")

    def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
        NotebookClient(
            notebook,
            kernel_name="python3",
            extra_arguments=QUIET_KERNEL,
            timeout=CELL_SECONDS,
            record_timing=False,
            coalesce_streams=True,
            store_widget_state=False,
            resources={"metadata": {"path": str(folder)}},
        ).execute()

    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        recording = path.with_suffix(".jsonl")
        if recording.exists():  # made anew: it holds what this version sends
            again = nbformat.read(path, as_version=4)
            for cell in again.cells:
                cell.source = cell.source.replace(f"%mmsp replay {recording.name}", f"%mmsp record {recording.name}")
            execute(again, path.parent)
        execute(notebook, path.parent)
        for output in (each for cell in notebook.cells for each in cell.get("outputs", ())):
            if output.output_type == "error":  # nbval compares none, so that only a reader sees the port
                output.evalue = PORT.sub("127.0.0.1:…", output.evalue)
                output.traceback = [PORT.sub("127.0.0.1:…", line) for line in output.traceback]
        notebook.metadata.pop("widgets", None)
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        print(f"{path}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells", flush=True)
    return 0


def say(text: str) -> None:
    print(f"mmsp_nb: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
