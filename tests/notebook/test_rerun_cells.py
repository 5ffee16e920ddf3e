# ruff: noqa: F811
"""``%mmsp rerun stale`` in a shell; limits and budgets of cells, chats and the kernel; dry runs that change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_cells_are_turns import Cell, cell, turns  # noqa: F401 - fixtures are found by name
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb import choosing, spending

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]

PRICES = {"prompt_tokens": 1_000, "response_tokens": 1_000, "cached_tokens": 0, "thoughts_tokens": 0}
"""A tenth of a cent a token: an answer of the scripted client costs $0.165."""


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every model has a price, and nothing was spent."""
    monkeypatch.setattr(choosing, "prices", lambda client: PRICES)
    spending.reset()
    yield
    spending.budget = None
    spending.reset()


def stale(shell: Shell, cell: Cell, *later: Any) -> scripted.Scripted:
    """Three cells of which the first was run again, so that two turns are stale."""
    client = use(shell, *([scripted.text(word)] for word in ("one", "two", "three", "ONE")), *later)
    for name, prompt in (("a", "first"), ("b", "second"), ("c", "third"), ("a", "first, changed")):
        cell(name, f"%%mmsp\n{prompt}")
    return client


def test_stale_turns_are_asked_again_live_and_in_order(shell: Shell, cell: Cell, capsys: Capsys) -> None:
    client = stale(shell, cell, [scripted.text("TWO")], [scripted.text("THREE")])
    lines = [line for line in run(shell, "%mmsp rerun stale", capsys).splitlines() if line]
    assert lines == [
        "asking again: 2 stale turns with scripted-model, about 330 tokens, price unknown",
        "1 of 2: second",
        "TWO",
        "2 of 2: third",
        "THREE",
        "asked 2 again; what was there before is branch main~2; %mmsp undo takes it back",
    ]
    assert turns(shell) == [("first, changed", "ONE", False), ("second", "TWO", False), ("third", "THREE", False)]
    assert shell.user_ns["_mmsp"].text == "THREE"
    sent = [item["text"] for message in client.history for item in message["content_items"]]
    assert sent == ["first, changed", "ONE", "second", "TWO", "third", "THREE"]
    run(shell, "%mmsp undo", capsys)
    assert turns(shell)[1:] == [("second", "two", True), ("third", "three", True)]


def test_a_cell_run_after_it_still_replaces_its_own_turn(shell: Shell, cell: Cell, capsys: Capsys) -> None:
    stale(shell, cell, *([scripted.text(word)] for word in ("TWO", "THREE", "2")))
    run(shell, "%mmsp rerun stale", capsys)
    cell("b", "%%mmsp\nsecond, changed")
    assert [turn[:2] for turn in turns(shell)] == [
        ("first, changed", "ONE"), ("second, changed", "2"), ("third", "THREE")
    ]  # fmt: skip


def test_it_says_what_it_would_do_and_when_there_is_nothing(shell: Shell, cell: Cell, capsys: Capsys) -> None:
    nothing = "nothing is stale: every answer knows what stands before it\n"
    assert run(shell, "%mmsp rerun stale", capsys) == nothing
    client = stale(shell, cell)
    before = len(client.requests)
    assert run(shell, "%mmsp rerun stale --dry-run", capsys).splitlines() == [
        "2 stale turns with scripted-model, about 330 tokens, price unknown:",
        "  turn 2: second",
        "  turn 3: third",
        "nothing was sent; %mmsp rerun stale does it",
    ]
    assert len(client.requests) == before


def test_its_price_is_said_before(shell: Shell, cell: Cell, capsys: Capsys, priced: None) -> None:
    stale(shell, cell)
    assert "about 330 tokens, about $0.3300:" in run(shell, "%mmsp rerun stale --dry-run", capsys)


@pytest.mark.parametrize("stop", [RuntimeError("broken"), KeyboardInterrupt()])
def test_when_it_ends_early_it_says_what_is_left(shell: Shell, cell: Cell, capsys: Capsys, stop: BaseException) -> None:
    stale(shell, cell, [scripted.text("TW"), stop], [scripted.text("TWO")], [scripted.text("THREE")])
    written = run(shell, "%mmsp rerun stale", capsys)
    assert "2 still stale; %mmsp rerun stale goes on" in written
    assert type(stop).__name__ in written
    assert "Traceback" not in written
    assert [turn[1] for turn in turns(shell)] == ["ONE", "TW", "three"]
    run(shell, "%mmsp rerun stale", capsys)
    assert [turn[1:] for turn in turns(shell)] == [("ONE", False), ("TWO", False), ("THREE", False)]


def test_it_ends_at_an_answer_that_is_not_complete(shell: Shell, cell: Cell, capsys: Capsys) -> None:
    def look() -> str:
        """Look"""
        return "seen"

    stale(shell, cell, [scripted.call("look")], [scripted.text("TWO")])
    chat = shell.user_ns["chat"]
    chat.tools, chat.max_turns = [look], 1
    assert "stopped at an answer that is not complete" in run(shell, "%mmsp rerun stale", capsys)
    assert "TWO" in run(shell, "%mmsp continue", capsys)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rerun", "say what to ask again: %mmsp rerun stale"),
        ("rerun stlae", "%mmsp rerun cannot use 'stlae'; did you mean 'stale'?"),
        ("rerun stale --dyr-run", "did you mean '--dry-run'?"),
        ("rerun everything", "it asks again what is stale"),
        ("rerun stale stale", "say what to ask again"),
    ],
)
def test_other_words_are_one_line(shell: Shell, capsys: Capsys, line: str, message: str) -> None:
    written = run(shell, f"%mmsp {line}", capsys)
    assert written.startswith("UsageError: ") and written.count("\n") == 1
    assert message in written


# limits and money


def test_a_cell_may_make_so_many_calls(shell: Shell, capsys: Capsys) -> None:
    def look() -> str:
        """Look"""
        return "seen"

    use(shell, [scripted.call("look"), scripted.call("look")], [scripted.text("done")], tools=[look])
    written = run(shell, "%%mmsp --max-calls 1\ngo", capsys)
    assert "stopped at the limit of tool calls; %mmsp continue goes on" in written
    assert shell.user_ns["chat"].max_calls is None
    assert "done" in run(shell, "%mmsp continue", capsys)


@pytest.mark.parametrize("option", ["--budget", "--max-cost"])
def test_a_cell_above_its_budget_is_not_sent_and_its_prompt_is_kept(
    shell: Shell, capsys: Capsys, priced: None, option: str
) -> None:
    client = use(shell, [scripted.text("sent now")])
    written = run(shell, f"%%mmsp {option} 0.01\n{'x' * 400}", capsys)
    assert written.count("\n") == 1
    assert written.startswith("BudgetExceededError: a question may cost $0.0100 (max_cost, --budget), and this request")
    assert client.requests == []
    assert "sent now" in run(shell, "%mmsp continue", capsys)
    assert said(client) == "x" * 400
    assert shell.user_ns["chat"].max_cost is None


def test_a_budget_ends_the_calls_of_a_cell(shell: Shell, capsys: Capsys, priced: None) -> None:
    def look() -> str:
        """Look"""
        return "seen"

    use(shell, [scripted.call("look")], [scripted.text("done")], tools=[look])
    assert "stopped at the limit of cost" in run(shell, "%%mmsp --budget $0.10\ngo", capsys)


def test_a_budget_needs_prices_but_not_of_models_on_this_machine(shell: Shell, capsys: Capsys) -> None:
    assert "Hello" in run(shell, "%%mmsp --budget 0.01\nhello", capsys)
    client = use(shell)
    written = run(shell, "%%mmsp --budget 0.01\nhello", capsys)
    assert "--budget cannot be kept: the prices of scripted-model are not known; see --max-calls" in written
    assert client.requests == []


def test_budgets_are_settings_of_chats_and_of_the_kernel(shell: Shell, capsys: Capsys, priced: None) -> None:
    use(shell, [scripted.text("one")], [scripted.text("two")])
    run(shell, "%config MMSPMagics.budget = 0.1", capsys)
    run(shell, "%%mmsp\nhi", capsys)
    assert "budget $0.1650 of $0.1000 for this chat" in run(shell, "%mmsp", capsys)
    assert "BudgetExceededError: this conversation has cost $0.1650" in run(shell, "%%mmsp\nhi", capsys)
    run(shell, "%config MMSPMagics.budget = None", capsys)
    run(shell, "%config MMSPMagics.kernel_budget = 0.1", capsys)
    assert "$0.1650 of $0.1000 for this kernel" in run(shell, "%mmsp", capsys)
    assert "the kernel's budget of $0.1000" in run(shell, "%mmsp ask again", capsys)
    run(shell, "%config MMSPMagics.kernel_budget = None", capsys)
    assert "two" in run(shell, "%mmsp continue", capsys)


def test_a_new_chat_begins_with_the_configured_budget(shell: Shell, capsys: Capsys) -> None:
    run(shell, "%config MMSPMagics.budget = 2", capsys)
    run(shell, "%mmsp new side", capsys)
    assert "of $2.0000 for this chat" in run(shell, "%mmsp", capsys)


# dry runs


def test_a_dry_run_changes_nothing(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("one")])
    run(shell, "%%mmsp\nhi", capsys)
    magics: Any = shell.magics_manager.registry["MMSPMagics"]

    def state() -> list[Any]:
        chat = shell.user_ns["chat"]
        names = {name: id(magics.chats.find(name)) for name in magics.chats.names()}
        return [names, magics.chats.current, chat.model, id(chat.client), len(chat.turns), list(client.history),
                id(shell.user_ns["_mmsp"]), magics.waiting.edits.names()]  # fmt: skip

    before = state()
    shell.user_ns["other"] = scripted.Scripted(model="another")
    for options in (
        "-m demo", "-m demo:fast --client-type openai-chat", "--new", "--new -m demo", "--chat side", "--client other",
        "--chat side --client other", "--format code", "--background", "--out fresh", "--max-turns 1 --max-calls 1",
    ):  # fmt: skip
        written = run(shell, f"%%mmsp {options} --dry-run\nhi", capsys)
        assert written.startswith("model: "), (options, written)
        assert state() == before, options
    assert "fresh" not in shell.user_ns
    assert client.history == before[5]
    assert "another" in run(shell, "%%mmsp --client other --dry-run\nhi", capsys)
    assert run(shell, "%%mmsp -m demo --dry-run\nhi", capsys).startswith("model: demo\nturns before: 1\n")


def test_a_dry_run_of_a_comparison_is_that_of_each_model(shell: Shell, capsys: Capsys) -> None:
    run(shell, "%%mmsp\nhello", capsys)
    written = run(shell, "%%mmsp --compare demo,demo:fast --dry-run\nhi", capsys)
    assert written.startswith("model: demo\nturns before: 1\n")
    assert "model: demo:fast\nturns before: 1\n" in written
    assert "UsageError: --compare nosuch: " in run(shell, "%%mmsp --compare demo,nosuch --dry-run\nhi", capsys)


def test_a_long_history_is_bounded_in_a_dry_run(shell: Shell, capsys: Capsys) -> None:
    for number in range(12):
        run(shell, f"%%mmsp --quiet\nquestion {number}", capsys)
    shell.user_ns["long"] = "y" * 50_000
    written = run(shell, "%%mmsp --dry-run\nlast {{long}}", capsys)
    body = json.loads(written[written.index("{\n") : written.index("\nprompt:")])
    assert len(body["messages"]) == 9
    assert body["messages"][2] == "… 17 more, left out here …"
    assert "question 0" in json.dumps(body["messages"][0])
    assert "(46,005 more characters)" in json.dumps(body["messages"][-1], ensure_ascii=False)
    assert len(written) < 35_000


# chats


def test_a_new_chat_goes_on_with_the_model_in_use(shell: Shell, capsys: Capsys) -> None:
    run(shell, "%mmsp model demo:fast", capsys)
    assert run(shell, "%mmsp new side", capsys) == "new chat side with demo:fast\n"
    assert run(shell, "%mmsp model demo openai-responses", capsys) == "demo answers from now on\n"
    run(shell, "%mmsp new third", capsys)
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    assert magics.chats.find().client.client_type == "openai-responses"
    assert run(shell, "%mmsp model --client-type openai-chat demo:slow", capsys) == "demo:slow answers from now on\n"
    assert magics.chats.find().client.client_type == "openai-chat"
    assert "needs the id of a model" in run(shell, "%mmsp model --client-type openai-chat", capsys)
    assert "%mmsp model cannot use '-x'" in run(shell, "%mmsp model -x", capsys)
    assert "it is no client type; did you mean 'openai-chat'?" in run(shell, "%mmsp model demo openai-caht", capsys)


def test_a_name_that_was_bound_anew_is_used_anew(shell: Shell, capsys: Capsys) -> None:
    use(shell, [scripted.text("old")])
    use(shell, [scripted.text("new")])
    assert "new" in run(shell, "%%mmsp\nhi", capsys)


def test_an_answer_that_was_drawn_leaves_no_bare_prompt(shell: Shell, capsys: Capsys) -> None:
    use(shell, [scripted.text("forty-two")])
    shell.run_cell("%mmsp ask hi", store_history=True)
    written = capsys.readouterr().out
    assert "Out[" not in written
    assert written.count("forty-two") == 1
    assert shell.user_ns["_"].text == "forty-two"
    shell.run_cell("_", store_history=True)
    assert "forty-two" in capsys.readouterr().out
