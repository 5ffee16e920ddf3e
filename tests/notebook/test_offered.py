# ruff: noqa: F811
"""``--format code`` and ``%mmsp apply``: which block goes into the next cell, and how to get the others."""

from __future__ import annotations

from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb.notebook.formats import shaped_html
from mmsp_nb.notebook.offered import Code, Waiting
from mmsp_nb.notebook.options import OptionError

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]

THREE = "Either\n```python\nran = 1\n```\nor\n```bash\nrm x\n```\nor\n```py\nran = 3\n```\n"
READ = "is in the next cell; read it before you run it"


def ask(shell: Shell, capsys: Capsys, text: str, options: str = "") -> str:
    use(shell, [scripted.text(text)])
    return run(shell, f"%%mmsp --quiet --format code {options}\nhi", capsys)


def next_cell(shell: Shell) -> Any:
    """What stands in the next cell; it is taken out."""
    text, shell.rl_next_input = shell.rl_next_input, None  # type: ignore[attr-defined]
    return text


def test_the_only_block_goes_into_the_next_cell_and_is_not_run(shell: Shell, capsys: Capsys) -> None:
    assert ask(shell, capsys, "Here:\n```python\nran = 1\n```\n") == f"the code {READ}\n"
    assert next_cell(shell) == "ran = 1"
    assert "ran" not in shell.user_ns


def test_of_several_blocks_the_first_goes_there_and_one_line_says_how_to_get_the_others(
    shell: Shell, capsys: Capsys
) -> None:
    assert ask(shell, capsys, THREE) == (
        f"block 1 of 3 {READ}; %mmsp apply 2 puts another there, %mmsp apply all the Python of all\n"
    )
    assert next_cell(shell) == "ran = 1"
    assert run(shell, "%mmsp apply 3", capsys) == f"block 3 of 3 {READ}\n"
    assert next_cell(shell) == "ran = 3"
    assert run(shell, "%mmsp apply 2", capsys) == f"block 2 of 3 {READ}\n"
    assert next_cell(shell) == "%%bash\nrm x", "a shell's block is a cell of the shell"
    assert run(shell, "%mmsp apply all", capsys) == f"the Python of all blocks {READ}\n"
    assert next_cell(shell) == "ran = 1\n\nran = 3"
    assert run(shell, "%mmsp apply", capsys).startswith(f"block 1 of 3 {READ}; %mmsp apply 2 puts another there")
    assert next_cell(shell) == "ran = 1", "the first one again"
    assert "ran" not in shell.user_ns


def test_the_first_block_of_python_is_taken_also_behind_others(shell: Shell, capsys: Capsys) -> None:
    written = ask(shell, capsys, "```bash\npip install x\n```\n```python\nimport x\n```\n")
    assert written == f"block 2 of 2 {READ}; %mmsp apply 1 puts another there\n"
    assert next_cell(shell) == "import x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("No code.", "there is no Python code in this answer"),
        ("```js\na\n```", "there is no Python code in this answer"),
        ("```bash\nls\n```", "there is no Python code in this answer; %mmsp apply 1 puts its bash there"),
        ("```python\nnever = closed", "the Python code in this answer is cut off: %mmsp continue lets the model go on"),
        ("```python\n\n```", "there is no Python code in this answer"),
    ],
)
def test_where_there_is_nothing_for_a_cell_a_line_says_why(
    shell: Shell, capsys: Capsys, text: str, message: str
) -> None:
    shell.rl_next_input = None  # type: ignore[attr-defined]
    assert ask(shell, capsys, text) == message + "\n"
    assert next_cell(shell) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("4", "there is no block 4: the answer has 3 blocks of code"),
        ("0", "there is no block 0"),
        ("2", "block 2 is js, which a cell cannot run"),
        ("3", "block 3 is cut off"),
        ("nope", "there is nothing to apply"),
    ],
)
def test_what_cannot_be_applied_is_one_line(shell: Shell, capsys: Capsys, name: str, message: str) -> None:
    ask(shell, capsys, "```python\na = 1\n```\n```js\nb\n```\n```python\nc = ")
    written = run(shell, f"%mmsp apply {name}", capsys)
    assert message in written and written.count("\n") == 1


def test_a_number_is_a_block_or_a_cell_by_what_came_last(shell: Shell, capsys: Capsys) -> None:
    shell.run_cell("a = 1", store_history=True)
    name = f"In[{shell.execution_count - 1}]"
    ask(shell, capsys, THREE)
    use(shell, [scripted.text("```python\na = 2\n```")])
    run(shell, f"%%mmsp --quiet --edit {name}\ntwo", capsys)
    assert "new version" in run(shell, f"%mmsp apply {name[3:-1]}", capsys)
    assert next_cell(shell) == "a = 2"
    assert "the Python of all blocks" in run(shell, "%mmsp apply all", capsys)
    ask(shell, capsys, THREE)
    assert "block 1 of 3" in run(shell, "%mmsp apply 1", capsys)
    run(shell, f"%mmsp apply {name}", capsys)
    assert next_cell(shell) == "a = 2", "a label always means the cell"


def test_the_code_of_an_answer_in_the_background_waits_for_apply(shell: Shell, capsys: Capsys) -> None:
    use(shell, [scripted.text("```python\nran = 1\n```")])
    shell.rl_next_input = None  # type: ignore[attr-defined]
    magics = shell.magics_manager.registry["MMSPMagics"]
    magics.live = True
    run(shell, "%%mmsp --background --format code\nhi", capsys)
    magics.chats.behind.wait(magics.chats.get())
    assert next_cell(shell) is None, "a cell that nobody looks at does not change the next one"
    run(shell, "%mmsp apply", capsys)
    assert next_cell(shell) == "ran = 1"


def test_the_code_of_a_compared_answer_that_is_kept_goes_into_the_next_cell(shell: Shell, capsys: Capsys) -> None:
    shell.user_ns["one"] = scripted.Scripted([scripted.text("```python\na = 1\n```")])
    shell.user_ns["two"] = scripted.Scripted([scripted.text("```python\na = 2\n```")])
    use(shell)
    run(shell, "%%mmsp --quiet --compare one,two --format code\nhi", capsys)
    assert f"the code {READ}" in run(shell, "%mmsp keep two", capsys)
    assert next_cell(shell) == "a = 2"


def test_blocks_are_numbered_where_they_are_shown() -> None:
    shown = shaped_html(THREE, "code")
    assert shown.index("block 1") < shown.index("block 2") < shown.index("block 3")
    assert "block" not in shaped_html("```python\nx = 1\n```", "code")


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("```py\na\n```\n\n```\nb\n```", ["a", "b"]),
        ("x = 1\nprint(x)", ["x = 1\nprint(x)"]),
        ("This is prose.", []),
        ("```sh\n%%sh\nls\n```", ["%%sh\nls"]),
        ("```python\n\x1b[31mx = 1\u202e\n```", ["x = 1⟨U+202E⟩"]),
    ],
)
def test_what_counts_as_code(text: str, cells: list[str]) -> None:
    code = Code.of(text)
    assert [code.cell(number) for number in range(1, len(code.blocks) + 1)] == cells


def test_nothing_waits_at_first() -> None:
    with pytest.raises(OptionError, match="--format code brings blocks"):
        Waiting().take(None)
    assert Waiting().names() == []
