# ruff: noqa: F811
"""What a person meets who types a little beside: one line each, in the words of what was typed; nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]


class Plain:
    """As little of a client as the protocol asks for."""

    async def streaming_response_stateful(self, message: Any, config: Any = None) -> AsyncIterator[Any]:
        for kind, item in (
            ("delta", {"type": "text.delta", "text": "hi"}),
            ("stop", {"type": "text.done", "text": "hi"}),
        ):
            yield {"role": "assistant", "event_type": kind, "content_items": [item]}


@pytest.mark.parametrize("options", ["", "--background"])
def test_a_client_that_says_only_what_it_must_answers(shell: Shell, capsys: Capsys, options: str) -> None:
    shell.user_ns["plain"] = Plain()
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    magics.live = True
    run(shell, f"%%mmsp --quiet --client plain --out told {options}\nhello", capsys)
    magics.chats.behind.wait(magics.chats.get())
    assert shell.user_ns["told"].text == "hi"
    assert shell.user_ns["told"].complete
    assert "model  Plain\n" in run(shell, "%mmsp status", capsys), "its own name, not that of what holds it"


def test_a_question_in_a_function_sees_the_function_s_variables(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("a")], [scripted.text("b")])
    shell.user_ns["city"] = "Rome"
    run(shell, "def ask(city):\n    %mmsp ask --out told {{city}} {{[city for _ in (1,)]}}\nask('Oslo')", capsys)
    assert said(client) == 'Oslo ["Oslo"]'
    assert shell.user_ns["told"].text == "a", "variables are written where a person finds them"
    run(shell, "%mmsp ask {{city}}", capsys)
    assert said(client) == "Rome"


def test_an_expression_that_is_interrupted_is_one_line(shell: Shell, capsys: Capsys) -> None:
    client = use(shell)
    written = run(shell, "%%mmsp\n{{(_ for _ in ()).throw(KeyboardInterrupt)}}", capsys)
    assert "KeyboardInterrupt: stopped before anything was sent" in written and "Traceback" not in written
    assert client.requests == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%mmsp ask {{In[99]}}", "{{In[99]}}: there is no In[99]"),
        ("%mmsp ask {{Out[99]}}", "{{Out[99]}}: there is no Out"),
        ("%mmsp ask {{Err[-1]}}", "{{Err[-1]}}: no exception of execution -1 is kept (there are: none)"),
        ("%mmsp ask {{cell()}}", "{{cell()}}: cell() takes the id or the tag of a cell"),
        ("%mmsp ask --type 3 hi", "--type 3: 3 cannot be the type of an answer: it is a value, and no type"),
        ("%mmsp ask --type list[ hi", "--type list[ is no type: SyntaxError: '[' was never closed"),
        ("%mmsp status now", "%mmsp status cannot use 'now'; %mmsp status: what is in use now"),
        ("%mmsp save a b", "%mmsp save cannot use 'b'; %mmsp save FILE: write this chat"),
        (
            "%mmsp help kernel_budgt",
            "there is no option, subcommand or setting kernel_budgt; did you mean 'kernel_budget'?",
        ),
        ("%mmsp continue please", "%mmsp continue takes options only, not 'please'; to ask, write %mmsp ask"),
        ("%mmsp continue --new", "there is nothing to continue in a new chat"),
    ],
)
def test_a_slip_is_one_line_in_the_words_of_what_was_typed(
    shell: Shell, capsys: Capsys, line: str, message: str
) -> None:
    use(shell)
    written = run(shell, line, capsys)
    assert written.startswith("UsageError: ") and written.count("\n") == 1
    assert message in written and "<string>" not in written


def test_help_knows_settings(shell: Shell, capsys: Capsys) -> None:
    assert run(shell, "%mmsp help kernel_budget", capsys).startswith(
        "%config MMSPMagics.kernel_budget = VALUE: US dollars"
    )
    assert "%%mmsp --budget X: US dollars this cell" in (both := run(shell, "%mmsp help budget", capsys))
    assert "%config MMSPMagics.budget = VALUE: US dollars that a new chat" in both
    undo = "%mmsp undo: take back the last turn, a reset, or that a chat was begun anew\n"
    assert run(shell, "%mmsp help undo", capsys) == undo


def test_continue_takes_options_so_that_another_model_can_go_on(shell: Shell, capsys: Capsys) -> None:
    run(shell, "%%mmsp -m fake:unauthorized\nWhat is 3 + 4?", capsys)
    run(shell, "%mmsp continue -m demo --quiet --out told", capsys)
    assert "7" in shell.user_ns["told"].text


def test_nothing_is_forgotten_where_nothing_was_said(shell: Shell, capsys: Capsys) -> None:
    use(shell)
    assert run(shell, "%mmsp reset", capsys) == "nothing has been said yet\n"


def test_a_recording_that_cannot_be_written_is_said_before_an_answer_is_lost(
    shell: Shell, capsys: Capsys, tmp_path: Path
) -> None:
    assert f"{tmp_path} is a folder: name a file in it" in run(shell, f"%mmsp record {tmp_path}", capsys)
    (tmp_path / "file").write_text("")
    written = run(shell, f"%mmsp record {tmp_path / 'file' / 'x.jsonl'}", capsys)
    assert f"cannot be written: {tmp_path / 'file'} does not allow it" in written
    assert "is a folder, and no recording" in run(shell, f"%mmsp replay {tmp_path}", capsys)
    assert run(shell, "%mmsp record", capsys).startswith("nothing is recorded")


def test_a_recording_says_whether_it_plays_or_records(shell: Shell, capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.jsonl"
    try:
        assert "which holds nothing yet" in run(shell, f"%mmsp record {path} once", capsys)
        run(shell, "%mmsp ask --quiet hello", capsys)
        written = run(shell, f"%mmsp record {path} once", capsys)
        assert written == f"replaying {path}: 1 answer; anything else is an error\n"
        assert "what is not in it is recorded" in run(shell, f"%mmsp record {path} new", capsys)
    finally:
        run(shell, "%mmsp record off", capsys)


def test_a_picture_is_not_taken_for_a_function(shell: Shell, capsys: Capsys) -> None:
    shell.user_ns["figure"] = b"x"
    assert run(shell, "%mmsp ask --image nope.png hi", capsys).endswith("there is no such variable or file\n")
    assert "did you mean" not in run(shell, "%mmsp ask --image opne hi", capsys)
    assert "did you mean 'figure'?" in run(shell, "%mmsp ask --image figrue hi", capsys)


def test_a_model_nobody_knows_is_said_in_the_words_of_cells_in_a_comparison_too(shell: Shell, capsys: Capsys) -> None:
    assert "needs %%mmsp --client-type" in run(shell, "%%mmsp --compare demo,nope\nhi", capsys)
