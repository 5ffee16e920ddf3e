"""Whatever ends a question, and wherever: the next request is one that every provider takes."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_scripted import ScriptedClient, call, text, thinking
from hypothesis import given, settings
from hypothesis import strategies as st

from mmsp_nb.conversation import Conversation
from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.protocol.validation import check_messages


def tide(port: str) -> str:
    return f"high at {port}"


def fails() -> None:
    raise ValueError("closed")


async def later() -> str:
    await asyncio.sleep(0)
    return "later"


PIECES = st.sampled_from(["text", "blank", "thinking", "tide", "fails", "later", "unknown", "invalid"])
# a response, and what befalls the question while it is streamed: after so many events, an error or a close
RESPONSES = st.lists(PIECES, min_size=1, max_size=4)
QUESTIONS = st.tuples(
    st.lists(RESPONSES, min_size=1, max_size=3),
    st.one_of(st.none(), st.tuples(st.sampled_from(["close", "error"]), st.integers(0, 25))),
    st.booleans(),
)


def items(response: list[str], counter: list[int]) -> list[Any]:
    made = []
    for piece in response:
        counter[0] += 1
        tool_call_id = f"c{counter[0]}"
        made.append(
            {
                "text": lambda: text("Hel", "lo"),
                "blank": lambda: text(" ", "\n"),
                "thinking": lambda: thinking("Hm", "."),
                "tide": lambda: call("tide", tool_call_id, port="Brest"),  # noqa: B023
                "fails": lambda: call("fails", tool_call_id),  # noqa: B023
                "later": lambda: call("later", tool_call_id),  # noqa: B023
                "unknown": lambda: call("nope", tool_call_id),  # noqa: B023
                "invalid": lambda: call("tide", tool_call_id, prt=1),  # noqa: B023
            }[piece]()
        )
    if not any(piece != "thinking" for piece in response):
        made.append(text("ok"))  # the client never hands out a response of thinking alone
    return made


def assert_sendable(messages: list[dict[str, Any]]) -> None:
    check_messages(messages)
    assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    open_calls: list[str] = []
    for message in messages:
        kinds = [item["type"] for item in message["content_items"]]
        assert all("partial" not in item for item in message["content_items"])
        if message["role"] == "assistant":
            assert any(kind != "thinking.done" for kind in kinds), "thinking alone is refused"
            open_calls = [i["tool_call_id"] for i in message["content_items"] if i["type"] == "tool_call.done"]
        else:
            answered = [i["tool_call_id"] for i in message["content_items"] if i["type"] == "tool_result.done"]
            assert answered == open_calls, "every call is answered, in the next message, once"
            assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result.done"), "results come first"
            open_calls = []
    assert open_calls == []


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(QUESTIONS, min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 3))
def test_the_next_request_is_valid(questions, max_turns, undo):
    client = ScriptedClient()
    conversation = Conversation(client=client, tools=[tide, fails, later], max_turns=max_turns)
    counter = [0]

    async def ask(responses: list[list[str]], end: tuple[str, int] | None, go_on: bool) -> None:
        client.responses = [items(response, counter) for response in responses]
        client.responses += [[text("enough")]] * 5
        if end is not None and end[0] == "error":
            flat = [item for piece in client.responses[0] for item in piece]
            client.responses[0] = [flat[: end[1]], RuntimeError("cut"), flat[end[1] :]]
        stream = conversation.stream(None if go_on else "question")
        seen = 0
        try:
            async for _ in stream:
                seen += 1
                if end is not None and end[0] == "close" and seen > end[1]:
                    break
        except RuntimeError as error:
            assert str(error) == "cut"
        except InvalidMessageError as error:
            assert go_on and "nothing to go on" in str(error)
        finally:
            await stream.aclose()

    async def main() -> None:
        for number, (responses, end, go_on) in enumerate(questions):
            await ask(responses, end, go_on and bool(conversation.turns))
            if number == undo and conversation.turns:
                conversation.undo()
            assert all(turn.state != "running" for turn in conversation.turns)
        fork = conversation.fork(client=ScriptedClient([text("fine")]))
        conversation.client.responses = [[text("fine")]]
        await conversation.ask_async("last")
        await fork.ask_async("last")
        for request, _ in [*client.requests, *fork.client.requests]:
            assert_sendable(request)
        said = [[m["content_items"] for m in c.client.requests[-1][0]] for c in (conversation, fork)]
        assert said[0] == said[1], "the client's own history and the one made of the turns are the same"

    asyncio.run(main())
