"""Budgets: what they are, when they refuse, what they count, and what outlives a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent_scripted import ScriptedClient, call, text

from mmsp_nb import BudgetExceededError, Conversation, choosing, load, spending
from mmsp_nb.money import Ledger, checked_budget, dollars

PRICES = {"prompt_tokens": 1_000_000, "response_tokens": 1_000_000, "cached_tokens": 0, "thoughts_tokens": 0}
"""A dollar a token."""


class Copied(ScriptedClient):
    def sibling(self) -> Any:
        return Copied(model=self.model)


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Every model costs a dollar a token, and the ledger begins at nothing."""
    monkeypatch.setattr(choosing, "prices", lambda client: PRICES)
    spending.reset()
    yield spending
    spending.budget = None
    spending.reset()


def talk(*answers: Any, **options: Any) -> Conversation:
    return Conversation(client=Copied(*[a if isinstance(a, list) else [text(a)] for a in answers]), **options)


@pytest.mark.parametrize(
    ("value", "amount"),
    [(None, None), (0, "0"), (2, "2"), (0.5, "0.5"), ("0.50", "0.50"), (" $1_000 ", "1000"), (Decimal("0.1"), "0.1")],
)
def test_a_budget_is_an_amount_of_dollars(value: Any, amount: str | None):
    assert checked_budget(value) == (None if amount is None else Decimal(amount))


@pytest.mark.parametrize("value", ["x", "", -1, "nan", float("inf"), True, [], "1,5"])
def test_what_is_none_is_refused_in_one_line(value: Any):
    for set_it in (lambda: setattr(talk(), "budget", value), lambda: setattr(Ledger(), "budget", value)):
        with pytest.raises(
            ValueError, match=r"^budget is an amount of US dollars such as 0\.50, or None for no limit, not"
        ):
            set_it()
    with pytest.raises(ValueError, match="budget is an amount"):
        talk(budget=value)


def test_small_amounts_are_not_rounded_to_nothing():
    assert [dollars(Decimal(each)) for each in ("0", "1.5", "0.00001234")] == ["$0.0000", "$1.5000", "$0.00001"]


def test_a_request_that_is_estimated_above_the_rest_is_not_sent_and_its_prompt_is_kept():
    chat = talk("a", "long enough", budget=40)
    chat.ask("hi")  # 15 tokens
    assert chat.spent == 15
    with pytest.raises(
        BudgetExceededError, match=r"\$15\.0000 of its budget of \$40\.0000, and this request about \$1"
    ):
        chat.ask("x" * 400)
    assert len(chat.client.requests) == 1
    assert (chat.turns[-1].prompt, chat.turns[-1].state) == ("x" * 400, "failed")
    chat.budget = "$1000"
    assert chat.ask().text == "long enough"
    assert chat.turns[-1].prompt == "x" * 400


def test_a_refused_question_leaves_nothing_for_later_requests():
    chat = talk("a", "b", budget=0)
    with pytest.raises(BudgetExceededError):
        chat.ask("never sent")
    chat.budget = None
    chat.ask("sent")
    assert [item["text"] for item in chat.client.requests[0][0][-1]["content_items"]] == ["sent"]


def test_the_limit_of_a_question_refuses_a_request_above_it():
    chat = talk("a", max_cost=10)
    with pytest.raises(BudgetExceededError, match=r"a question may cost \$10\.0000 \(max_cost, --budget\)"):
        chat.ask("x" * 400)
    assert chat.ask("hi").text == "a"


def test_a_budget_ends_a_loop_of_tools_too():
    def look() -> str:
        """Look"""
        return "seen"

    chat = talk([call("look")], [call("look")], "done", tools=[look], budget=30)
    answer = chat.ask("hi")
    assert answer.turn.reason == "max_cost"
    assert len(chat.client.requests) == 2


def test_what_was_taken_back_reset_or_replaced_was_spent_all_the_same():
    chat = talk("a", "b", "c")
    chat.ask("1")
    chat.undo()
    chat.ask("2")
    chat.reset()
    chat.ask("3")
    assert (chat.cost, chat.spent) == (15, 45)
    chat.budget = 45
    with pytest.raises(BudgetExceededError):
        chat.ask("4")


def test_totals_budget_and_limits_outlive_a_file(tmp_path: Path):
    chat = talk("a", "b", budget="1.50", max_cost=20, max_calls=3)
    chat.budget = 100
    chat.ask("1", config={})
    chat.undo()
    chat.ask("2")
    path = chat.save(tmp_path / "talk.jsonl")
    again = load(path, client=Copied())
    assert (again.spent, again.cost, again.budget) == (30, 15, 100)
    assert (again.max_calls, again.max_cost) == (3, 20)
    assert load(again.save(tmp_path / "again.jsonl"), client=Copied()).spent == 30
    assert path.read_text() == (tmp_path / "again.jsonl").read_text()


def test_all_conversations_share_the_budget_of_the_kernel(kernel: Ledger):
    one, other = talk("a"), talk("b")
    one.ask("1")
    kernel.budget = 15
    with pytest.raises(BudgetExceededError, match=r"all conversations have cost \$15\.0000 of the kernel's budget"):
        other.ask("2")
    assert repr(kernel) == "<$15.0000 spent, of a budget of $15.0000>"
    kernel.budget = None
    other.ask()
    assert kernel.spent == 30


def test_a_fork_has_spent_what_it_took_over():
    chat = talk("a", budget=15)
    chat.ask("1")
    assert (chat.fork().spent, chat.fork().budget) == (15, 15)


def test_prices_that_are_not_known_count_as_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(choosing, "prices", lambda client: None)
    chat = talk("a", "b", budget=1)
    chat.ask("x" * 4_000)
    assert (chat.cost, chat.spent) == (None, 0)


def test_threads_may_add_to_a_ledger():
    ledger = Ledger()

    def add() -> None:
        for _ in range(500):
            ledger.add(Decimal(1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == 2_000


def test_a_model_is_changed_by_switch():
    with pytest.raises(AttributeError, match=r"changes its model by chat.switch\('demo'\)"):
        talk().model = "demo"  # type: ignore[misc]
