"""Dialect M: Anthropic Messages, at Anthropic, at gateways that speak it, and over Amazon Bedrock."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from mmsp_nb.protocol.items import REDACTED_THINKING, Item, UniConfig, UniMessage
from mmsp_nb.providers import mapping
from mmsp_nb.providers.base import Raw, Request, is_remote
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.errors import stream_error
from mmsp_nb.providers.images import split_data_url
from mmsp_nb.providers.mapping import Draft, fidelity, models_request, parse_models
from mmsp_nb.providers.stream import (
    Event,
    EventDecoder,
    call_delta,
    counted,
    detail,
    finished,
    text_delta,
    usage,
    without,
)
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]

DEFAULT_MAX_TOKENS = 64_000
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_call"}

_FAST_BETA = "fast-mode-2026-02-01"
_NO_PARAMETERS = {"type": "object", "properties": {}}


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {"model": model, "stream": True, "max_tokens": DEFAULT_MAX_TOKENS})
    draft.apply(_CONFIG)
    draft.body["messages"] = entries(past, messages, partial(_entry, draft), None)
    return [_bedrock_request(draft) if vendor.auth == "aws" else draft.request("/v1/messages")]


def decoder(vendor: Vendor, model: str, requests: Sequence[Request] = ()) -> MessagesDecoder:
    return (BedrockDecoder if vendor.auth == "aws" else MessagesDecoder)(vendor)


# Config ---------------------------------------------------------------------------------------------


def _thinking_summary(draft: Draft, value: bool) -> None:
    # comes after the level: it may be the only reason for a thinking block
    block = draft.body.setdefault("thinking", {"type": "adaptive"})
    if block["type"] == "adaptive":
        block["display"] = "summarized" if value else "omitted"


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    # the schema is required there and optional here
    draft.body["tools"] = [
        {**{key: part for key, part in tool.items() if key != "parameters"}, "input_schema": schema}
        for tool in value
        for schema in [tool.get("parameters") or _NO_PARAMETERS]
    ]


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    kind = {"type": "any" if value == "required" else value}
    draft.body["tool_choice"] = kind if isinstance(value, str) else {"type": "tool", "name": value[0]}


def _parallel_tool_calls(draft: Draft, value: bool) -> None:
    # lives inside the tool choice, so there must be one; "none" has no such field
    if not value and draft.body.get("tools"):
        choice = draft.body.setdefault("tool_choice", {"type": "auto"})
        if choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True


def _fast_mode(draft: Draft, value: Any) -> None:
    mapping.set_fast_mode(draft, value)
    if value:
        draft.headers["anthropic-beta"] = _FAST_BETA


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    schema = mapping.output_schema(draft, value)
    if schema is None:
        raise draft.reject("response_format", "this wire format needs a json_schema")
    draft.put("output_config.format", {"type": "json_schema", "schema": schema["schema"]})


_CONFIG: mapping.ConfigTable = {
    "max_tokens": "max_tokens",
    "system_prompt": "system",
    "temperature": mapping.set_temperature,
    "thinking_level": mapping.set_thinking,
    "thinking_summary": _thinking_summary,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "fast_mode": _fast_mode,
    "prompt_caching": mapping.set_caching,
    "top_p": "top_p",
    "stop": lambda draft, value: draft.put("stop_sequences", mapping.as_list(value)),
    "parallel_tool_calls": _parallel_tool_calls,
    "response_format": _response_format,
}


def _bedrock_request(draft: Draft) -> Request:
    body = draft.body
    del body["model"], body["stream"]
    body["anthropic_version"] = draft.rule("anthropic_version")
    ttl = draft.rule("cache_ttl").get(draft.config.get("prompt_caching", "enable"))
    last = next((message for message in reversed(body["messages"]) if message["role"] == "user"), None)
    if ttl and last:
        last["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    return draft.request(f"/model/{quote(draft.model, safe='')}/invoke-with-response-stream", framing="aws")


# Messages -------------------------------------------------------------------------------------------


def _entry(draft: Draft, index: int, message: UniMessage, state: None) -> list[dict[str, Any]]:
    blocks = [block for item in message["content_items"] if (block := draft.maker(_ITEMS, item)(draft, item))]
    if all(block["type"] in ("thinking", "redacted_thinking") for block in blocks):
        raise draft.nothing_to_send(index)
    return [{"role": message["role"], "content": blocks}]


# Items ----------------------------------------------------------------------------------------------


def _image_block(draft: Draft, item: Item, url: str) -> dict[str, Any]:
    if is_remote(url) and not draft.vendor.inline_images:
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type, data = split_data_url(draft, url)
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _text(draft: Draft, item: Item) -> dict[str, Any]:
    return {"type": "text", "text": item["text"]}


def _image(draft: Draft, item: Item) -> dict[str, Any]:
    return _image_block(draft, item, item["image_url"])


def _thinking(draft: Draft, item: Item) -> dict[str, Any] | None:
    """None for what the provider would refuse: redacted or, officially, any thinking without a signature."""
    signature, redacted = fidelity(item).get("signature"), item["thinking"] == REDACTED_THINKING
    if signature is None:
        return None if redacted or draft.rule("signed_only") else {"type": "thinking", "thinking": item["thinking"]}
    if redacted:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": item["thinking"], "signature": signature}


def _call(draft: Draft, item: Item) -> dict[str, Any]:
    return {"type": "tool_use", "id": item["tool_call_id"], "name": item["name"], "input": item["arguments"]}


def _result(draft: Draft, item: Item) -> dict[str, Any]:
    call_id = draft.result_id(item)
    images = [_image_block(draft, item, url) for url in item.get("images") or ()]
    content = [{"type": "text", "text": item["text"]}, *images]
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


_ITEMS: dict[str, Callable[[Draft, Item], dict[str, Any] | None]] = {
    "text.done": _text,
    "image_url.done": _image,
    "thinking.done": _thinking,
    "tool_call.done": _call,
    "tool_result.done": _result,
}

# Stream ---------------------------------------------------------------------------------------------


class MessagesDecoder(EventDecoder):
    """Events to raw values; the item id is the index of the content block."""

    def __init__(self, vendor: Vendor) -> None:
        super().__init__(vendor)
        self._tools: set[Any] = set()
        self._skipped: set[Any] = set()
        # inputs that came whole with the start of a tool block, for the case that no pieces follow
        self._inputs: dict[Any, Any] = {}

    def finish(self) -> Sequence[Raw]:
        return [raw for index in list(self._inputs) for raw in self._whole_input(index)]

    def block_start(self, event: Event) -> Sequence[Raw]:
        index, block = event.get("index"), event.get("content_block") or {}
        kind = block.get("type")
        if kind == "tool_use":
            self._tools.add(index)
            if block.get("input"):
                self._inputs[index] = block["input"]
            return (call_delta(block.get("name"), "", block.get("id"), str(index)),)
        if kind == "redacted_thinking":
            return (text_delta("thinking", REDACTED_THINKING, str(index), {"signature": block.get("data")}),)
        if kind not in ("text", "thinking"):
            # tools that run at the provider, and what comes next: their pieces mean nothing to us
            self._skipped.add(index)
        return ()

    def block_delta(self, event: Event) -> Sequence[Raw]:
        index, delta = event.get("index"), event.get("delta")
        if not delta or index in self._skipped:
            return ()
        handler = _DELTAS.get(delta.get("type"))
        return handler(self, delta, index) if handler is not None else ()

    def text_piece(self, delta: Event, index: Any) -> Sequence[Raw]:
        return (text_delta("text", delta.get("text") or "", str(index)),)

    def thinking_piece(self, delta: Event, index: Any) -> Sequence[Raw]:
        return (text_delta("thinking", delta.get("thinking") or "", str(index)),)

    def signature(self, delta: Event, index: Any) -> Sequence[Raw]:
        return (text_delta("thinking", "", str(index), {"signature": delta.get("signature")}),)

    def input_piece(self, delta: Event, index: Any) -> Sequence[Raw]:
        piece = delta.get("partial_json")
        if not piece or index not in self._tools:
            return ()
        self._inputs.pop(index, None)
        return (call_delta("", piece, "", str(index)),)

    def block_stop(self, event: Event) -> Sequence[Raw]:
        return self._whole_input(event.get("index")) if self._inputs else ()

    def _whole_input(self, index: Any) -> Sequence[Raw]:
        value = self._inputs.pop(index, None)
        return (call_delta("", value, "", str(index)),) if value else ()

    def message_start(self, event: Event) -> Sequence[Raw]:
        counts = (event.get("message") or {}).get("usage")
        return (usage(*_input_counts(counts), None, None),) if counts else ()

    def message_delta(self, event: Event) -> Sequence[Raw]:
        out = list(self.finish())
        if counts := event.get("usage"):
            out.append(self._final_usage(counts))
        if reason := (event.get("delta") or {}).get("stop_reason"):
            out.append(finished(FINISH, reason))
        return out

    def _final_usage(self, counts: dict[str, Any]) -> Raw:
        output = counted(counts, "output_tokens")
        if self.vendor.rules.get("usage") == "output":
            return usage(None, None, None, output)
        thoughts = detail(counts, "output_tokens_details", "thinking_tokens")
        return usage(*_input_counts(counts), thoughts, without(output, thoughts))

    handlers = {
        "content_block_delta": block_delta,
        "content_block_start": block_start,
        "content_block_stop": block_stop,
        "message_start": message_start,
        "message_delta": message_delta,
        "message_stop": EventDecoder.end,
        "ping": EventDecoder.nothing,
        "error": EventDecoder.failed,
    }


_DELTAS: dict[Any, Callable[[MessagesDecoder, Event, Any], Sequence[Raw]]] = {
    "text_delta": MessagesDecoder.text_piece,
    "thinking_delta": MessagesDecoder.thinking_piece,
    "input_json_delta": MessagesDecoder.input_piece,
    "signature_delta": MessagesDecoder.signature,
}


class BedrockDecoder(MessagesDecoder):
    """The same events, each in base64 inside an AWS message; ``name`` is its event or exception type."""

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if name is not None and name.lower().endswith("exception"):
            raise stream_error(self.client, event, name)
        inner = event.get("bytes")
        return super().decode(json.loads(base64.b64decode(inner)) if inner else event)


def _input_counts(counts: dict[str, Any]) -> tuple[int | None, int | None]:
    """Cached tokens, and the other input tokens with those written to the cache."""
    fresh = counted(counts, "input_tokens")
    prompt = None if fresh is None else fresh + (counted(counts, "cache_creation_input_tokens") or 0)
    return counted(counts, "cache_read_input_tokens"), prompt
