"""Dialect I: Gemini Interactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import google, mapping
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.errors import stream_error, unknown_event
from mmsp_nb.providers.google import PLACEHOLDER_SIGNATURE, media, signature
from mmsp_nb.providers.images import received_bytes
from mmsp_nb.providers.mapping import Draft, models_request, parse_models
from mmsp_nb.providers.stream import Event, EventDecoder, call_delta, counted, data_delta, finished, text_delta, usage
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]

FINISH = {"completed": "stop", "requires_action": "tool_call", "incomplete": "length"}


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {"model": model, "stream": True, "store": False})
    if google.is_speech(model):
        _speech(draft, messages)
        return [draft.request("/v1/interactions")]
    draft.apply(_CONFIG)
    names: dict[str, str] = {}  # of calls
    draft.body["input"] = entries(past, messages, partial(_steps, draft), names)
    return [draft.request("/v1/interactions")]


# Config ---------------------------------------------------------------------------------------------


def _thinking_level(draft: Draft, value: str) -> None:
    draft.put("generation_config.thinking_level", draft.choose("thinking_level", draft.rule("effort"), value))


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    draft.body["tools"] = [{"type": "function", **tool} for tool in value]


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    choice: Any = {"required": "any"}.get(value, value) if isinstance(value, str) else None
    if draft.config.get("tools"):
        named = {"allowed_tools": {"mode": "any", "tools": value}}
        draft.put("generation_config.tool_choice", choice or named)


def _image_config(draft: Draft, value: Mapping[str, Any]) -> None:
    draft.body["response_format"] = [{"type": "text"}, {"type": "image", **value}]


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    # comes after the image config: its text part gets the format
    draft.body.setdefault("response_format", [{"type": "text"}])[0].update(google.json_format(draft, value))


_SPEECH_CONFIG: mapping.ConfigTable = {
    "max_tokens": "generation_config.max_output_tokens",
    "temperature": mapping.set_temperature,
    "fast_mode": mapping.set_fast_mode,
    "prompt_caching": mapping.set_caching,
}
_CONFIG: mapping.ConfigTable = {
    **_SPEECH_CONFIG,
    "system_prompt": "system_instruction",
    "thinking_level": _thinking_level,
    "thinking_summary": lambda draft, value: draft.put(
        "generation_config.thinking_summaries", "auto" if value else "none"
    ),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "image_config": _image_config,
    "seed": "generation_config.seed",
    "stop": lambda draft, value: draft.put("generation_config.stop_sequences", mapping.as_list(value)),
    "response_format": _response_format,
}


def _speech(draft: Draft, messages: Sequence[UniMessage]) -> None:
    draft.apply(_SPEECH_CONFIG)
    voices = google.voices(draft)
    draft.put("generation_config.speech_config", voices)
    draft.body["response_format"] = {"type": "audio"}
    content = [
        {"type": "text", "text": text}
        | ({"annotations": [{"type": "speech_metadata", "speaker": speaker}]} if speaker else {})
        for speaker, text in google.script(draft, messages, [voice.get("speaker", "") for voice in voices])
    ]
    draft.body["input"] = [{"type": "user_input", "content": content}]


# Steps ----------------------------------------------------------------------------------------------


def _steps(draft: Draft, index: int, message: UniMessage, names: dict[str, str]) -> list[dict[str, Any]]:
    turn = _Turn(draft, message["role"], names)
    for item in message["content_items"]:
        turn.add(item)
    return turn.finished(index)


class _Turn:
    """One universal message on its way to steps. At most one content step and one thought step are open."""

    def __init__(self, draft: Draft, role: str, names: dict[str, str]) -> None:
        self.draft = draft
        self.kind = "user_input" if role == "user" else "model_output"
        self.names = names
        self.steps: list[dict[str, Any]] = []
        self.content: list[dict[str, Any]] | None = None
        self.thought: dict[str, Any] | None = None

    def add(self, item: Item) -> None:
        adder = self.draft.maker(_ITEMS, item)
        if adder is not _Turn.thinking:
            self.sign(item)
        adder(self, item)

    def step(self, **step: Any) -> dict[str, Any]:
        self.content = None
        self.steps.append(step)
        return step

    def sign(self, item: Item) -> None:
        """A signed item has its signature in a thought step before it."""
        self.thought = None
        if (signed := signature(item)) is not None:
            self.step(type="thought", signature=signed)
            if self.steps[0]["type"] == "thought":
                self.steps[0].setdefault("signature", signed)

    def thinking(self, item: Item) -> None:
        self.content = None
        signed = signature(item)
        block = self.media_block(item) if "data" in item else {"type": "text", "text": item["thinking"]}
        empty = not block.get("text", True)
        if empty and signed is None:
            return
        if self.thought is None:
            self.thought = self.step(type="thought", summary=[])
        if not empty:
            self.thought["summary"].append(block)
        if signed is not None:
            self.thought["signature"] = signed
            self.thought = None

    def block(self, block: dict[str, Any]) -> None:
        if self.content is None:
            blocks: list[dict[str, Any]] = []
            self.step(type=self.kind, content=blocks)
            self.content = blocks
        self.content.append(block)

    def text(self, item: Item) -> None:
        if item["text"]:
            self.block({"type": "text", "text": item["text"]})

    def media(self, item: Item) -> None:
        self.block(self.media_block(item))

    def media_block(self, item: Item, url: str | None = None) -> dict[str, Any]:
        mime_type, data = media(self.draft, item, url)
        major = mime_type.partition("/")[0]
        kind = major if major in ("image", "audio", "video") else "document"
        return {"type": kind, "data": data, "mime_type": mime_type}

    def call(self, item: Item) -> None:
        name, call_id = item["name"], item["tool_call_id"]
        self.names[call_id] = name
        identity = google.identified(call_id, name, "id")
        self.step(type="function_call", name=name, arguments=item["arguments"], **identity)

    def result(self, item: Item) -> None:
        call_id = self.draft.result_id(item)
        name = self.names.get(call_id, call_id)
        output: Any = item["text"]
        if (images := item.get("images")) is not None:
            output = [{"type": "text", "text": output}] if output else []
            output += [self.media_block(item, url) for url in images]
        self.step(type="function_result", name=name, result=output, **google.identified(call_id, name, "call_id"))

    def finished(self, index: int) -> list[dict[str, Any]]:
        thoughts = [step for step in self.steps if step["type"] == "thought"]
        if len(thoughts) == len(self.steps):
            raise self.draft.nothing_to_send(index)
        late = thoughts and self.steps[0]["type"] != "thought"
        said = any(step["type"] in ("model_output", "function_call") for step in self.steps)
        if late or (said and not any("signature" in step for step in thoughts)):
            self.steps.insert(0, {"type": "thought", "signature": PLACEHOLDER_SIGNATURE})
        return self.steps


_ITEMS: dict[str, Callable[[_Turn, Item], None]] = {
    "text.done": _Turn.text,
    "thinking.done": _Turn.thinking,
    "inline_thinking.done": _Turn.thinking,
    "inline_data.done": _Turn.media,
    "image_url.done": _Turn.media,
    "tool_call.done": _Turn.call,
    "tool_result.done": _Turn.result,
}

# Stream ---------------------------------------------------------------------------------------------


class InteractionsDecoder(EventDecoder):
    """Events to raw values; the item id is the index of the step."""

    type_key = "event_type"

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        super().__init__(vendor)
        self._calls: set[Any] = set()

    def step_start(self, event: Event) -> Sequence[Raw]:
        step, index = event.get("step") or {}, event.get("index")
        if step.get("type") == "function_call":
            self._calls.add(index)
            call_id = step.get("id") or step.get("name")
            return (call_delta(step.get("name"), step.get("arguments") or "", call_id, str(index)),)
        if step.get("type") not in ("thought", "model_output"):
            unknown_event(self.client, event)
        return ()

    def step_delta(self, event: Event) -> Sequence[Raw]:
        delta = event.get("delta") or {}
        handler = _DELTAS.get(delta.get("type"))
        if handler is not None:
            return handler(self, delta, event.get("index"))
        unknown_event(self.client, event)
        return ()

    def summary(self, delta: Event, index: Any) -> Sequence[Raw]:
        content = delta.get("content") or {}
        if content.get("type") == "image":
            return self.picture(content, index, "inline_thinking")
        return (text_delta("thinking", content.get("text") or "", str(index)),)

    def signature(self, delta: Event, index: Any) -> Sequence[Raw]:
        return (text_delta("thinking", "", str(index), {"signature": delta.get("signature")}),)

    def arguments(self, delta: Event, index: Any) -> Sequence[Raw]:
        piece = delta.get("arguments")
        return (call_delta("", piece, "", str(index)),) if piece and index in self._calls else ()

    def text(self, delta: Event, index: Any) -> Sequence[Raw]:
        return (text_delta("text", delta.get("text") or "", str(index)),)

    def picture(self, delta: Event, index: Any, kind: str = "inline_data") -> Sequence[Raw]:
        data = received_bytes(self.client, delta.get("data"))
        return (data_delta(kind, data, delta.get("mime_type") or "image/jpeg", str(index)),)

    def audio(self, delta: Event, index: Any) -> Sequence[Raw]:
        # raw samples mean nothing without these two, so they travel in the type, present or not
        mime_type = f"{delta.get('mime_type')}; rate={delta.get('sample_rate')}; channels={delta.get('channels')}"
        return (data_delta("inline_data", received_bytes(self.client, delta.get("data")), mime_type, str(index)),)

    def completed(self, event: Event) -> Sequence[Raw]:
        self.over = True
        interaction = event.get("interaction") or {}
        out = [_usage(interaction.get("usage") or {})]
        # the event itself says that the answer is complete, so a status that is missing costs nothing
        out.append(finished(FINISH, interaction.get("status") or "unknown"))
        return out

    def error(self, event: Event) -> Sequence[Raw]:
        if event.get("error"):
            raise stream_error(self.client, event)
        unknown_event(self.client, event)
        return ()

    handlers = {
        "step.delta": step_delta,
        "step.start": step_start,
        "step.stop": EventDecoder.nothing,
        "interaction.created": EventDecoder.nothing,
        "interaction.status_update": EventDecoder.nothing,
        "interaction.completed": completed,
        "error": error,
    }


_DELTAS: dict[Any, Callable[[InteractionsDecoder, Event, Any], Sequence[Raw]]] = {
    "text": InteractionsDecoder.text,
    "thought_summary": InteractionsDecoder.summary,
    "thought_signature": InteractionsDecoder.signature,
    "arguments_delta": InteractionsDecoder.arguments,
    "image": InteractionsDecoder.picture,
    "audio": InteractionsDecoder.audio,
}


def _usage(counts: Mapping[str, Any]) -> Raw:
    cached, total = counted(counts, "total_cached_tokens"), counted(counts, "total_input_tokens")
    prompt = None if total is None else max(total - (cached or 0), 0)
    return usage(cached, prompt, counted(counts, "total_thought_tokens"), counted(counts, "total_output_tokens"))


decoder = InteractionsDecoder
