"""What a stopped answer has used: estimated, said to be so, and counted with the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mmsp_nb import Conversation
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.testing import FakeProvider, Gate, Reply
from mmsp_nb.testing.parts import Usage, text
from mmsp_nb.testing.wire import chat as wire

USAGE = Usage(cached=0, prompt=10, thoughts=0, response=20)
WORDS = ("one two three four ", "five six seven eight ", "never")


async def stopped(provider: FakeProvider, after: bytes) -> Conversation:
    """A conversation with a complete answer, and one that was stopped after these bytes of it."""
    gate, signal = Gate(), AbortSignal()
    whole = Reply.stream(wire.frames([text("Hello there.")], usage=USAGE))
    reply = Reply.stream(wire.frames([text(*WORDS)], usage=USAGE))
    at = reply.content.index(b"\n\n", reply.content.index(after)) + 2 if after else 0
    provider.add(whole, reply.hold(gate, at), whole)
    conversation = Conversation("m", base_url=provider.url("/v1"), api_key="a key", client_type="openai-chat")
    await conversation.ask_async("Hi")
    asking = asyncio.create_task(conversation.ask_async("Count, please.", signal=signal))
    await gate.wait_arrived()
    if after:
        while not (conversation.turns[-1].log and "eight" in str(list(conversation.turns[-1].log))):
            await asyncio.sleep(0)
    signal.abort("enough")
    await asyncio.wait([asking])
    return conversation


async def test_the_tokens_of_a_stopped_answer_are_estimated_and_say_so(tmp_path: Path) -> None:
    with FakeProvider() as provider:
        conversation = await stopped(provider, b"eight ")
        first, last = conversation.turns
        assert (last.state, last.text, last.estimated) == ("partial", "".join(WORDS[:2]), True)
        assert last.usage is not None
        assert last.usage["prompt_tokens"] >= 30, "what was counted for the history, and the question"
        assert last.usage["response_tokens"] == pytest.approx(10, abs=4)
        assert not first.estimated
        assert conversation.usage is not None
        assert conversation.usage["response_tokens"] == 20 + last.usage["response_tokens"]
        assert "tokens estimated" in conversation.export(tmp_path / "said.md")
        loaded = Conversation.load(conversation.save(tmp_path / "said.jsonl"))
        assert [turn.estimated for turn in loaded.turns] == [False, True]
        provider.wait_until_idle()
        await conversation.ask_async("And now?")
        assert not conversation.turns[-1].estimated


async def test_before_the_first_token_only_the_question_was_used() -> None:
    with FakeProvider() as provider:
        conversation = await stopped(provider, b"")
        usage = conversation.turns[-1].usage
        assert usage is not None
        assert usage["response_tokens"] == 0
        assert usage["prompt_tokens"] >= 30


async def test_what_was_refused_has_used_nothing() -> None:
    with FakeProvider(Reply.json({"error": {"message": "no"}}, 401)) as provider:
        conversation = Conversation("m", base_url=provider.url("/v1"), api_key="a key", client_type="openai-chat")
        with pytest.raises(Exception, match="no"):
            await conversation.ask_async("Hi")
        assert (conversation.turns[-1].usage, conversation.turns[-1].estimated) == (None, False)
