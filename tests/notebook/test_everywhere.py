"""The same cells wherever a magic may stand: kernels old and new, other event loops, notebooks that run by themselves,
scripts and terminals. Everywhere they make the same conversation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kernels import SETUP, Kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COLAB = ROOT / ".venvs" / "ipython734" / "bin" / "python"

TALK = (
    "def add(a: int, b: int):\n    'Add'\n    print('adding')\n    return a + b\n"
    "talk([call('add', a=1, b=2)], [text('whole')], *[[text(word)] for word in WORDS], tools=[add])"
)
WORDS = ("timed", "captured", "loop 0", "loop 1", "line", "function", "asked")
CELLS = (
    "%%mmsp\nwhole",
    "%%time\n%%mmsp\ntimed",
    "%%capture said\n%%mmsp\ncaptured",
    "for n in range(2):\n    get_ipython().run_cell_magic('mmsp', '', f'loop {n}')",
    "answer = %mmsp ask line",
    "def ask():\n    get_ipython().run_cell_magic('mmsp', '', 'function')\nask()",
    "main.ask('asked')",
)
ASYNC = "answer = await main.ask_async('awaited')"
STORY = [[word, word] for word in ("whole", *WORDS)]
TELL = "print('<<' + __import__('json').dumps([[t.prompt, t.text] for t in main.turns]) + '>>')"


def story(output: str) -> Any:
    return json.loads(output.split("<<", 1)[1].split(">>", 1)[0])


# --- kernels --------------------------------------------------------------------------------------------------------

LAUNCH = "from ipykernel import kernelapp; kernelapp.launch_new_instance()"
KERNELS: dict[str, tuple[list[str] | None, str]] = {
    "this one": (None, ""),
    "uvloop": ([sys.executable, "-c", f"import uvloop; uvloop.install(); {LAUNCH}"], "asyncio.get_running_loop()"),
    "uvloop's policy, set by a cell": (None, "import uvloop; uvloop.install()"),
    "nest_asyncio": (None, "import nest_asyncio; nest_asyncio.apply()"),
    "nest_asyncio2": (None, "import nest_asyncio2; nest_asyncio2.apply()"),
}
if COLAB.exists():  # by make beside
    KERNELS["IPython 7.34"] = ([str(COLAB), "-m", "ipykernel_launcher"], "assert get_ipython().kernel")


@pytest.fixture(params=KERNELS)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kernel]:
    command, first = KERNELS[request.param]
    argv = None if command is None else [*command, "-f", "{connection_file}"]
    kernel = Kernel({"MMSP_NB_LIVE": "1", "IPYTHONDIR": str(tmp_path)}, argv)
    try:
        for code in (f"import asyncio\n{first}", SETUP, f"WORDS = {(*WORDS, 'awaited')!r}\n{TALK}"):
            cell = kernel.run(code)
            assert cell.status == "ok", cell.traceback
        yield kernel
    finally:
        kernel.close()


def test_every_kernel_runs_the_magic_in_every_place(anywhere: Kernel) -> None:
    shown = []
    for code in (*CELLS, ASYNC):
        cell = anywhere.run(code)
        assert cell.status == "ok", (code, cell.traceback)
        shown.append(cell.texts())
    assert shown == ["whole", "timed", "", "loop 0loop 1", "line", "function", "asked", "awaited"]
    assert anywhere.value("[[t.prompt, t.text] for t in main.turns]") == [*STORY, ["awaited", "awaited"]]
    # and an interrupt is one
    anywhere.run("talk([text('one '), 30])")
    cell = anywhere.run("%%mmsp\ngo", interrupt_when=lambda m: "one" in str(m["content"]))
    assert cell.ename == "KeyboardInterrupt"
    assert anywhere.value("[main.turns[-1].state, main.turns[-1].text]") == ["partial", "one "]
    anywhere.run("client.scripts.append([text('again')])")
    assert anywhere.run("%%mmsp\nand now?").texts() == "again"


# --- notebooks that run by themselves -------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    for name, value in {"PYTHONPATH": str(HERE), "MMSP_MODEL": "demo", "IPYTHONDIR": str(tmp_path / "ipython")}.items():
        monkeypatch.setenv(name, value)
    # somebody runs a notebook from within a notebook
    monkeypatch.setenv("JPY_SESSION_NAME", "outer.ipynb")
    return dict(os.environ)


def notebook() -> Any:
    first = f"{SETUP}\nWORDS = {WORDS!r}\n{TALK}"
    return new_notebook(cells=[new_code_cell(code) for code in (first, *CELLS, TELL)])


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("live", ["1", "0"])
@pytest.mark.parametrize("way", ["nbclient", "papermill"])
def test_notebooks_that_run_by_themselves(way: str, live: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMSP_NB_LIVE", live)
    if way == "nbclient":
        done = NotebookClient(notebook(), timeout=60, kernel_name="python3").execute()
    else:
        papermill = pytest.importorskip("papermill")
        before, after = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
        nbformat.write(notebook(), before)
        papermill.execute_notebook(before, after, kernel_name="python3", progress_bar=False)
        done = nbformat.read(after, 4)
    assert story(done.cells[-1].outputs[0].text) == STORY
    texts = [
        "".join(out.data["text/plain"] for out in cell.outputs if out.output_type == "display_data")
        for cell in done.cells[1:-1]
    ]
    assert [text.replace("✓ add(a=1, b=2) → 3", "") for text in texts] == [
        "whole", "timed", "", "loop 0loop 1", "line", "function", "asked",
    ]  # fmt: skip
    assert "widgets" not in done.metadata, "no button where nobody can click"
    assert "data-mmsp" not in json.dumps(done)


# --- scripts and terminals ------------------------------------------------------------------------------------------


def program() -> str:
    """The same as a script: cells given to a shell, magics by function, and an `await` in a cell."""
    return (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for code in {(SETUP, f'WORDS = {WORDS!r}', TALK, *CELLS, TELL)!r}:\n"
        "    shell.run_cell(code).raise_error()\n"
    )


@pytest.mark.parametrize("first", ["", "import uvloop; uvloop.install()", "import nest_asyncio; nest_asyncio.apply()"])
def test_a_script_with_a_shell(environment: dict[str, str], first: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{first}\n{program()}")
    ran = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert story(ran.stdout) == STORY


TERMINALS = [sys.executable, *([str(COLAB)] if COLAB.exists() else [])]


@pytest.mark.parametrize("python", TERMINALS, ids=["this one", "IPython 7.34"][: len(TERMINALS)])
def test_a_terminal(environment: dict[str, str], python: str, tmp_path: Path) -> None:
    script = tmp_path / "cells.py"
    cells = (SETUP, f"WORDS = {(*WORDS, 'awaited')!r}\n{TALK}", *CELLS, ASYNC, TELL)
    script.write_text(f"for code in {cells!r}:\n    get_ipython().run_cell(code).raise_error()\n")
    command = [python, "-m", "IPython", "--no-banner", "--colors=NoColor", "--HistoryManager.enabled=False"]
    ran = subprocess.run(
        [*command, "-c", f"exec(open({str(script)!r}).read())"],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert story(ran.stdout) == [*STORY, ["awaited", "awaited"]]
    assert "● add(a=1, b=2)" in ran.stdout
