"""How far an answer may go: each limit ends it in a state that can go on."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from agent_scripted import ScriptedClient, call, text

from mmsp_nb import choosing
from mmsp_nb.conversation import Conversation


def count(to: int) -> int:
    """Counts."""
    ran.append(to)
    return to


ran: list[int] = []


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    ran.clear()


def chat(*scripts: Any, **options: Any) -> Conversation:
    return Conversation(client=ScriptedClient(*scripts), tools=[count], **options)


def test_the_limit_of_calls_holds_what_goes_beyond_it_and_goes_on_from_there() -> None:
    conversation = chat(
        [call("count", "1", to=1), call("count", "2", to=2)], [call("count", "3", to=3)], [text("Done.")], max_calls=2
    )
    answer = conversation.ask("Count")
    assert answer.turn.reason == "max_calls" and ran == [1, 2] and not answer.complete
    assert [each["tool_call_id"] for each in answer.turn.held] == ["3"] and answer.awaiting == []
    assert "limit of calls" in repr(answer)
    assert conversation.ask().text == "Done." and ran == [1, 2, 3]


def test_a_response_with_more_calls_than_the_limit_runs_none_until_told_to() -> None:
    conversation = chat([call("count", str(n), to=n) for n in range(5)], [text("Done.")], max_calls=3)
    conversation.ask("Count")
    assert ran == []
    assert conversation.ask().text == "Done." and ran == [0, 1, 2, 3, 4]


def test_the_limit_of_cost_holds_the_calls_of_the_response_that_went_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "cost_of", lambda client: lambda usage: Decimal(usage["response_tokens"]) / 1000)
    conversation = chat([call("count", to=1)], [call("count", "2", to=2)], [text("Done.")], max_cost=0.007)
    answer = conversation.ask("Count")
    assert answer.turn.reason == "max_cost" and ran == [1]
    assert conversation.ask().text == "Done." and ran == [1, 2]


def test_a_limit_of_cost_without_prices_is_refused() -> None:
    with pytest.raises(ValueError, match="prices of this model are not known"):
        chat([text("Hello")], max_cost=1).ask("Hello")


@pytest.mark.parametrize("options", [{"max_calls": 0}, {"max_calls": True}, {"max_cost": 0}, {"max_cost": "1"}])
def test_what_is_no_limit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        chat(**options)
