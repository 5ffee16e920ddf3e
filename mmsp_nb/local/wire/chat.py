"""OpenAI Chat Completions, and what its many imitators add to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .base import budget, content, effort, mapping, need, records, tool
from .neutral import (
    CREATED,
    Ask,
    Call,
    Delta,
    Finish,
    Part,
    Result,
    Say,
    Text,
    Thinking,
    Turn,
    Usage,
    add_user,
    arguments_of,
    digest,
    name_results,
)
from .pieces import frame

NAME = "chat"
_FINISH: dict[Finish, str] = {"stop": "stop", "length": "length", "tool_call": "tool_calls"}


def _turns(messages: list[Mapping[str, Any]]) -> tuple[str, tuple[Turn, ...]]:
    system: list[str] = []
    turns: list[Turn] = []
    for message in messages:
        role, parts = message.get("role"), content(message.get("content"))
        if role in ("system", "developer"):
            system.extend(part.text for part in parts if isinstance(part, Text))
        elif role in ("tool", "function"):
            images = len(parts) - sum(isinstance(part, Text) for part in parts)
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            result = Result(str(message.get("tool_call_id") or message.get("name") or ""), text, images=images)
            add_user(turns, [result])
        elif role == "assistant":
            reasoning = message.get("reasoning_content") or message.get("reasoning")
            spoken: list[Part] = [Thinking(reasoning)] if isinstance(reasoning, str) else []
            spoken += parts
            for entry in records(message.get("tool_calls")):
                function = mapping(entry.get("function"))
                arguments = arguments_of(function.get("arguments"))
                spoken.append(Call(str(function.get("name") or ""), arguments, str(entry.get("id") or "")))
            turns.append(Turn("assistant", tuple(spoken)))
        else:
            add_user(turns, parts)
    return "\n".join(system), name_results(turns)


def _choice(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    value = mapping(value)
    allowed = mapping(value.get("allowed_tools")) or value
    names = [mapping(entry.get("function")).get("name") for entry in records(allowed.get("tools"))]
    if value.get("type") == "function":
        names = [mapping(value.get("function")).get("name")]
    return tuple(str(name) for name in names if name) or "auto"


def _thinks(body: Mapping[str, Any]) -> bool:
    """Reasoning can be asked for in the spelling of OpenAI, Z.AI, Moonshot or vLLM."""
    kwargs = mapping(body.get("chat_template_kwargs"))
    thinking = mapping(body.get("thinking")).get("type", "")
    return (
        effort(body.get("reasoning_effort"))
        or effort(mapping(body.get("reasoning")).get("effort"))
        or effort(kwargs.get("reasoning_effort"))
        or kwargs.get("enable_thinking") is True
        or kwargs.get("thinking") is True
        or thinking in ("enabled", "adaptive")
    )


def _schema(value: Any) -> Mapping[str, Any] | None:
    value = mapping(value)
    if value.get("type") == "json_schema":
        return mapping(mapping(value.get("json_schema")).get("schema"))
    return {} if value.get("type") == "json_object" else None


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    model = need(body, "model", str, "you must provide a model parameter")
    messages = need(
        body, "messages", list, "Missing required parameter: 'messages'.", code="missing_required_parameter"
    )
    system, turns = _turns(records(messages))
    return Ask(
        model=model,
        turns=turns,
        system=system,
        tools=tuple(tool(mapping(entry.get("function"))) for entry in records(body.get("tools"))),
        tool_choice=_choice(body.get("tool_choice", "auto")),
        parallel=body.get("parallel_tool_calls") is not False,
        think=_thinks(body),
        max_tokens=budget(body.get("max_completion_tokens")) or budget(body.get("max_tokens")),
        schema=_schema(body.get("response_format")),
        stream=body.get("stream") is True,
        digest=digest(body),
        options={
            "usage": mapping(body.get("stream_options")).get("include_usage") is True or "tool_stream" in body,
            "field": "reasoning" if "chat_template_kwargs" in body else "reasoning_content",
        },
    )


def _usage(usage: Usage) -> dict[str, Any]:
    made = usage.output + usage.thoughts
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": made,
        "total_tokens": usage.input + made,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.thoughts,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _head(ask: Ask, kind: str) -> dict[str, Any]:
    return {
        "id": ask.ident("chatcmpl-"),
        "object": kind,
        "created": CREATED,
        "model": ask.model,
        "service_tier": "default",
        "system_fingerprint": "fp_demo",
    }


class ChatEncoder:
    """Chunks. The usage comes last, in a chunk without choices, if the request asked for it."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.index = -1
        self.head = _head(ask, "chat.completion.chunk")

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._frame([choice], None)

    def _frame(self, choices: list[Any], usage: dict[str, Any] | None) -> bytes:
        chunk = {**self.head, "choices": choices}
        if self.ask.options.get("usage"):
            chunk["usage"] = usage
        return frame(chunk)

    def start(self) -> Iterable[bytes]:
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def push(self, delta: Delta) -> Iterable[bytes]:
        if delta.call:
            self.index += 1
            function = {"name": delta.call.name, "arguments": ""}
            call = {"index": self.index, "id": delta.call.id, "type": "function", "function": function}
            yield self._chunk({"tool_calls": [call]})
        elif delta.kind == "arguments":
            yield self._chunk({"tool_calls": [{"index": self.index, "function": {"arguments": delta.text}}]})
        elif delta.kind == "thinking":
            yield self._chunk({self.ask.options.get("field", "reasoning_content"): delta.text})
        else:
            yield self._chunk({"content": delta.text})

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        yield self._chunk({}, _FINISH[finish])
        if usage and self.ask.options.get("usage"):
            yield self._frame([], _usage(usage))
        yield frame("[DONE]")

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        yield frame(error(status, message))


def encoder(ask: Ask, usage: Usage | None = None) -> ChatEncoder:
    return ChatEncoder(ask)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    text = "".join(say.text for say in says if isinstance(say, Text))
    thoughts = "".join(say.text for say in says if isinstance(say, Thinking))
    calls = [say for say in says if isinstance(say, Call)]
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
    if thoughts:
        message[ask.options.get("field", "reasoning_content")] = thoughts
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
            for call in calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[finish]}
    return {**_head(ask, "chat.completion"), "choices": [choice], "usage": _usage(usage)}


_CODES = {401: "invalid_api_key", 404: None, 429: "rate_limit_exceeded", 503: "service_unavailable"}


def error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    kind = {429: "requests", 401: "invalid_request_error"}.get(status)
    kind = kind or ("server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code or _CODES.get(status)}}
