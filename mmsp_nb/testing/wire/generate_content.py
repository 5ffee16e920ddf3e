"""Gemini generateContent, streamed with ``alt=sse``. Calls come whole, signatures sit on parts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal

from mmsp_nb.testing.parts import USAGE, Call, Media, Part, Text, Thinking, Usage
from mmsp_nb.testing.sse import Frame
from mmsp_nb.testing.wire.interactions import models, refusal

__all__ = ["error", "frames", "models", "refusal"]

FINISH = {"stop": "STOP", "tool_call": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | None = USAGE,
    usage_on: Literal["last", "every"] = "last",
    finish: str | None = "stop",
    one_chunk: bool = False,
    trailing_signature: bool = False,
    call_ids: bool = True,
    blocked: bool = False,
    model: str = "fake-model",
) -> list[Frame | bytes]:
    """The chunks of one answer.

    usage: None = never reported. ``usage_on``: on the last chunk only, or growing on every chunk as the vendor does.
    finish: a protocol finish reason, ``"filter"``, any vendor value, or None for none.
    one_chunk: all parts in one chunk. ``call_ids``: older models give calls no id.
    trailing_signature: a text's signature comes on an empty text part after it instead of on its last piece.
    blocked: the prompt was refused: no candidate, only a reason.
    """
    base: dict[str, Any] = {"modelVersion": model, "responseId": "resp_fake"}
    if blocked:
        return [Frame({**base, "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": _usage(usage)})]
    wire = [wire for part in parts for wire in _parts(part, trailing_signature, call_ids)]
    groups = [wire] if one_chunk else [[part] for part in wire] or [[]]
    chunks = []
    for n, group in enumerate(groups):
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": group}, "index": 0}
        last = n == len(groups) - 1
        if last and finish is not None:
            candidate["finishReason"] = FINISH.get(finish, finish)
        chunk = {"candidates": [candidate], **base}
        if usage is not None and (last or usage_on == "every"):
            chunk["usageMetadata"] = _usage(usage)
        chunks.append(Frame(chunk))
    return list(chunks)


def _parts(part: Part, trailing_signature: bool, call_ids: bool) -> list[dict[str, Any]]:
    if isinstance(part, Text | Thinking):
        thought = {"thought": True} if isinstance(part, Thinking) else {}
        wire: list[dict[str, Any]] = [{"text": piece, **thought} for piece in part.pieces]
        if trailing_signature and part.signature is not None:
            wire.append({"text": "", **thought})
    elif isinstance(part, Call):
        call = {"name": part.name, "args": part.arguments}
        wire = [{"functionCall": {"id": part.id, **call} if call_ids else call}]
    else:
        data = {"mimeType": part.mime_type, "data": base64.b64encode(part.data).decode()}
        wire = [{"inlineData": data, **({"thought": True} if isinstance(part, Media) and part.thought else {})}]
    if part.signature is not None and wire:
        wire[-1]["thoughtSignature"] = part.signature
    return wire


def _usage(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.response,
        "thoughtsTokenCount": usage.thoughts,
        "totalTokenCount": usage.input + usage.output,
    }


def error(message: str = "the fake provider gave up", code: str = "unavailable", status: int = 503) -> Frame:
    """An error in the middle of a stream, after the 200."""
    return Frame({"error": {"code": status, "message": message, "status": code.upper()}})
