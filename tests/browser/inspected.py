"""Conversations for the inspector's tests, made in a kernel. No model is asked."""

from __future__ import annotations

from typing import Any

from mmsp_nb import Conversation
from mmsp_nb.restoring import AbsentClient, RestoredError
from mmsp_nb.tools import ToolOutcome
from mmsp_nb.turns import Turn

USAGE = {"cached_tokens": 5, "prompt_tokens": 1200, "thoughts_tokens": 40, "response_tokens": 80}


def message(role: str, *items: dict[str, Any], **more: Any) -> Any:
    return {"role": role, "content_items": list(items), **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text.done", "text": said}


def turn(*messages: Any, **fields: Any) -> Turn:
    made = Turn(model="quiet-model", state="done", reason="answer", messages=list(messages))
    made.history = list(messages)
    made.usage = dict(USAGE)  # type: ignore[assignment]
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def conversation(turns: list[Turn], name: str = "long") -> Conversation:
    chat = Conversation(client=AbsentClient("quiet-model", "openai-chat", RuntimeError("nobody answers")), name=name)
    chat.turns = chat._branches[chat.branch] = turns
    chat._load_history()
    return chat


def long(items: int) -> Conversation:
    """So many items: five a turn, with thinking and a call with its result."""
    turns = []
    for n in range(items // 5):
        call = {"type": "tool_call.done", "name": "measure", "arguments": {"station": n}, "tool_call_id": f"c{n}"}
        result = {"type": "tool_result.done", "text": f"level {n % 17} at station {n}\n" * 4, "tool_call_id": f"c{n}"}
        made = turn(
            message("user", text(f"Question {n}: how high is the water at station {n}?")),
            message("assistant", {"type": "thinking.done", "thinking": f"Look up station {n}. " * 12}, call),
            message("user", result),
            message("assistant", text(f"At station **{n}** the level is {n % 17} m.\n\n" + "It rises slowly. " * 12)),
        )
        made.outcomes = [ToolOutcome(call, None, text=result["text"])]
        turns.append(made)
    return conversation(turns)


def hostile(payloads: list[str]) -> Conversation:
    """Each payload in every place where a model or a tool can write."""
    turns = []
    for n, bad in enumerate(payloads):
        call = {"type": "tool_call.done", "name": bad, "arguments": {bad: bad, "x": [bad]}, "tool_call_id": f"{n}{bad}"}
        result = {"type": "tool_result.done", "text": bad, "tool_call_id": f"{n}{bad}", "images": [bad]}
        made = turn(
            message("user", text(bad), {"type": "image_url.done", "image_url": bad}),
            message("assistant", {"type": "thinking.done", "thinking": bad}, call),
            message("user", result),
            message(
                "assistant",
                text(bad),
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": bad},
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": f"audio/{bad}"},
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": "image/svg+xml"},
                {"type": "image_url.done", "image_url": f"data:image/svg+xml,{bad}"},
                {"type": "image_url.done", "image_url": f"https://example.invalid/{bad}"},
            ),
            model=bad,
            client_type=bad,
            finish_reason=bad,
            error=RestoredError(bad, bad),
            cell=bad,
        )
        made.outcomes = [ToolOutcome(call, None, text=bad, status="error")]
        turns.append(made)
    chat = conversation(turns, name="".join(payloads[:3]))
    chat.client.model = payloads[4]
    chat.split(3, name=payloads[0])
    chat.checkout("main")
    return chat
