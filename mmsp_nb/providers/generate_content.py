"""Dialect G: Gemini generateContent, at Google and over Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import google, mapping
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.errors import stream_error, unknown_event
from mmsp_nb.providers.google import PLACEHOLDER_SIGNATURE, media, signature
from mmsp_nb.providers.images import base64_text, received_bytes
from mmsp_nb.providers.mapping import Draft, models_request, parse_models
from mmsp_nb.providers.stream import call_delta, counted, data_delta, finished, text_delta, usage, without
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]

FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}

_ROLES = {"user": "user", "assistant": "model"}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_OPAQUE_SCHEMA = frozenset({
    "$ref", "$defs", "const", "definitions", "allOf", "oneOf", "not", "prefixItems", "uniqueItems", "multipleOf",
    "exclusiveMinimum", "exclusiveMaximum", "patternProperties", "propertyNames", "contains",
})  # fmt: skip


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {})
    if google.is_speech(model):
        _speech(draft, messages)
    else:
        draft.apply(_CONFIG)
        names: dict[str, str] = {}  # of calls
        draft.body["contents"] = entries(past, messages, partial(_contents, draft), names)
    return [draft.request(google.model_path(draft, "streamGenerateContent?alt=sse"))]


# Config ---------------------------------------------------------------------------------------------


def _thinking_level(draft: Draft, value: str) -> None:
    level = draft.choose("thinking_level", draft.rule("effort"), value).upper()
    draft.put("generationConfig.thinkingConfig.thinking_level", level)


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    draft.body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in value]}]


def _declaration(tool: Mapping[str, Any]) -> dict[str, Any]:
    declaration = {key: tool[key] for key in ("name", "description") if key in tool}
    schema = tool.get("parameters")
    if schema and _is_opaque(schema):
        # what Google's own schema type cannot say goes as JSON Schema
        declaration["parametersJsonSchema"] = schema
    elif schema:
        declaration["parameters"] = _google_schema(schema)
    return declaration


def _is_opaque(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_is_opaque, schema))
    if not isinstance(schema, Mapping):
        return False
    named = schema.get("properties") or {}
    rest = [value for key, value in schema.items() if key not in ("properties", "enum", "default", "example")]
    plain = isinstance(schema.get("type", ""), str) and not _OPAQUE_SCHEMA & schema.keys()
    plain = plain and ("type" in schema or "anyOf" in schema)  # Google's type has no "anything"
    return not plain or any(map(_is_opaque, [*rest, *named.values()]))


def _google_schema(schema: Any) -> Any:
    """A JSON Schema in Google's spelling: types in capitals, keywords in snake case."""
    if isinstance(schema, list):
        return [_google_schema(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    spelled: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            spelled[key] = {name: _google_schema(part) for name, part in value.items()}
        elif key in ("enum", "default", "example", "required"):
            spelled[key] = value
        else:
            name = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()
            spelled[name] = value.upper() if key == "type" else _google_schema(value)
    return spelled


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    if draft.config.get("tools"):
        one = isinstance(value, str)
        choice = {"mode": _MODES[str(value)]} if one else {"mode": "ANY", "allowedFunctionNames": value}
        draft.put("toolConfig.functionCallingConfig", choice)


def _image_config(draft: Draft, value: Mapping[str, Any]) -> None:
    named = {"aspectRatio": value.get("aspect_ratio"), "imageSize": value.get("image_size")}
    draft.put("generationConfig.imageConfig", {key: part for key, part in named.items() if part is not None})


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    wanted = google.json_format(draft, value)
    draft.put("generationConfig.responseMimeType", wanted["mime_type"])
    if "schema" in wanted:
        draft.put("generationConfig.responseJsonSchema", wanted["schema"])


_SPEECH_CONFIG: mapping.ConfigTable = {
    "max_tokens": "generationConfig.maxOutputTokens",
    "temperature": mapping.set_temperature,
    "fast_mode": mapping.set_fast_mode,
    "prompt_caching": mapping.set_caching,
}
_CONFIG: mapping.ConfigTable = {
    **_SPEECH_CONFIG,
    "system_prompt": lambda draft, value: draft.put("systemInstruction", {"role": "user", "parts": [{"text": value}]}),
    "thinking_level": _thinking_level,
    "thinking_summary": "generationConfig.thinkingConfig.include_thoughts",
    "tools": _tools,
    "tool_choice": _tool_choice,
    "image_config": _image_config,
    "top_p": "generationConfig.topP",
    "seed": "generationConfig.seed",
    "stop": lambda draft, value: draft.put("generationConfig.stopSequences", mapping.as_list(value)),
    "response_format": _response_format,
}


def _speech(draft: Draft, messages: Sequence[UniMessage]) -> None:
    draft.apply(_SPEECH_CONFIG)
    chosen = google.voices(draft)
    voices: list[dict[str, Any]] = [
        {"voice_config": {"prebuilt_voice_config": {"voice_name": voice["voice"]}}} for voice in chosen
    ]
    speakers = [voice["speaker"] for voice in chosen if "speaker" in voice]
    speech = voices[0]
    if speakers:
        pairs = [{"speaker": speaker, **voice} for speaker, voice in zip(speakers, voices, strict=True)]
        speech = {"multi_speaker_voice_config": {"speaker_voice_configs": pairs}}
    draft.put("generationConfig.responseModalities", ["AUDIO"])
    draft.put("generationConfig.speechConfig", speech)
    parts: list[dict[str, Any]] = [
        {"text": text} | ({"speechMetadata": {"speaker": speaker}} if speaker else {})
        for speaker, text in google.script(draft, messages, speakers)
    ]
    draft.body["contents"] = [{"role": "user", "parts": parts}]


# Contents -------------------------------------------------------------------------------------------


def _contents(draft: Draft, index: int, message: UniMessage, names: dict[str, str]) -> list[dict[str, Any]]:
    parts = [draft.maker(_ITEMS, item)(draft, item, names) for item in message["content_items"]]
    if message["role"] == "assistant":
        parts = _place_signatures(parts)
    if all(part.get("thought") for part in parts):
        raise draft.nothing_to_send(index)
    if len(parts) == 1:  # most messages
        return [{"role": _ROLES[message["role"]], "parts": parts}]
    # results of functions stand in contents of their own
    groups = groupby(parts, key=lambda part: "functionResponse" in part)
    return [{"role": _ROLES[message["role"]], "parts": list(group)} for _, group in groups]


def _place_signatures(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Signatures of thoughts move to the parts that Google looks for them on."""
    key = "thoughtSignature"
    if not any("functionCall" in part or part.get("thought") for part in parts):
        return parts
    first = next((at for at, part in enumerate(parts) if "functionCall" in part), None)
    if first is not None and key not in parts[first]:
        signed = [part for part in parts[:first] if _is_text_thought(part) and key in part]
        parts[first][key] = signed[-1].pop(key) if signed else PLACEHOLDER_SIGNATURE
    for at, part in enumerate(parts):
        if _is_text_thought(part) and key in part:
            for later in parts[at + 1 :]:
                if key not in later and not later.get("thought") and "functionResponse" not in later:
                    later[key] = part.pop(key)
                    break
    return [part for part in parts if not (_is_text_thought(part) and not part["text"] and key not in part)]


def _is_text_thought(part: Mapping[str, Any]) -> bool:
    return bool(part.get("thought")) and "text" in part


def _signed(item: Item, part: dict[str, Any]) -> dict[str, Any]:
    signed = signature(item, url_safe=True)
    return part if signed is None else {**part, "thoughtSignature": signed}


def _text(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    return _signed(item, {"text": item["text"]})


def _thinking(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    return _signed(item, {"text": item["thinking"], "thought": True})


def _inline(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    mime_type, data = media(draft, item, url_safe=True)
    return _signed(item, {"inlineData": {"mime_type": mime_type, "data": data}})


def _inline_thinking(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    return {**_inline(draft, item, names), "thought": True}


def _call(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    name, call_id = item["name"], item["tool_call_id"]
    names[call_id] = name
    call = {**google.identified(call_id, name, "id"), "name": name, "args": item["arguments"]}
    return _signed(item, {"functionCall": call})


def _result(draft: Draft, item: Item, names: dict[str, str]) -> dict[str, Any]:
    call_id = draft.result_id(item)
    name = names.get(call_id, call_id)
    response: dict[str, Any] = {
        **google.identified(call_id, name, "id"),
        "name": name,
        "response": {"result": item["text"]},
    }
    if images := item.get("images"):
        inline = [media(draft, item, url, url_safe=True) for url in images]
        response["parts"] = [{"inline_data": {"mime_type": mime, "data": data}} for mime, data in inline]
    return {"functionResponse": response}


_ITEMS: dict[str, Callable[[Draft, Item, dict[str, str]], dict[str, Any]]] = {
    "text.done": _text,
    "image_url.done": _inline,
    "inline_data.done": _inline,
    "thinking.done": _thinking,
    "inline_thinking.done": _inline_thinking,
    "tool_call.done": _call,
    "tool_result.done": _result,
}

# Stream ---------------------------------------------------------------------------------------------


class GenerateContentDecoder:
    """Chunks to raw values. The item id is the kind of the part; each call has one of its own."""

    over = False  # no event says so

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        self._client = vendor.client
        self._calls = 0
        self._identified: list[dict[str, Any]] = []  # calls with an id of their own
        # signatures seen on text and thinking: an item holds one, the next begins an item of its own
        self._signatures: dict[str, list[str]] = {"text": [], "thinking": []}

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if event.get("error") or name == "error":
            raise stream_error(self._client, event)
        out: list[Raw] = []
        if candidates := event.get("candidates"):
            candidate = candidates[0]
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part, out)
            if reason := candidate.get("finishReason"):
                called = reason == "STOP" and self._calls
                out.append(finished({"STOP": "tool_call"} if called else FINISH, reason))
        counts = event.get("usageMetadata")
        if counts and counted(counts, "promptTokenCount") is not None:
            out.append(_usage(counts))
        return out

    def finish(self) -> Sequence[Raw]:
        return ()

    def _part(self, part: dict[str, Any], out: list[Raw]) -> None:
        signed = _received_signature(part.get("thoughtSignature"))
        if call := part.get("functionCall"):
            if call.get("id"):
                if call in self._identified:
                    return  # it has come before, to the last word: no tool is to run twice
                self._identified.append(call)
            self._calls += 1
            call_id, key = call.get("id") or call.get("name"), f"functionCall.{self._calls}"
            out.append(call_delta(call.get("name"), call.get("args") or {}, call_id, key, signed))
        elif data := part.get("inlineData"):
            kind = "inline_thinking" if part.get("thought") else "inline_data"
            mime_type = data.get("mimeType") or "application/octet-stream"
            out.append(data_delta(kind, received_bytes(self._client, data.get("data")), mime_type, kind, signed))
        elif isinstance(text := part.get("text"), str):
            if text or signed:
                self._text("thinking" if part.get("thought") else "text", text, signed, out)
        else:
            unknown_event(self._client, part)

    def _text(self, kind: str, text: str, signed: str | None, out: list[Raw]) -> None:
        seen = self._signatures[kind]
        if signed and signed not in seen[-1:]:
            seen.append(signed)
        item_id = kind if len(seen) < 2 else f"{kind}.{len(seen)}"
        out.append(text_delta(kind, text, item_id, {"signature": signed} if signed else None))


def _received_signature(value: Any) -> str | None:
    """A signature in the standard base64 alphabet, in which it is kept."""
    try:
        return base64_text(value) if value else None
    except ValueError:
        return str(value)


def _usage(counts: dict[str, Any]) -> Raw:
    cached = counted(counts, "cachedContentTokenCount")
    prompt = without(counted(counts, "promptTokenCount"), cached)
    return usage(cached, prompt, counted(counts, "thoughtsTokenCount"), counted(counts, "candidatesTokenCount"))


decoder = GenerateContentDecoder
