"""Streams of Google's two chat dialects, shortened, as in `provider_recordings`."""

from __future__ import annotations

from typing import Any

from provider_recordings import Event


def step(index: int, step: Event) -> Event:
    return {"event_type": "step.start", "index": index, "step": step, "event_id": f"e{index}"}


def step_delta(index: int, kind: str, **fields: Any) -> Event:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}


def interaction(status: str = "completed", usage: Event | None = None) -> Event:
    whole = {"id": "", "status": status, "usage": usage} if usage else {"id": "", "status": status}
    return {"event_type": "interaction.completed", "interaction": whole}


_I_CREATED = {"event_type": "interaction.created", "interaction": {"id": "", "status": "in_progress"}}
INTERACTIONS_USAGE: Event = {
    "total_input_tokens": 30,
    "total_cached_tokens": 10,
    "total_thought_tokens": 5,
    "total_output_tokens": 7,
    "total_tokens": 42,
}

INTERACTIONS: dict[str, list[Event]] = {
    "text": [
        _I_CREATED,
        {"event_type": "interaction.status_update", "status": "in_progress"},
        step(0, {"type": "model_output"}),
        step_delta(0, "text", text="Ebb "),
        step_delta(0, "text", text="until."),
        {"event_type": "step.stop", "index": 0},
        interaction("completed", INTERACTIONS_USAGE),
    ],
    "thoughts and calls": [
        step(0, {"type": "thought"}),
        step_delta(0, "thought_summary", content={"type": "text", "text": "Need it."}),
        step_delta(0, "thought_signature", signature="c2ln"),
        step(1, {"type": "function_call", "id": "c1", "name": "tide", "arguments": {}}),
        step_delta(1, "arguments_delta", arguments='{"port":'),
        step_delta(1, "arguments_delta", arguments='"Brest"}'),
        step(2, {"type": "function_call", "id": "c2", "name": "tide", "arguments": {"port": "Dover"}}),
        interaction("requires_action", INTERACTIONS_USAGE),
    ],
    "pictures": [
        step(0, {"type": "thought"}),
        step_delta(0, "thought_summary", content={"type": "image", "data": "AAEC", "mime_type": "image/png"}),
        step(1, {"type": "model_output"}),
        step_delta(1, "image", data="-_-_", mime_type="image/webp"),
        step_delta(1, "thought_signature", signature="c2ln"),
        step_delta(1, "image", data="AAAA"),
        interaction("incomplete"),
    ],
    "sound": [
        step(0, {"type": "model_output"}),
        step_delta(0, "audio", data="AAEC", mime_type="audio/l16", sample_rate=24000, channels=1),
        step_delta(0, "audio", data="AwQF", mime_type="audio/l16", sample_rate=24000, channels=1),
        interaction(),
    ],
    "odd audio": [
        step(0, {"type": "model_output"}),
        step_delta(0, "audio", data="AAEC", mime_type="audio/l16"),
        interaction("failed"),
    ],
}


def candidate(*parts: Event, finish: str | None = None, usage: Event | None = None) -> Event:
    one: Event = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish:
        one["finishReason"] = finish
    whole: Event = {"candidates": [one], "modelVersion": "gemini-3.8-flash", "responseId": "r1"}
    return {**whole, "usageMetadata": usage} if usage else whole


GENERATE_USAGE: Event = {
    "promptTokenCount": 30,
    "cachedContentTokenCount": 10,
    "thoughtsTokenCount": 5,
    "candidatesTokenCount": 7,
    "totalTokenCount": 42,
}

GENERATE: dict[str, list[Event]] = {
    "text": [
        candidate({"text": "Ebb "}, usage={"promptTokenCount": 30, "totalTokenCount": 30}),
        candidate({"text": "until."}),
        candidate({"text": ""}, finish="STOP", usage=GENERATE_USAGE),
    ],
    "thoughts and calls": [
        candidate({"text": "Need it.", "thought": True}),
        candidate(
            {"functionCall": {"name": "tide", "args": {"port": "Brest"}, "id": "c1"}, "thoughtSignature": "-_8="}
        ),
        candidate({"functionCall": {"name": "zone", "args": {}}}),
        candidate(finish="STOP", usage=GENERATE_USAGE),
    ],
    "signature at the end": [
        candidate({"text": "Ebb."}),
        candidate({"text": "", "thoughtSignature": "c2ln"}, finish="MAX_TOKENS", usage=GENERATE_USAGE),
    ],
    "pictures": [
        candidate({"inlineData": {"mimeType": "image/png", "data": "AAEC"}, "thought": True}),
        candidate({"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "c2ln"}),
        candidate({"text": "Here."}, finish="SAFETY", usage=GENERATE_USAGE),
    ],
    "sound": [
        candidate({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAEC"}}),
        candidate({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AwQF"}}, finish="STOP"),
        {"usageMetadata": GENERATE_USAGE},
    ],
    "parts that mean nothing here": [
        candidate({"executableCode": {"code": "1"}}, {"text": "One."}, finish="STOP", usage=GENERATE_USAGE),
    ],
}
