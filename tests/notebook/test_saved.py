"""What is left in a notebook: executed by nbclient, and compared by nbval."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parent

CELLS = [
    "%load_ext mmsp_nb\nfrom scripted import *\nfrom mmsp_nb import Conversation, tool",
    "@tool\ndef tide(port: str):\n    'Tide of a port'\n    print('looking up', port)\n    return 5",
    "chat = Conversation(client=Scripted([text('Let me ', 'see.'), call('tide', port='Brest')], "
    "[text('At **5**.')], [text('Good', 'bye.')], pace=0.01), tools=[tide])\n%mmsp use chat",
    "%%mmsp\nWhen is high water?",
    "answer = %mmsp ask and now?",
    "answer",
    "%mmsp history",
]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("MMSP_MODEL", "demo")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def executed(live: str) -> Any:
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    os.environ["MMSP_NB_LIVE"] = live
    try:
        return NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    finally:
        del os.environ["MMSP_NB_LIVE"]


@pytest.mark.usefixtures("environment")
def test_a_watched_and_an_unwatched_run_leave_the_same_story() -> None:
    stories = []
    for live in ("1", "0"):
        notebook = executed(live)
        outputs = notebook.cells[3].outputs
        kinds = [out.get("metadata", {}).get("mmsp", {}).get("kind", out.output_type) for out in outputs]
        assert kinds == ["text", "calls", "stream", "text"]
        assert outputs[0].data["text/plain"] == "Let me see."
        assert outputs[2].text == "looking up Brest\n"
        assert outputs[3].data["text/markdown"] == "At **5**."
        assert "<strong>5</strong>" in outputs[3].data["text/html"]
        assert notebook.cells[5].outputs[0].data["text/plain"] == "Goodbye."
        stories.append([out.get("data", {}).get("text/plain") for out in outputs])
    assert stories[0][0] == stories[1][0]
    assert stories[0][3] == stories[1][3]


@pytest.mark.usefixtures("environment")
def test_nbval_passes_twice_on_what_was_executed_unwatched(tmp_path: Path) -> None:
    path = tmp_path / "story.ipynb"
    nbformat.write(executed("0"), path)
    for _ in range(2):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "--nbval",
                str(path),
                "-q",
                "-p",
                "no:cacheprovider",
                "--rootdir",
                str(tmp_path),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        assert f"{len(CELLS)} passed" in done.stdout
