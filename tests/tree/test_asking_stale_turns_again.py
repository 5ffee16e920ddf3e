"""`rerun_stale`: every stale turn is asked again in its place, and may be stopped in between."""

from __future__ import annotations

from typing import Any

import pytest
from agent_scripted import ScriptedClient, call, text

from mmsp_nb import BudgetExceededError, Conversation

PRICES = {"prompt_tokens": 1_000_000, "response_tokens": 1_000_000}


def talk(*answers: Any, later: tuple[Any, ...] = (), **options: Any) -> Conversation:
    """Four turns; the first is asked again, so that the others are stale, then ``later`` is what is still answered."""
    chat = Conversation(client=ScriptedClient(*[[text(answer)] for answer in answers]), **options)
    for number in range(len(answers)):
        chat.ask(f"q{number + 1}")
    chat.client.responses += [answer if isinstance(answer, list | Exception) else [text(answer)] for answer in later]
    return chat


def change_the_first(chat: Conversation) -> None:
    chat.hide(0)


def shown(chat: Conversation) -> list[tuple[str, str, bool]]:
    return [(turn.prompt, turn.text, turn.stale) for turn in chat.turns]


def sent(chat: Conversation) -> list[str]:
    return [item["text"] for message in chat.client.get_history() for item in message["content_items"]]


def test_every_stale_turn_is_asked_again_in_order_and_in_its_place():
    chat = talk("a", "b", "c", later=("B", "C"))
    change_the_first(chat)
    assert [turn.prompt for turn in chat.stale] == ["q2", "q3"]
    told: list[tuple[str, int, int]] = []
    answers = chat.rerun_stale(announce=lambda turn, number, count: told.append((turn.prompt, number, count)))
    assert [answer.text for answer in answers] == ["B", "C"]
    assert told == [("q2", 1, 2), ("q3", 2, 2)]
    assert shown(chat) == [("q1", "a", False), ("q2", "B", False), ("q3", "C", False)]
    assert sent(chat) == ["q2", "B", "q3", "C"]
    assert chat.stale == []


async def test_it_can_be_awaited():
    chat = talk("a", "b", later=("B",))
    change_the_first(chat)
    assert [answer.text for answer in await chat.rerun_stale_async()] == ["B"]


def test_nothing_is_asked_when_nothing_is_stale():
    chat = talk("a", "b")
    assert chat.rerun_stale() == []
    assert list(chat.branches) == ["main"]
    assert len(chat.client.requests) == 2


def test_all_old_turns_stay_reachable_as_one_branch_and_one_undo_takes_it_back():
    chat = talk("a", "b", "c", later=("B", "C"))
    change_the_first(chat)
    chat.rerun_stale()
    assert list(chat.branches) == ["main", "main~1"]
    assert [turn.text for turn in chat.branches["main~1"]] == ["a", "b", "c"]
    assert [turn.text for turn in chat.undo()] == ["B", "C"]
    assert shown(chat) == [("q1", "a", False), ("q2", "b", True), ("q3", "c", True)]
    chat.redo()
    assert [turn.text for turn in chat.turns] == ["a", "B", "C"]


@pytest.mark.parametrize("stop", [RuntimeError("broken"), KeyboardInterrupt()])
def test_when_it_stops_in_between_the_rest_is_still_stale_and_it_can_go_on(stop: BaseException):
    chat = talk("a", "b", "c", "d", later=("B", [text("C so far"), stop], "C", "D"))
    change_the_first(chat)
    with pytest.raises(type(stop)):
        chat.rerun_stale()
    assert [turn.prompt for turn in chat.stale] == ["q3", "q4"]
    assert [turn.text for turn in chat.turns] == ["a", "B", "C so far", "d"]
    assert [turn.text for turn in chat.branches["main~1"]] == ["a", "b", "c", "d"]
    chat.rerun_stale()
    assert shown(chat) == [("q1", "a", False), ("q2", "B", False), ("q3", "C", False), ("q4", "D", False)]
    assert sent(chat) == ["q2", "B", "q3", "C", "q4", "D"]


def test_each_is_asked_as_it_was_asked_before():
    def tide() -> int:
        """Tide"""
        return 5

    chat = Conversation(client=ScriptedClient([text("a")], [text("b")], [text("B")]))
    chat.ask("q1")
    chat.ask("q2", config={"temperature": 0.5}, tools=[tide])
    change_the_first(chat)
    chat.rerun_stale()
    assert chat.turns[1].config == {"temperature": 0.5}
    assert chat.turns[1].tools == ["tide"]


def test_the_new_turn_belongs_to_the_cell_of_the_old_one():
    chat = talk("a", "b", later=("B",))
    chat.turns[1].cell = "cell-2"
    change_the_first(chat)
    chat.rerun_stale()
    assert chat.turns[1].cell == "cell-2"


def test_a_question_and_what_went_on_from_it_is_one_question():
    def look() -> str:
        """Look"""
        return "seen"

    chat = Conversation(client=ScriptedClient([text("a")], [call("look")], [text("b")]), tools=[look], max_turns=1)
    chat.ask("q1")
    chat.ask("q2")
    chat.ask()
    chat.client.responses += [[text("B")]]
    change_the_first(chat)
    assert [turn.prompt for turn in chat.stale] == ["q2"]
    chat.rerun_stale()
    assert [turn.text for turn in chat.turns] == ["a", "B"]


def test_it_ends_at_an_answer_that_has_reached_a_limit():
    def look() -> str:
        """Look"""
        return "seen"

    chat = talk("a", "b", "c", later=([call("look")], "B"), tools=[look], max_turns=1)
    change_the_first(chat)
    [answer] = chat.rerun_stale()
    assert not answer.complete
    assert [turn.prompt for turn in chat.turns] == ["q1", "q2"]
    assert [turn.text for turn in chat.branches["main~1"]] == ["a", "b", "c"]
    assert chat.ask().text == "B"


def test_hidden_turns_are_not_asked_again():
    chat = talk("a", "b", "c", later=("C",))
    chat.hide(0, 1)
    assert [turn.prompt for turn in chat.stale] == ["q3"]


def test_a_spent_budget_changes_nothing():
    chat = talk("a", "b", later=("B",))
    change_the_first(chat)
    chat.budget = 0
    before = shown(chat)
    with pytest.raises(BudgetExceededError):
        chat.rerun_stale()
    assert shown(chat) == before
    assert list(chat.branches) == ["main"]


def test_what_it_would_take_is_said_before():
    chat = talk("a", "b", "c")
    change_the_first(chat)
    expected = chat.expect_rerun()
    assert [turn.prompt for turn in expected.turns] == ["q2", "q3"]
    assert expected.tokens > 0
    assert expected.price is None
    assert len(chat.client.requests) == 3
