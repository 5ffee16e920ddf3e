"""A cell that is run again takes the place of its turn; `retry`, branches, files and forks by subcommands."""

# ruff: noqa: F811

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

Cell = Callable[[str, str], str]


@pytest.fixture
def cell(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> Cell:
    """Runs a cell under an id, as a front end does."""

    def run_cell(cell_id: str, code: str) -> str:
        shell.parent_header = {"metadata": {"cellId": cell_id}}
        try:
            return run(shell, code, capsys)
        finally:
            shell.parent_header = {}

    return run_cell


def turns(shell: InteractiveShell) -> list[tuple[str, str, bool]]:
    return [(turn.prompt, turn.text, turn.stale) for turn in shell.user_ns["chat"].turns]


def test_a_cell_run_again_replaces_its_turn_and_marks_what_came_after(shell: InteractiveShell, cell: Cell) -> None:
    client = use(shell, *([scripted.text(word)] for word in ("one", "two", "three", "ONE", "four")))
    cell("a", "%%mmsp\nfirst")
    cell("b", "%%mmsp\nsecond")
    cell("c", "%%mmsp\nthird")
    cell("a", "%%mmsp\nfirst, changed")
    chat = shell.user_ns["chat"]
    assert turns(shell) == [("first, changed", "ONE", False), ("second", "two", True), ("third", "three", True)]
    assert said(client) == "first, changed"
    assert shell.user_ns["_mmsp"].text == "ONE"
    assert [turn.text for turn in chat.branches["main~1"]] == ["one", "two", "three"]
    cell("d", "%%mmsp\nfourth")
    sent = [item["text"] for message in client.history for item in message["content_items"]]
    assert sent == ["first, changed", "ONE", "second", "two", "third", "three", "fourth", "four"]


def test_the_old_branch_is_as_it_was_and_can_be_gone_on_with(
    shell: InteractiveShell,
    cell: Cell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(shell, [scripted.text("one")], [scripted.text("two")], [scripted.text("ONE")])
    cell("a", "%%mmsp\nfirst")
    cell("b", "%%mmsp\nsecond")
    cell("a", "%%mmsp\nfirst")
    assert "  main~1  2 turns: second" in run(shell, "%mmsp branch", capsys)
    assert run(shell, "%mmsp branch main~1", capsys) == "branch main~1, 2 turns\n"
    assert turns(shell) == [("first", "one", False), ("second", "two", False)]
    assert "did you mean 'main~1'?" in run(shell, "%mmsp branch main~2", capsys)
    run(shell, "%mmsp branch main", capsys)
    assert turns(shell) == [("first", "ONE", False), ("second", "two", True)]


def test_undo_and_redo_of_a_cell_run_again(
    shell: InteractiveShell,
    cell: Cell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(shell, [scripted.text("one")], [scripted.text("two")], [scripted.text("ONE")])
    cell("a", "%%mmsp\nfirst")
    cell("b", "%%mmsp\nsecond")
    cell("a", "%%mmsp\nfirst")
    run(shell, "%mmsp undo", capsys)
    assert turns(shell) == [("first", "one", False), ("second", "two", False)]
    assert run(shell, "%mmsp redo", capsys) == "did again: first\n"
    assert turns(shell) == [("first", "ONE", False), ("second", "two", True)]
    assert "there is nothing to redo" in run(shell, "%mmsp redo", capsys)


def test_a_failed_answer_leaves_no_branch_and_a_refused_question_changes_nothing(
    shell: InteractiveShell,
    cell: Cell,
) -> None:
    use(shell, [RuntimeError("broken")], [scripted.text("one")])
    cell("a", "%%mmsp\nfirst")
    cell("a", "%%mmsp\nfirst")
    chat = shell.user_ns["chat"]
    assert turns(shell) == [("first", "one", False)]
    assert list(chat.branches) == ["main"]
    assert "did you mean" in cell("a", "%%mmsp --modle x\nfirst")
    chat.budget = 0
    assert "BudgetExceededError" in cell("a", "%%mmsp\nfirst")
    assert turns(shell) == [("first", "one", False)]
    assert list(chat.branches) == ["main"]


def test_a_cell_run_again_that_stops_at_a_limit_can_be_gone_on_with(
    shell: InteractiveShell, cell: Cell, capsys: pytest.CaptureFixture[str]
) -> None:
    def tide() -> int:
        """Tide"""
        return 5

    scripts = [scripted.text("one")], [scripted.text("two")], [scripted.call("tide")], [scripted.text("five")]
    client = use(shell, *scripts, tools=[tide])
    cell("a", "%%mmsp\nfirst")
    cell("b", "%%mmsp\nsecond")
    cell("a", "%%mmsp --max-turns 1\nfirst")
    chat = shell.user_ns["chat"]
    assert [turn.prompt for turn in chat.turns] == ["first"]
    assert [turn.text for turn in chat.branches["main~1"]] == ["one", "two"]
    assert "five" in run(shell, "%mmsp continue", capsys)
    assert client.requests[-1]["content_items"][0]["text"] == "5"
    assert [turn.state for turn in chat.turns] == ["done", "done"]


def test_several_questions_of_one_run_are_several_turns(shell: InteractiveShell, cell: Cell) -> None:
    use(shell, *([scripted.text(word)] for word in "abcd"))
    code = "for word in 'xy':\n    get_ipython().run_cell_magic('mmsp', '', word)"
    cell("a", code)
    assert [turn.prompt for turn in shell.user_ns["chat"].turns] == ["x", "y"]


def test_without_ids_cells_add_turns_but_for_one_that_asks_again_what_failed(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(shell, [scripted.text("a")], [scripted.text("b")], [RuntimeError("no")], [scripted.text("c")])
    for prompt in ("joke", "joke", "again", "again"):
        run(shell, f"%%mmsp\n{prompt}", capsys)
    assert turns(shell) == [("joke", "a", False), ("joke", "b", False), ("again", "c", False)]


def test_retry_asks_the_last_question_again_with_its_options(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = use(shell, [scripted.text("a")], [scripted.text("b")])
    assert "there is nothing to ask again" in run(shell, "%mmsp retry", capsys)
    run(shell, "%%mmsp --temperature 0.5\nhi", capsys)
    assert "b" in run(shell, "%mmsp retry --max-tokens 9", capsys)
    assert turns(shell) == [("hi", "b", False)]
    assert (client.configs[1]["temperature"], client.configs[1]["max_tokens"]) == (0.5, 9)
    assert "takes options only, not 'now'" in run(shell, "%mmsp retry now", capsys)


def test_a_fork_is_a_chat_of_its_own(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "%%mmsp\nhello", capsys)
    assert "chat main-2 goes on from here; %mmsp use main goes back" in run(shell, "%mmsp fork", capsys)
    run(shell, "%%mmsp\nand now?", capsys)
    listed = run(shell, "%mmsp chats", capsys)
    assert "  main  demo, 1 turn: hello" in listed
    assert "* main-2  demo, 2 turns: and now?" in listed
    assert "there is a chat 'main' already" in run(shell, "%mmsp fork main", capsys)


def test_a_chat_is_saved_loaded_and_exported(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "nothing to save" in run(shell, "%mmsp save talk.jsonl", capsys)
    run(shell, "%%mmsp\nhello", capsys)
    assert "saved talk.jsonl: 1 turn" in run(shell, "%mmsp save talk.jsonl", capsys)
    assert "chat talk with demo, 1 turn" in run(shell, "%mmsp load talk.jsonl", capsys)
    assert "there is a chat 'talk' already" in run(shell, "%mmsp load talk.jsonl", capsys)
    assert "chat other with demo" in run(shell, "%mmsp load talk.jsonl other", capsys)
    # the inspector shows this name
    assert shell.magics_manager.registry["MMSPMagics"].chats.find("other").name == "other"
    assert "there is no file tlak.jsonl; did you mean 'talk.jsonl'?" in run(shell, "%mmsp load tlak.jsonl", capsys)
    run(shell, "%mmsp export talk.md", capsys)
    assert "hello" in (tmp_path / "talk.md").read_text()
    named = "cannot tell the format of 'talk.doc' by its ending: give a format"
    assert named in run(shell, "%mmsp export talk.doc", capsys)
    assert "%mmsp save needs the name of a file" in run(shell, "%mmsp save", capsys)


def test_usage_lists_the_turns(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    use(shell, [scripted.text("a")], [RuntimeError("x")])
    assert "nothing has been asked yet" in run(shell, "%mmsp usage", capsys)
    run(shell, "%%mmsp\nfirst", capsys)
    run(shell, "%%mmsp\nsecond", capsys)
    lines = run(shell, "%mmsp usage", capsys).splitlines()
    assert lines[1].split()[:4] == ["1", "120", "45", "-"]
    assert "scripted-model (failed)  second" in lines[2]
    assert lines[3].split()[:3] == ["all", "120", "45"]


OWN = """
class Mine:
    'A client of my own: the stateful method and nothing else.'
    model = 'mine'
    def __init__(self):
        self.got = []
    async def streaming_response_stateful(self, message, config):
        self.got.append(message)
        base = {'role': 'assistant', 'usage_metadata': None, 'finish_reason': None, 'created_at': 1}
        for kind in ('delta', 'done'):
            item = {'type': f'text.{kind}', 'text': 'my own'}
            yield {**base, 'event_type': 'delta', 'content_items': [item]}
        yield {**base, 'event_type': 'stop', 'content_items': [], 'finish_reason': 'stop'}
mine = Mine()
"""


def test_any_object_with_the_stateful_method_is_a_client(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(shell, OWN, capsys)
    assert "my own" in run(shell, "%%mmsp --client mine\nhi", capsys)
    assert shell.user_ns["mine"].got[0]["content_items"] == [{"type": "text.done", "text": "hi"}]
    assert "my own" in run(shell, "%%mmsp\nand on", capsys)
    assert "mine" in run(shell, "%mmsp status", capsys)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("%%mmsp --client mien\nhi", "--client mien: there is no such variable; did you mean 'mine'?"),
        ("%%mmsp --client number\nhi", "--client number is no client: 3 has no streaming_response_stateful()"),
        ("%%mmsp --client Mine\nhi", "--client Mine is the class Mine: make an object of it"),
        ("%%mmsp --client mine -m demo\nhi", "give --client, or --model and --client-type"),
        ("%%mmsp --client openai\nhi", "there is no such variable"),
    ],
)
def test_what_is_no_client_is_said_in_one_line(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    code: str,
    message: str,
) -> None:
    run(shell, OWN + "\nnumber = 3", capsys)
    written = run(shell, code, capsys)
    assert written.startswith("UsageError: ")
    assert written.count("\n") == 1
    assert message in written


def test_a_client_with_a_history_brings_it_along(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    client: Any = scripted.Scripted([scripted.text("yes")])
    client.history = [
        {"role": "user", "content_items": [{"type": "text.done", "text": "before"}]},
        {"role": "assistant", "content_items": [{"type": "text.done", "text": "said"}]},
    ]
    shell.user_ns["other"] = client
    run(shell, "%%mmsp --client other\nhi", capsys)
    assert [len(message["content_items"]) for message in client.history] == [1, 1, 1, 1]
