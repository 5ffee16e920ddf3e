"""The protocol's own wire: a server that streams public events."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from mmsp_nb.testing.parts import USAGE, Call, Media, Part, Step, Text, Thinking, Usage, steps
from mmsp_nb.testing.sse import Frame

__all__ = ["error", "event", "frames", "models", "refusal"]

CREATED = 1790000000000


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | None = USAGE,
    finish: str | None = "auto",
    stop: bool = True,
    done: bool = True,
) -> list[Frame | bytes]:
    """The events of one answer, as an MMSP server writes them.

    usage: None = four Nones. ``stop``: whether the stop event comes. ``done``: whether ``[DONE]`` comes last.
    finish: a finish reason, ``"auto"`` (by the parts) or None.
    """
    found = [event(item) for step in steps(parts) for item in _items(step)]
    if stop:
        has_calls = any(isinstance(part, Call) for part in parts)
        reason = ("tool_call" if has_calls else "stop") if finish == "auto" else finish
        counts = ("cached", "prompt", "thoughts", "response")
        metadata = {f"{name}_tokens": getattr(usage, name, None) for name in counts}
        found.append({**event(None), "event_type": "stop", "usage_metadata": metadata, "finish_reason": reason})
    return [*map(Frame, found), *([Frame("[DONE]")] if done else [])]


def event(item: dict[str, Any] | None) -> dict[str, Any]:
    """One delta event, as JSON has it."""
    items = [] if item is None else [item]
    whole: dict[str, Any] = {"role": "assistant", "event_type": "delta", "content_items": items}
    return {**whole, "usage_metadata": None, "finish_reason": None, "created_at": CREATED}


def _items(step: Step) -> list[dict[str, Any]]:
    part = step.part
    signed = {"fidelity": {"signature": part.signature}} if part.signature is not None else {}
    if isinstance(part, Media):
        kind = "inline_thinking" if part.thought else "inline_data"
        media = {"data": base64.b64encode(part.data).decode(), "mime_type": part.mime_type, **signed}
        if step.kind == "start":
            return [{"type": f"{kind}.delta", **media}, {"type": f"{kind}.done", **media}]
        return []
    if isinstance(part, Call):
        lead = {"name": part.name, "tool_call_id": part.id}
        if step.kind == "start":
            return [{"type": "tool_call.delta", **lead, "arguments": "", **signed}]
        if step.kind == "piece":
            return [{"type": "tool_call.delta", "name": "", "arguments": step.piece, "tool_call_id": ""}]
        return [{"type": "tool_call.done", **lead, "arguments": part.arguments, **signed}]
    field = "text" if isinstance(part, Text) else "thinking"
    assert isinstance(part, Text | Thinking)
    if step.kind == "piece":
        return [{"type": f"{field}.delta", field: step.piece}]
    if step.kind == "end":
        ending = [{"type": f"{field}.delta", field: "", **signed}] if signed else []
        return [*ending, {"type": f"{field}.done", field: "".join(part.pieces), **signed}]
    return []


def error(message: str = "the fake provider gave up", code: str = "ProviderStreamError") -> Frame:
    """An error in the middle of a stream, after the 200; ``[DONE]`` follows it."""
    return Frame({"error": {"type": code, "message": message, "client": "OpenaiChatClient", "code": "overloaded"}})


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of a refused request."""
    return {"error": {"type": code, "message": message}}


def models(ids: Sequence[str]) -> dict[str, Any]:
    """A model listing, always one page."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 1790000000, "owned_by": "mmsp"} for name in ids],
    }
