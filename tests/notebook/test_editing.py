# ruff: noqa: F811
"""``--edit`` and ``%mmsp apply``: a difference is shown, a new version waits, nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scripted
from hostile import VECTORS
from IPython.core.interactiveshell import InteractiveShell
from test_cell_sources import run_as, saved  # noqa: F401 - fixtures are found by name
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb.notebook.editing import MAX_LINES, Edits, Proposal, bundle, instruction, proposed
from mmsp_nb.notebook.options import OptionError
from mmsp_nb.notebook.sources import Source

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]

CELL = "x = [i for i in range(3)]\nprint(x)"
NEW = "x = list(range(3))\nprint(x)"


def answer(code: str, language: str = "python") -> list[Any]:
    return [scripted.text(f"Here it is:\n```{language}\n{code}\n```\nDone.")]


def typed(shell: Shell, text: str = CELL) -> str:
    """Run a cell; how it is called."""
    shell.run_cell(text, store_history=True)
    return f"In[{shell.execution_count - 1}]"


def test_the_cell_goes_along_and_the_difference_is_shown(shell: Shell, capsys: Capsys) -> None:
    client, name = use(shell, answer(NEW)), typed(shell)
    written = run(shell, f"%%mmsp --edit {name}\nuse list()", capsys)
    assert said(client) == (
        f"use list()\n\nThis is {name}:\n```python\n{CELL}\n```\n\n"
        "Rewrite it. Answer with the whole new cell in one block of code."
    )
    assert (
        f"{name}, new version:\n@@ -1,2 +1,2 @@\n-x = [i for i in range(3)]\n+x = list(range(3))\n print(x)" in written
    )
    assert "%mmsp apply puts it into the next cell" in written


def test_apply_puts_it_into_the_next_cell_and_runs_nothing(shell: Shell, capsys: Capsys) -> None:
    name = typed(shell)
    use(shell, answer("ran = 1"))
    run(shell, f"%%mmsp --edit {name}\nchange it", capsys)
    assert run(shell, "%mmsp apply", capsys) == (
        f"the new version of {name} is in the next cell; read it before you run it\n"
    )
    assert shell.rl_next_input == "ran = 1"  # type: ignore[attr-defined]
    assert "ran" not in shell.user_ns


def test_what_was_applied_can_be_applied_again(shell: Shell, capsys: Capsys) -> None:
    name = typed(shell)
    use(shell, answer("ran = 1"))
    run(shell, f"%%mmsp --edit {name}\nchange it", capsys)
    for line in ("%mmsp apply", "%mmsp apply", f"%mmsp apply {name}"):
        shell.rl_next_input = None  # type: ignore[attr-defined]
        assert f"the new version of {name} is in the next cell" in run(shell, line, capsys)
        assert shell.rl_next_input == "ran = 1"  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", ["In[-1]", "In[1]", "1", "[1]", "ee55"])
def test_a_cell_is_named_in_several_ways(shell: Shell, capsys: Capsys, target: str) -> None:
    run_as(shell, "ee55", CELL)
    client = use(shell, answer(NEW))
    run(shell, f"%%mmsp --edit {target}\nshorter", capsys)
    assert CELL in said(client)
    run(shell, "%mmsp apply", capsys)
    assert shell.rl_next_input == NEW  # type: ignore[attr-defined]


def test_a_saved_cell_is_edited_by_its_tag(shell: Shell, capsys: Capsys, saved: Path) -> None:
    client = use(shell, answer("import b"))
    run(shell, "%%mmsp --edit setup\nb, not a", capsys)
    assert "This is cell bb22:\n```python\nimport a\nb = '{{x}}'\n```" in said(client)
    assert "the new version of cell bb22" in run(shell, "%mmsp apply bb22", capsys)


def test_several_wait_and_each_can_be_applied(shell: Shell, capsys: Capsys) -> None:
    one, other = typed(shell, "a = 1"), typed(shell, "b = 1")
    use(shell, answer("a = 2"), answer("b = 2"), answer("b = 3"))
    for name in (one, other, other):
        run(shell, f"%%mmsp --edit {name}\nmore", capsys)
    written = run(shell, "%mmsp apply In[99]", capsys)
    assert "no new version of In[99] waits" in written
    assert f"there are: {one}, {other}" in written
    written = run(shell, "%mmsp apply", capsys)
    assert written.startswith(f"the new version of {other} is in the next cell; read it before you run it")
    assert written.endswith(f"; new versions of {one} wait too\n")
    assert shell.rl_next_input == "b = 3", "the newest of this cell"  # type: ignore[attr-defined]
    run(shell, f"%mmsp apply {one}", capsys)
    assert shell.rl_next_input == "a = 2"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I would rather not.", "there is no code in this answer, so that {} has no new version"),
        (f"```python\n{CELL}\n```", "the answer leaves {} as it is: there is nothing to apply"),
        (f"```python\n{CELL}\n\n\n```", "the answer leaves {} as it is: there is nothing to apply"),
        ("```python\nx = 1", "the code in this answer is cut off, so that {} has no new version"),
        ("```python\n\n```", "the code in this answer is empty, so that {} has no new version"),
    ],
)
def test_an_answer_that_changes_nothing_is_said_in_one_line(
    shell: Shell, capsys: Capsys, text: str, message: str
) -> None:
    name = typed(shell)
    use(shell, [scripted.text(text)])
    written = run(shell, f"%%mmsp --quiet --edit {name}\nbetter", capsys)
    assert written == message.format(name) + "\n"
    assert "there is nothing to apply" in run(shell, "%mmsp apply", capsys)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--edit In[99]", "--edit In[99]: there is no In[99]: the last one is In["),
        ("--edit In[0]", "--edit In[0]: there is no In[0]"),
        ("--edit", "--edit needs a value: --edit CELL"),
        ("--edit setpu", "talk.ipynb has no cell with the id or tag 'setpu'; did you mean 'setup'?"),
        ("--edit about", "about is a text cell, and only code can be edited"),
        ("--edit plots", "2 cells have the tag 'plots': name one by its id"),
        ("--edit {{1}}", "--edit takes In[7], or the id or tag of a cell, as it is"),
        ("--edit setup --background", "--edit and --background do not go together"),
        ("--edit setup --compare a,b", "--compare and --edit do not go together"),
        ("--edit setup --type int", "--edit and --type do not go together"),
        ("--edit setup --format code", "--edit and --format do not go together"),
    ],
)
def test_a_wrong_cell_is_one_line(shell: Shell, capsys: Capsys, saved: Path, line: str, message: str) -> None:
    typed(shell)
    client = use(shell)
    written = run(shell, f"%%mmsp {line}\nbetter", capsys)
    assert written.startswith("UsageError: ") and written.count("\n") == 1
    assert message in written
    assert client.requests == []


def test_it_needs_a_prompt(shell: Shell, capsys: Capsys) -> None:
    typed(shell)
    use(shell, [scripted.text("a")])
    run(shell, "%%mmsp\nhi", capsys)
    assert "--edit needs a prompt that says what to change" in run(shell, "%mmsp retry --edit In[1]", capsys)
    assert "%mmsp ask needs a prompt" in run(shell, "%mmsp ask --edit In[1]", capsys)


SOURCE = Source("In[1]", CELL, True, 1)


def test_of_several_blocks_the_one_like_the_cell_is_taken() -> None:
    text = f"```bash\npip install x\n```\n```python\n{NEW}\n```\nUse it so:\n```python\nf(1)\n```"
    assert proposed(text, SOURCE).after == NEW


def test_code_without_a_fence_is_code() -> None:
    assert proposed(NEW, SOURCE).after == NEW


def test_a_cell_magic_is_kept_and_its_language_named() -> None:
    source = Source("In[1]", "%%bash\nls", True, 1)
    assert "```bash\n%%bash\nls\n```" in instruction(source)
    assert proposed("```bash\nls -l\n```", source).after == "%%bash\nls -l"
    assert proposed("```bash\n%%bash\nls -l\n```", source).after == "%%bash\nls -l"
    assert Source("In[1]", "%%time\nf()").language == "python"


def test_a_fence_in_the_cell_is_outdone() -> None:
    assert "````python\n" in instruction(Source("In[1]", 's = """\n```\n"""'))


@pytest.mark.parametrize("vector", VECTORS)
def test_no_difference_lets_html_act(vector: str) -> None:
    html = bundle(Proposal("In[1]", "x", f"{vector}\n# {vector}"))["text/html"]
    for tag in ("<script", "<img", "<iframe", "<svg", "<details", "<a ", "<style", "<math", "<object", "<form"):
        assert tag not in html.lower()


def test_signs_say_what_colours_say() -> None:
    shown = bundle(Proposal("In[1]", "a\nb", "a\nc"), colours=True)
    assert shown["text/plain"].splitlines()[1:5] == [
        "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m",
        " a",
        "\x1b[31m-b\x1b[0m",
        "\x1b[32m+c\x1b[0m",
    ]
    assert ">-b</div>" in shown["text/html"] and ">+c</div>" in shown["text/html"]
    assert "\x1b" not in bundle(Proposal("In[1]", "a", "c"))["text/plain"]


def test_a_huge_difference_is_bounded() -> None:
    lines = Proposal("In[1]", "", "\n".join(map(str, range(5_000)))).lines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "@@ 4,002 more lines @@"


def test_proposals_are_bounded_and_the_oldest_goes() -> None:
    edits = Edits()
    for number in range(30):
        edits.add(Proposal(f"In[{number}]", "a", "b"))
    assert len(edits.names()) == 20
    assert edits.names()[0] == "In[10]"
    with pytest.raises(OptionError, match="no new version of 1 waits"):
        edits.take("1")
