"""Done items and messages as streams should give them."""

from __future__ import annotations

from typing import Any

from provider_helpers import answer


def text(value: str, **fidelity: Any) -> dict:
    return {"type": "text.done", "text": value, **({"fidelity": fidelity} if fidelity else {})}


def thinking(value: str, **fidelity: Any) -> dict:
    return {"type": "thinking.done", "thinking": value, **({"fidelity": fidelity} if fidelity else {})}


def call(name: str, call_id: str, **arguments: Any) -> dict:
    return {"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": call_id}


def picture(data: bytes, mime: str, kind: str = "inline_data", **fidelity: Any) -> dict:
    item = {"type": f"{kind}.done", "data": data, "mime_type": mime}
    return {**item, **({"fidelity": fidelity} if fidelity else {})}


def counts(cached: int | None, prompt: int | None, thoughts: int | None, response: int | None) -> dict:
    names = ("cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens")
    return dict(zip(names, (cached, prompt, thoughts, response), strict=True))


def check(client_type: str, events: Any, expected: tuple) -> None:
    items, reason, usage = expected
    assert answer(client_type, events) == {"content_items": items, "finish_reason": reason, "usage_metadata": usage}


FULL = counts(10, 20, 5, 7)
"""What the usage of the recordings comes to."""
