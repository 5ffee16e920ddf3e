"""The two commands: what they say when something is missing, and what they show while they work."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


install = load("install")
demo = load("demo")


def executable(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python_sh(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(SCRIPTS / "python.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


# --- finding Python -------------------------------------------------------------------------------------------------


def test_a_python_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    executable(tmp_path / "python3", "exit 1")
    (tmp_path / "python3.12").symlink_to(executable(tmp_path / "real", f'exec {sys.executable} "$@"'))
    ran = python_sh("-c", "print('found')", PATH=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (0, "found\n")


def test_without_a_python_one_line_says_what_is_needed(tmp_path: Path) -> None:
    ran = python_sh("-c", "pass", PATH=str(tmp_path))
    assert ran.returncode == 2
    assert "Python 3.11 or newer is needed" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_named_python_that_does_not_run_is_refused_by_name() -> None:
    ran = python_sh("-c", "pass", PYTHON="/nowhere/python3", PATH=os.environ["PATH"])
    assert ran.returncode == 2
    assert "PYTHON=/nowhere/python3" in ran.stderr


# --- the environment ------------------------------------------------------------------------------------------------


def test_a_missing_venv_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "The virtual environment was not created successfully because ensurepip is not available."
    monkeypatch.setattr(install.sys, "executable", str(executable(tmp_path / "python3", f"echo '{message}'; exit 1")))
    with pytest.raises(install.Missing, match="no venv module: install it") as error:
        install.environment(tmp_path / "env")
    assert "\n" not in str(error.value)


def pip_that_says(folder: Path, text: str) -> Path:
    """A stand-in for the environment's Python, whose pip fails with ``text``."""
    (folder / "said").write_text(text)
    return executable(folder / "python", f'[ "$1" = -c ] && echo 26.1 && exit 0; cat {folder / "said"}; exit 1')


def test_an_unreachable_index_is_said_in_one_line(tmp_path: Path) -> None:
    said = "WARNING: Retrying: NewConnectionError('failed')\nERROR: No matching distribution found for hatchling\n"
    with pytest.raises(install.Missing, match="index cannot be reached"):
        install.pip(pip_that_says(tmp_path, said), "x[lab,local]")


def test_a_machine_without_a_runtime_for_the_local_model_is_told_apart(tmp_path: Path) -> None:
    said = 'ERROR: No matching distribution found for xllamacpp<2028,>=2026.4; extra == "local"\n'
    with pytest.raises(install.NoWheel):
        install.pip(pip_that_says(tmp_path, said), "x[lab,local]")


def test_another_failure_of_pip_shows_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(install.Missing, match="ERROR: the disk is full"):
        install.pip(pip_that_says(tmp_path, "Collecting a\nERROR: the disk is full\n"), "x[lab]")


def test_progress_says_what_pip_is_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    progress = install.Progress()
    monkeypatch.setattr(install.time, "monotonic", lambda: progress.shown + 11)
    progress.feed("Collecting jupyterlab>=4 (from mmsp-nb==0.1.0)\n")
    progress.feed("  Downloading jupyterlab-4.6.6-py3-none-any.whl.metadata (16 kB)\n")
    progress.feed("Downloading jupyterlab-4.6.6-py3-none-any.whl (12.4 MB)\n")
    progress.feed("Progress 6200000 of 12400000\n")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "  1 packages, looking at jupyterlab>=4"
    assert shown[-1] == "  1 packages, downloading jupyterlab (12.4 MB): 50 %"


def test_nothing_is_installed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(install, "environment", lambda venv: Path(sys.executable))
    monkeypatch.setattr(install, "pip", lambda python, requirement: asked.append(requirement))
    install.install("lab", tmp_path)
    install.install("lab", tmp_path)
    assert asked == [f"{ROOT}[lab,local]"]
    (tmp_path / ".installed-lab").write_text("made from another pyproject.toml")
    install.install("lab", tmp_path)
    assert len(asked) == 2


# --- the demo -------------------------------------------------------------------------------------------------------


class Kernel:
    """A kernel's client that answers each cell with the given messages."""

    def __init__(self, *messages: tuple[str, dict[str, Any]]) -> None:
        self.messages = [*messages, ("status", {"execution_state": "idle"})]

    def execute(self, source: str, allow_stdin: bool) -> str:
        return "request"

    def get_iopub_msg(self, timeout: float) -> dict[str, Any]:
        kind, content = self.messages.pop(0)
        return {"msg_type": kind, "content": content, "parent_header": {"msg_id": "request"}}


def output(data: dict[str, str], display_id: str | None = None) -> dict[str, Any]:
    return {"data": data, "metadata": {}, "transient": {"display_id": display_id} if display_id else {}}


def demo_of(*messages: tuple[str, dict[str, Any]], tags: tuple[str, ...] = ()) -> int:
    cell = {"source": "%%mmsp\nHello", "metadata": {"tags": list(tags)}, "cell_type": "code"}
    return demo.Demo(Path("quickstart.ipynb")).cell(Kernel(*messages), 1, cell)


def test_the_demo_prints_a_growing_answer_once(capsys: pytest.CaptureFixture[str]) -> None:
    demo_of(
        ("display_data", output({"text/html": "<div><p>The sky</p></div>"}, "a")),
        ("update_display_data", output({"text/html": "<div><p>The sky is blue</p></div>"}, "a")),
        ("update_display_data", output({"text/html": "<p>…</p>", "text/plain": "The sky is blue."}, "a")),
    )
    assert capsys.readouterr().out == "[1] %%mmsp\n    Hello\n\nThe sky is blue.\n\n"


def test_the_demo_prints_no_waiting_line_but_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    status = {"metadata": {"mmsp": {"kind": "status"}}}
    demo_of(
        ("display_data", output({"text/plain": "◌ demo …"}, "a") | status),
        ("update_display_data", output({"text/plain": "stopped"}, "a") | status),
    )
    assert capsys.readouterr().out.endswith("\n\nstopped\n\n")


def test_the_demo_prints_each_output_of_a_cell_on_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    demo_of(("display_data", output({"text/plain": "one"})), ("display_data", output({"text/plain": "two"})))
    assert capsys.readouterr().out.endswith("\n\none\ntwo\n\n")


def test_the_demo_fails_with_a_cell_that_fails_unless_it_is_meant_to() -> None:
    error = ("error", {"traceback": ["Traceback ...", "UsageError: no such model"]})
    assert demo_of(error) == 1
    assert demo_of(error, tags=("raises-exception",)) == 0


def test_in_a_terminal_the_end_of_a_growing_answer_gives_its_place_to_the_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo.sys.stdout, "isatty", lambda: True)
    screen = demo.Screen()
    screen.grow("a", "\n".join("line " * number for number in range(1, 9)))
    capsys.readouterr()
    screen.print("printed by a tool\n")
    screen.settle("a", "the answer")
    shown = capsys.readouterr().out
    up = f"\033[{screen.ROWS}A\033[J"
    assert shown.startswith(f"{up}printed by a tool\n")
    assert shown.endswith(f"{up}the answer\n")


def test_the_words_of_a_html_output_leave_out_styles_buttons_and_what_is_folded() -> None:
    html = "<style>p {}</style><details><summary>✓ get_weather</summary><p>14 &deg;C</p></details><button>Stop</button>"
    assert demo.in_words(html) == "✓ get_weather"
    assert demo.in_words("<details open><summary>Thinking</summary><p>So far</p></details>") == "Thinking\nSo far"


# --- what make offers -----------------------------------------------------------------------------------------------


def test_help_lists_the_two_commands_that_matter() -> None:
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "make lab " in shown
    assert "make test " in shown


def test_ci_runs_what_a_user_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")][-1] == "exec make test"
