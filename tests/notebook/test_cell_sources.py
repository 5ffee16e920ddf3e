# ruff: noqa: F811
"""``{{cell("id or tag")}}``, ``{{In[3]}}``: the source of other cells, and their outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb.notebook.sources import notebook_path

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]
Ask = Callable[[str], str]

STREAM = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
PLOT = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "aGk=", "text/plain": "<Figure>"}}
RESULT = {"output_type": "execute_result", "execution_count": 3, "metadata": {}, "data": {"text/plain": ["7"]}}
ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'a'", "traceback": ["\x1b[31mlong\x1b[0m"]}


def code(source: Any, name: str, *tags: str, outputs: Any = (), count: int | None = None) -> dict[str, Any]:
    return {
        "cell_type": "code", "id": name, "source": source, "outputs": list(outputs), "execution_count": count,
        "metadata": {"tags": list(tags)} if tags else {},
    }  # fmt: skip


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that a Jupyter server has said this kernel is for."""
    cells = [
        {"cell_type": "markdown", "id": "aa11", "source": ["# Tides\n", "in {Brest}"], "metadata": {"tags": ["about"]}},
        code(["import a\n", "b = '{{x}}'"], "bb22", "setup", outputs=[STREAM, PLOT, RESULT], count=3),
        code("plot(a)", "cc33", "plots", outputs=[ERROR]),
        code("plot(b)", "dd44", "plots"),
    ]
    path = tmp_path / "talk.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


@pytest.fixture
def ask(shell: Shell, capsys: Capsys) -> Ask:
    """Ask with a prompt; what was sent, or what was said of it."""

    def asked(prompt: str) -> str:
        client = use(shell, [scripted.text("ok")])
        written = run(shell, f"%%mmsp\n{prompt}", capsys)
        return said(client) if client.requests else written

    return asked


def run_as(shell: Shell, name: str, text: str) -> None:
    shell.parent_header = {"metadata": {"cellId": name}}  # type: ignore[attr-defined]
    shell.run_cell(text, store_history=True)
    shell.parent_header = {}  # type: ignore[attr-defined]


def test_a_cell_is_found_by_its_tag_or_id_in_the_saved_notebook(ask: Ask, saved: Path) -> None:
    assert ask('{{cell("setup")}}') == "import a\nb = '{{x}}'"
    assert ask('{{ cell("bb22") }}!') == "import a\nb = '{{x}}'!"
    assert ask("{{cell('about')}}") == "# Tides\nin {Brest}"
    assert ask('{{cell("plots")}}') == "plot(a)\n\nplot(b)"


def test_outputs_come_along_when_wanted(ask: Ask, saved: Path) -> None:
    expected = "import a\nb = '{{x}}'\n\nOutput:\none\ntwo\n<Figure>\n[image/png]\n7"
    assert ask('{{cell("setup", outputs=True)}}') == expected
    assert ask('{{cell("cc33", outputs=True)}}') == "plot(a)\n\nOutput:\nKeyError: 'a'"
    assert ask('{{cell("dd44", outputs=True)}}') == "plot(b)\n\nOutput:\n(nothing)"
    assert ask('{{cell("about", outputs=True)}}') == "# Tides\nin {Brest}"


def test_what_has_run_here_comes_before_what_was_saved(shell: Shell, ask: Ask, saved: Path) -> None:
    run_as(shell, "cc33", "x = 1  # newer")
    assert ask('{{cell("cc33")}}') == "x = 1  # newer"
    assert ask('{{cell("plots")}}') == "x = 1  # newer\n\nplot(b)"
    assert "the outputs of cell cc33, as it last ran, are in no file: save the notebook first" in ask(
        '{{cell("cc33", outputs=True)}}'
    )


def test_a_cell_that_ran_is_known_without_a_file(shell: Shell, ask: Ask) -> None:
    run_as(shell, "ee55", "6 * 7")
    assert ask('{{cell("ee55")}}') == "6 * 7"
    assert ask('{{cell("ee55", outputs=True)}}') == "6 * 7\n\nOutput:\n42"


def test_a_newer_save_is_read(ask: Ask, saved: Path) -> None:
    assert ask('{{cell("dd44")}}') == "plot(b)"
    saved.write_text(saved.read_text().replace("plot(b)", "plot(other)"))
    assert ask('{{cell("dd44")}}') == "plot(other)"


def test_another_notebook_can_be_named(ask: Ask, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert ask(f'{{{{cell("setup", file={str(saved)!r})}}}}').startswith("import a")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ('{{cell("plot")}}', "talk.ipynb has no cell with the id or tag 'plot'; did you mean 'plots'?"),
        ('{{cell("bb23")}}', "did you mean 'bb22'?"),
        ('{{cell("zzzzzzzz")}}', "(a new tag counts when it is saved)"),
        ("{{cell(7)}}", "cell() takes the id or the tag of a cell, as in cell('plots')"),
        ('{{cell("a", file="no.ipynb")}}', "there is no file no.ipynb"),
        ('{{cell("a", input=True)}}', "TypeError"),
    ],
)
def test_what_is_not_there_is_one_line_and_nothing_is_sent(ask: Ask, saved: Path, prompt: str, message: str) -> None:
    written = ask(f"first\n{prompt}")
    assert written.startswith(f"UsageError: line 3: {prompt}: ")
    assert written.count("\n") == 1
    assert message in written


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', '{"worksheets": []}', "\xff\x00"])
def test_a_file_that_is_no_notebook_is_said(ask: Ask, saved: Path, text: str) -> None:
    saved.write_text(text, encoding="latin-1")
    assert "talk.ipynb is no notebook in format 4" in ask('{{cell("setup")}}')


def test_without_a_file_it_says_what_is_missing(shell: Shell, ask: Ask) -> None:
    run_as(shell, "plots", "x = 1")
    written = ask('{{cell("plot")}}')
    assert "no cell 'plot' has run here; did you mean 'plots'?; this front end does not say where" in written
    assert "cell('plot', file='talk.ipynb')" in written


def test_a_name_of_the_users_comes_first(shell: Shell, ask: Ask, saved: Path) -> None:
    shell.user_ns["cell"] = lambda name: f"mine: {name}"
    assert ask('{{cell("setup")}}') == "mine: setup"
    shell.user_ns["cell"] = 3
    assert ask('{{cell("setup")}}').startswith("import a")
    assert ask("{{cell}}") == "3"
    assert shell.user_ns["cell"] == 3


def test_inputs_are_what_was_typed(shell: Shell, ask: Ask) -> None:
    shell.run_cell("%%time\nx = {1: 2}", store_history=True)
    assert ask(f"{{{{In[{shell.execution_count - 1}]}}}}") == "%%time\nx = {1: 2}"
    shell.user_ns["In"] = ["mine"]
    assert ask("{{In[0]}}") == "mine"


def test_the_file_is_found_as_front_ends_say_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one.ipynb", tmp_path / "other.ipynb"
    for path in (one, other):
        path.write_text("{}")
    named = {"__vsc_ipynb_file__": str(one)}
    assert notebook_path(named, {"JPY_SESSION_NAME": str(other)}) == one
    assert notebook_path({}, {"JPY_SESSION_NAME": str(other)}) == other
    assert notebook_path({"__session__": str(one)}, {}) == one
    assert notebook_path({}, {"JPY_SESSION_NAME": str(tmp_path / "renamed.ipynb")}) is None
    assert notebook_path({}, {"JPY_SESSION_NAME": "console-1"}) is None
