"""One conversation through all client types and back, over the agent's loop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from switch_kinds import KINDS, Kind, opaque_in, picture
from wire_rules import check

from mmsp_nb import Conversation
from mmsp_nb.testing import FakeProvider, Reply


def tide_table(port: str) -> str:
    """When is high tide?

    Args:
        port: The name of the port.
    """
    return f"high tide in {port}"


def where(kind: Kind, provider: FakeProvider) -> dict[str, Any]:
    return {"api_key": "key", "base_url": provider.url(kind.path), "client_type": kind.name}


def ask(chat: Conversation, kind: Kind, provider: FakeProvider, tag: str) -> list[Any]:
    """A question with two calls; returns the bodies of the two requests."""
    provider.reset()
    provider.add(kind.asks(tag), kind.says(tag))
    answer = chat.ask([f"{tag}: tides?", picture()])
    assert answer.text == f"{tag}: high tide." and [call.result for call in answer.calls] == [
        "high tide in Brest",
        "high tide in Saint-Malo",
    ]
    return [request.body for request in provider.requests]


def made_by(chat: Conversation, origin: str | None) -> set[str]:
    return {value for turn in chat.turns if turn.origin == origin for value in opaque_in(turn.messages)}


def test_a_conversation_goes_through_all_vendors_and_back(fake_provider: FakeProvider) -> None:
    kinds = list(KINDS.values())
    chat = Conversation(kinds[0].model, tools=[tide_table], **where(kinds[0], fake_provider))
    for number, kind in enumerate([*kinds, *reversed(kinds)]):
        if number:
            chat.switch(kind.model, **where(kind, fake_provider))
        bodies = ask(chat, kind, fake_provider, f"turn {number}")
        own = made_by(chat, chat.turns[-1].origin)
        for body in bodies:
            check(kind, body, own)
            assert all(f"turn {n}: high tide." in json.dumps(body) for n in range(number))
        assert own - opaque_in(chat.turns[-1].messages) <= opaque_in(bodies[0]), "its own come back to it"
    assert len(chat.turns) == 26 and len({turn.origin for turn in chat.turns}) == 12
    assert [message.get("origin") for message in chat.messages] == [
        turn.origin for turn in chat.turns for _ in range(4)
    ]


def test_switching_says_what_will_be_mended(fake_provider: FakeProvider) -> None:
    google, claude, minimax = KINDS["google-genai"], KINDS["anthropic-official"], KINDS["minimax-official"]
    chat = Conversation(google.model, tools=[tide_table], **where(google, fake_provider))
    ask(chat, google, fake_provider, "one")
    report = chat.switch(claude.model, **where(claude, fake_provider))
    assert report.ids == {"tide_table_2": "tide_table"}
    assert "fidelity of a thinking left out" in str(report)
    assert not chat.switch(google.model, **where(google, fake_provider)), "it is at home"
    chat = Conversation(minimax.model, tools=[tide_table], **where(minimax, fake_provider))
    ask(chat, minimax, fake_provider, "one")
    assert not chat.switch("deepseek-v5", **where(KINDS["deepseek-official"], fake_provider)), "nothing is in the way"


def test_a_turn_that_failed_goes_on_with_another_vendor(fake_provider: FakeProvider) -> None:
    google, claude = KINDS["google-official"], KINDS["anthropic-official"]
    chat = Conversation(google.model, tools=[tide_table], **where(google, fake_provider))
    sound = {"type": "inline_data.done", "data": b"sound", "mime_type": "audio/wav"}
    fake_provider.add(Reply.json({"error": {"message": "no"}}, 400))
    with pytest.raises(Exception, match="no"):
        chat.ask(["Hear", sound])
    chat.switch(claude.model, **where(claude, fake_provider))
    fake_provider.add(claude.says("two"), claude.says("three"))
    assert chat.ask().text == "two: high tide."
    assert chat.ask("And?").text == "three: high tide."
    check(claude, fake_provider.last.body, made_by(chat, "anthropic"))
    assert "[audio/wav left out]" in json.dumps(fake_provider.last.body)


def test_results_at_the_limit_of_requests_go_to_the_next_vendor(fake_provider: FakeProvider) -> None:
    google, gpt = KINDS["google-genai"], KINDS["openai-official"]
    chat = Conversation(google.model, tools=[tide_table], max_turns=1, **where(google, fake_provider))
    fake_provider.add(google.asks("one"), gpt.says("two"), gpt.says("three"))
    chat.ask("Tides?")
    assert chat.turns[0].reason == "max_turns"
    chat.switch(gpt.model, **where(gpt, fake_provider))
    assert chat.ask().text == "two: high tide."
    check(gpt, fake_provider.last.body, ())
    chat.ask("And?")
    check(gpt, fake_provider.last.body, made_by(chat, "openai"))


def test_a_client_that_cannot_mend_gets_no_foreign_signatures(fake_provider: FakeProvider) -> None:
    class Plain:
        """As little as a conversation asks of a client."""

        def __init__(self) -> None:
            self.history: list[Any] = []

        def get_history(self) -> list[Any]:
            return list(self.history)

        def set_history(self, history: list[Any]) -> None:
            self.history = list(history)

        async def streaming_response_stateful(self, message: Any, config: Any = None) -> AsyncIterator[Any]:
            yield {}

    google = KINDS["google-genai"]
    chat = Conversation(google.model, tools=[tide_table], **where(google, fake_provider))
    ask(chat, google, fake_provider, "one")
    plain = Plain()
    report = chat.switch(client=plain)
    assert "fidelity" in str(report) and not opaque_in(plain.history)
    assert opaque_in(chat.messages), "the conversation still has them"
