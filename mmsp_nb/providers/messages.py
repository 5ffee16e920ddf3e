"""Dialect M: Anthropic Messages, at Anthropic, at gateways that speak it, and over Amazon Bedrock."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import mapping
from mmsp_nb.providers.base import ModelPage, Raw, Request, is_remote
from mmsp_nb.providers.errors import stream_error, unknown_event
from mmsp_nb.providers.images import split_data_url
from mmsp_nb.providers.mapping import Draft, fidelity, json_text, subtract
from mmsp_nb.providers.vendors import Vendor

API_VERSION = "2026-10-21"
DEFAULT_MAX_TOKENS = 64_000
REDACTED = "_REDACTED_THINKING"
"""The text of a thinking item that stands for reasoning which the provider encrypted."""

FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_call"}

_HEADERS = {**mapping.JSON_HEADERS, "anthropic-version": API_VERSION}
_FAST_BETA = "fast-mode-2026-02-01"
_THINKING_BLOCKS = ("thinking", "redacted_thinking")


def build(vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig) -> list[Request]:
    draft = Draft(vendor, model, config, {"model": model, "stream": True, "max_tokens": DEFAULT_MAX_TOKENS})
    draft.apply(_CONFIG)
    wire = []
    for index, message in enumerate(messages):
        blocks = [block for item in message["content_items"] if (block := _block(draft, item))]
        if all(block["type"] in _THINKING_BLOCKS for block in blocks):
            raise draft.nothing_to_send(index)
        wire.append({"role": message["role"], "content": blocks})
    draft.body["messages"] = wire
    if vendor.rules.get("bedrock"):
        return [_bedrock_request(draft)]
    return [draft.request("/v1/messages", _HEADERS)]


def decoder(vendor: Vendor, model: str, requests: Sequence[Request] = ()) -> MessagesDecoder:
    return BedrockDecoder(vendor) if vendor.rules.get("bedrock") else MessagesDecoder(vendor)


def models_request(vendor: Vendor) -> Request:
    if vendor.rules.get("bedrock"):
        raise UnsupportedOperationError("Bedrock lists no models here", client=vendor.client, operation="list_models")
    return Request("/v1/models", headers=_HEADERS, method="GET", framing="json")


def parse_models(payload: Any) -> ModelPage:
    page = mapping.page_of_data(payload)
    more = isinstance(payload, dict) and payload.get("has_more") and payload.get("last_id")
    return ModelPage(page.ids, f"/v1/models?after_id={quote(str(more), safe='')}" if more else None)


# Config ---------------------------------------------------------------------------------------------


def _thinking_summary(draft: Draft, value: bool) -> None:
    # comes after the level: it may be the only reason for a thinking block
    block = draft.body.setdefault("thinking", {"type": "adaptive"})
    if block["type"] == "adaptive":
        block["display"] = "summarized" if value else "omitted"


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    # input_schema is required there, parameters are optional here
    draft.body["tools"] = [
        {("input_schema" if key == "parameters" else key): part for key, part in {**_NO_PARAMETERS, **tool}.items()}
        for tool in value
    ]


_NO_PARAMETERS: dict[str, Any] = {"parameters": {"type": "object", "properties": {}}}


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    if isinstance(value, str):
        draft.body["tool_choice"] = {"type": "any" if value == "required" else value}
    else:
        draft.body["tool_choice"] = {"type": "tool", "name": value[0]}


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


def _stop(draft: Draft, value: str | list[str]) -> None:
    draft.body["stop_sequences"] = mapping.as_list(value)


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    schema = mapping.output_schema(draft, value)
    if schema is None:
        raise draft.reject("response_format", "this wire format needs a json_schema")
    draft.put("output_config", "format", {"type": "json_schema", "schema": schema["schema"]})


_CONFIG: dict[str, str | mapping.Setter] = {
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
    "stop": _stop,
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
    path = f"/model/{quote(draft.model, safe='')}/invoke-with-response-stream"
    return draft.request(path, framing="aws")


# Items ----------------------------------------------------------------------------------------------


def _block(draft: Draft, item: Item) -> dict[str, Any] | None:
    maker = _ITEMS.get(item.get("type", ""))
    if maker is None:
        raise draft.invalid(item)
    return maker(draft, item)


def _text(draft: Draft, item: Item) -> dict[str, Any]:
    return {"type": "text", "text": item["text"]}


def _image(draft: Draft, item: Item) -> dict[str, Any]:
    return _image_block(draft, item["image_url"])


def _image_block(draft: Draft, url: str) -> dict[str, Any]:
    if is_remote(url) and not draft.vendor.inline_images:
        return {"type": "image", "source": {"type": "url", "url": url}}
    data = split_data_url(url)
    if data is None:
        raise draft.invalid("image_url", "expected an http(s) URL or data:<mime>;base64,<payload>")
    return {"type": "image", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}


def _thinking(draft: Draft, item: Item) -> dict[str, Any] | None:
    signature = fidelity(item).get("signature")
    if item["thinking"] == REDACTED:
        return {"type": "redacted_thinking", "data": signature} if signature is not None else None
    block = {"type": "thinking", "thinking": item["thinking"]}
    if signature is not None:
        block["signature"] = signature
    elif draft.rule("signed_only"):
        return None
    return block


def _call(draft: Draft, item: Item) -> dict[str, Any]:
    return {"type": "tool_use", "id": item["tool_call_id"], "name": item["name"], "input": item["arguments"]}


def _result(draft: Draft, item: Item) -> dict[str, Any]:
    call_id = draft.result_id(item)
    content = [{"type": "text", "text": item["text"]}]
    content += [_image_block(draft, url) for url in item.get("images") or ()]
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


_ITEMS: dict[str, Callable[[Draft, Item], dict[str, Any] | None]] = {
    "text.done": _text,
    "image_url.done": _image,
    "thinking.done": _thinking,
    "tool_call.done": _call,
    "tool_result.done": _result,
}

# Stream ---------------------------------------------------------------------------------------------


class MessagesDecoder:
    """Events to raw values; the item id is the index of the content block."""

    def __init__(self, vendor: Vendor) -> None:
        self._client = vendor.client
        self._final_usage = _output_only if vendor.rules.get("usage") == "output" else _whole_usage
        # inputs that came whole with the start of a tool block, for the case that no pieces follow
        self._inputs: dict[Any, Any] = {}
        self._tools: set[Any] = set()
        self._skipped: set[Any] = set()

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        handler = _EVENTS.get(event.get("type") or name)
        if handler is not None:
            return handler(self, event)
        if event.get("error"):
            raise stream_error(self._client, event)
        unknown_event(self._client, event)
        return ()

    def finish(self) -> Sequence[Raw]:
        return [raw for index in list(self._inputs) for raw in self._whole_input(index)]

    def _block_start(self, event: dict[str, Any]) -> Sequence[Raw]:
        index, block = event.get("index"), event.get("content_block") or {}
        kind = block.get("type")
        if kind == "tool_use":
            self._tools.add(index)
            if block.get("input"):
                self._inputs[index] = block["input"]
            return (_tool(block.get("name") or "", "", block.get("id") or "", index),)
        if kind == "redacted_thinking":
            return (_thinking_delta(REDACTED, index, signature=block.get("data")),)
        if kind not in ("text", "thinking"):
            # tools that run at the provider, and what comes next: their pieces mean nothing to us
            self._skipped.add(index)
        return ()

    def _block_delta(self, event: dict[str, Any]) -> Sequence[Raw]:
        index, delta = event.get("index"), event.get("delta")
        if not delta or index in self._skipped:
            return ()
        handler = _DELTAS.get(delta.get("type"))
        return handler(self, delta, index) if handler is not None else ()

    def _text_delta(self, delta: dict[str, Any], index: Any) -> Sequence[Raw]:
        return ({"type": "text.delta", "text": delta.get("text") or "", "fidelity": {"item_id": str(index)}},)

    def _thinking_delta(self, delta: dict[str, Any], index: Any) -> Sequence[Raw]:
        return (_thinking_delta(delta.get("thinking") or "", index),)

    def _signature_delta(self, delta: dict[str, Any], index: Any) -> Sequence[Raw]:
        return (_thinking_delta("", index, signature=delta.get("signature")),)

    def _input_delta(self, delta: dict[str, Any], index: Any) -> Sequence[Raw]:
        piece = json_text(delta.get("partial_json"))
        if not piece or index not in self._tools:
            return ()
        self._inputs.pop(index, None)
        return (_tool("", piece, "", index),)

    def _block_stop(self, event: dict[str, Any]) -> Sequence[Raw]:
        return self._whole_input(event.get("index")) if self._inputs else ()

    def _whole_input(self, index: Any) -> Sequence[Raw]:
        value = self._inputs.pop(index, None)
        return (_tool("", json_text(value), "", index),) if value else ()

    def _message_start(self, event: dict[str, Any]) -> Sequence[Raw]:
        usage = (event.get("message") or {}).get("usage")
        return (_input_usage(usage),) if usage else ()

    def _message_delta(self, event: dict[str, Any]) -> Sequence[Raw]:
        out = list(self.finish())
        if usage := event.get("usage"):
            out.append(self._final_usage(usage))
        if reason := (event.get("delta") or {}).get("stop_reason"):
            out.append({"type": "finish", "finish_reason": FINISH.get(reason, "unknown")})
        return out

    def _error(self, event: dict[str, Any]) -> Sequence[Raw]:
        raise stream_error(self._client, event)

    def _nothing(self, event: dict[str, Any]) -> Sequence[Raw]:
        return ()


_EVENTS: dict[Any, Callable[[MessagesDecoder, dict[str, Any]], Sequence[Raw]]] = {
    "content_block_delta": MessagesDecoder._block_delta,
    "content_block_start": MessagesDecoder._block_start,
    "content_block_stop": MessagesDecoder._block_stop,
    "message_start": MessagesDecoder._message_start,
    "message_delta": MessagesDecoder._message_delta,
    "message_stop": MessagesDecoder._nothing,
    "ping": MessagesDecoder._nothing,
    "error": MessagesDecoder._error,
}

_DELTAS: dict[Any, Callable[[MessagesDecoder, dict[str, Any], Any], Sequence[Raw]]] = {
    "text_delta": MessagesDecoder._text_delta,
    "thinking_delta": MessagesDecoder._thinking_delta,
    "input_json_delta": MessagesDecoder._input_delta,
    "signature_delta": MessagesDecoder._signature_delta,
}


class BedrockDecoder(MessagesDecoder):
    """The same events, each in base64 inside an AWS message; ``name`` is its event or exception type."""

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if name is not None and name.lower().endswith("exception"):
            raise stream_error(self._client, event, name)
        inner = event.get("bytes")
        return super().decode(json.loads(base64.b64decode(inner)) if inner else event)


def _thinking_delta(text: str, index: Any, **kept: Any) -> Raw:
    kept = {key: value for key, value in kept.items() if value is not None}
    return {"type": "thinking.delta", "thinking": text, "fidelity": {**kept, "item_id": str(index)}}


def _tool(name: str, arguments: str, call_id: str, index: Any) -> Raw:
    return {
        "type": "tool_call.delta",
        "name": name,
        "arguments": arguments,
        "tool_call_id": call_id,
        "fidelity": {"item_id": str(index)},
    }


def _input_usage(usage: dict[str, Any]) -> Raw:
    fresh = usage.get("input_tokens")
    prompt = None if fresh is None else fresh + (usage.get("cache_creation_input_tokens") or 0)
    return {"type": "usage", "cached_tokens": usage.get("cache_read_input_tokens"), "prompt_tokens": prompt}


def _output_only(usage: dict[str, Any]) -> Raw:
    return {"type": "usage", "response_tokens": usage.get("output_tokens")}


def _whole_usage(usage: dict[str, Any]) -> Raw:
    thoughts = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    response = subtract(usage.get("output_tokens"), thoughts)
    return {**_input_usage(usage), "thoughts_tokens": thoughts, "response_tokens": response}
