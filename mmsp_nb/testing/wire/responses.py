"""OpenAI Responses, as OpenAI and compatible servers write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmsp_nb.testing.parts import USAGE, Call, Part, Text, Thinking, Usage, steps
from mmsp_nb.testing.sse import Frame

__all__ = ["error", "frames", "models", "refusal"]


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | None = USAGE,
    usage_details: bool = True,
    status: str | None = "completed",
    interleave: bool = False,
    item_ids: bool = True,
    terse: bool = False,
    calls_at_end: bool = False,
    failed: str | None = None,
    refusal_text: str | None = None,
    model: str = "fake-model",
) -> list[Frame | bytes]:
    """The events of one answer.

    usage: None = the final event has none. ``usage_details``: whether it breaks out cached and reasoning tokens.
    status: of the final event: ``completed``, ``incomplete``, anything else, or None for no status.
    interleave: argument deltas of parallel calls come mixed, told apart by item id.
    item_ids: some servers leave the ids out. ``terse``: no sequence numbers and output indexes, and only the events
        that carry something (llama.cpp).
    calls_at_end: calls are not streamed but come whole in ``response.output_item.done`` (MiniMax).
    failed: end with ``response.failed`` and this error code. ``refusal_text``: the model declines in these words.
    """
    script = _Script(item_ids, terse, calls_at_end)
    response: dict[str, Any] = {"id": "resp_fake", "object": "response", "created_at": 1790000000, "model": model}
    script.add("response.created", response={**response, "status": "in_progress", "output": []})
    script.add("response.in_progress", optional=True, response={**response, "status": "in_progress", "output": []})
    for step in steps(parts, interleave):
        if step.kind == "start":
            script.start(step.index, step.part)
        elif step.kind == "piece":
            script.piece(step.index, step.part, step.piece)
        else:
            script.end(step.index, step.part)
    if refusal_text is not None:
        where: dict[str, Any] = {"item_id": "msg_refusal", "output_index": len(parts), "content_index": 0}
        script.add("response.refusal.delta", **where, delta=refusal_text)
        script.add("response.refusal.done", **where, refusal=refusal_text)
    if failed is not None:
        reason = {"code": failed, "message": "the fake provider gave up"}
        script.add("response.failed", response={**response, "status": "failed", "error": reason, "usage": None})
        return list(script.frames)
    final = {**response, "output": [], "usage": _usage(usage, usage_details)}
    if status is not None:
        final["status"] = status
    if status == "incomplete":
        final["incomplete_details"] = {"reason": "max_output_tokens"}
    script.add("response.incomplete" if status == "incomplete" else "response.completed", response=final)
    return list(script.frames)


class _Script:
    """Collects the events of one answer."""

    def __init__(self, item_ids: bool, terse: bool, calls_at_end: bool) -> None:
        self.frames: list[Frame] = []
        self._item_ids, self._terse, self._calls_at_end = item_ids, terse, calls_at_end

    def add(self, kind: str, *, optional: bool = False, **fields: Any) -> None:
        if optional and self._terse:
            return
        if self._terse:
            fields = {name: value for name, value in fields.items() if not name.endswith("_index")}
        if not self._item_ids:
            fields.pop("item_id", None)
        numbered = {} if self._terse else {"sequence_number": len(self.frames)}
        self.frames.append(Frame({"type": kind, **fields, **numbered}, kind))

    def start(self, index: int, part: Part) -> None:
        if isinstance(part, Call) and self._calls_at_end:
            return
        self.add("response.output_item.added", output_index=index, item=self._item(index, part, whole=False))
        if isinstance(part, Text):
            empty = {"type": "output_text", "text": "", "annotations": []}
            self.add("response.content_part.added", optional=True, **_at(index, part), content_index=0, part=empty)
        elif isinstance(part, Thinking) and part.channel == "summary":
            empty = {"type": "summary_text", "text": ""}
            where = {**_at(index, part), "summary_index": 0}
            self.add("response.reasoning_summary_part.added", optional=True, **where, part=empty)

    def piece(self, index: int, part: Part, piece: str) -> None:
        if isinstance(part, Text):
            self.add("response.output_text.delta", **_at(index, part), content_index=0, delta=piece)
        elif isinstance(part, Thinking) and part.channel == "summary":
            self.add("response.reasoning_summary_text.delta", **_at(index, part), summary_index=0, delta=piece)
        elif isinstance(part, Thinking):
            self.add("response.reasoning_text.delta", **_at(index, part), content_index=0, delta=piece)
        elif not self._calls_at_end:
            self.add("response.function_call_arguments.delta", **_at(index, part), delta=piece)

    def end(self, index: int, part: Part) -> None:
        whole = "" if not hasattr(part, "pieces") else "".join(part.pieces)
        if isinstance(part, Text):
            done = {"type": "output_text", "text": whole, "annotations": []}
            self.add("response.output_text.done", optional=True, **_at(index, part), content_index=0, text=whole)
            self.add("response.content_part.done", optional=True, **_at(index, part), content_index=0, part=done)
        elif isinstance(part, Thinking) and part.channel == "summary":
            where = {**_at(index, part), "summary_index": 0}
            self.add("response.reasoning_summary_text.done", optional=True, **where, text=whole)
        elif isinstance(part, Thinking):
            self.add("response.reasoning_text.done", optional=True, **_at(index, part), content_index=0, text=whole)
        elif not self._calls_at_end:
            self.add("response.function_call_arguments.done", optional=True, **_at(index, part), arguments=whole)
        self.add("response.output_item.done", output_index=index, item=self._item(index, part, whole=True))

    def _item(self, index: int, part: Part, whole: bool) -> dict[str, Any]:
        item = _item(part, whole)
        return {"id": _at(index, part)["item_id"], **item} if self._item_ids else item


def _at(index: int, part: Part) -> dict[str, Any]:
    prefix = "msg" if isinstance(part, Text) else "rs" if isinstance(part, Thinking) else "fc"
    return {"item_id": f"{prefix}_{index}", "output_index": index}


def _item(part: Part, whole: bool) -> dict[str, Any]:
    status = "completed" if whole else "in_progress"
    said = "".join(getattr(part, "pieces", ())) if whole else ""
    if isinstance(part, Text):
        content = [{"type": "output_text", "text": said, "annotations": []}] if whole else []
        item = {"type": "message", "role": "assistant", "status": status, "content": content}
        return {**item, "phase": part.phase} if part.phase is not None else item
    if isinstance(part, Call):
        return {"type": "function_call", "status": status, "call_id": part.id, "name": part.name, "arguments": said}
    if not isinstance(part, Thinking):
        raise TypeError("Responses answers carry no media")
    item = {"type": "reasoning", "summary": []}
    if said and part.channel == "summary":
        item["summary"] = [{"type": "summary_text", "text": said}]
    elif said:
        item["content"] = [{"type": "reasoning_text", "text": said}]
    if whole and part.encrypted is not None:
        item["encrypted_content"] = part.encrypted
    if whole and part.signature is not None:
        item["signature"] = part.signature
    return item


def _usage(usage: Usage | None, details: bool) -> dict[str, Any] | None:
    if usage is None:
        return None
    counts: dict[str, Any] = {"input_tokens": usage.input, "output_tokens": usage.output}
    counts["total_tokens"] = usage.input + usage.output
    if details:
        counts["input_tokens_details"] = {"cached_tokens": usage.cached}
        counts["output_tokens_details"] = {"reasoning_tokens": usage.thoughts}
    return counts


def error(message: str = "the fake provider gave up", code: str = "server_error") -> Frame:
    """An error in the middle of a stream, after the 200."""
    return Frame({"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}, "error")


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of a refused request."""
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def models(ids: Sequence[str]) -> dict[str, Any]:
    """A model listing, always one page."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 1790000000, "owned_by": "fake"} for name in ids],
    }
