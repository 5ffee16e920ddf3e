"""OpenTelemetry: a span for each agent's run, each request to a model and each tool call, and two metrics.

Written by the semantic conventions for generative AI. Nothing of OpenTelemetry is imported unless the program has done
so itself, and nothing is recorded until it has set a provider; ``MMSP_NB_OTEL=0`` turns it off even then. What was said
is left out unless ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` asks for it. Whatever fails here is a warning,
once, and never costs an answer.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from mmsp_nb.masking import mask_keys, remember, remembered, without_secrets
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import (
    ApiKeyRequiredError,
    ConnectionCutError,
    ConnectionFailedError,
    RequestTimeoutError,
)

__all__ = ["NOTHING", "Watch", "agent", "loaded", "request", "tool"]

P = ParamSpec("P")
T = TypeVar("T")

SCOPE = "mmsp_nb"
LONGEST = 100_000
"""Characters of one captured attribute; more is cut."""

_CONVERSATION = "mmsp_nb.conversation"
_TOKEN_BUCKETS = [4**n for n in range(14)]
_SECOND_BUCKETS = [0.01 * 2**n for n in range(14)]
_SETTINGS = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
}


class Watch:
    """What is watched of one operation; by itself nothing. As a context manager it ends with the block."""

    def active(self) -> AbstractContextManager[Any]:
        """What runs in this block, on this thread and in this task, is part of the operation. Never yield in it."""
        return nullcontext()

    def within(self, work: Awaitable[T]) -> Awaitable[T]:
        """``work``, as a part of the operation."""
        return work

    def reading(self, parse: Callable[[bytes], Any], identify: Callable[[Any], tuple[Any, Any]]) -> Callable[..., Any]:
        """``parse``, which takes in the first events of an answer; ``identify`` finds its id and its model in one."""
        return parse

    def add(self, usage: Mapping[str, Any] | None, finish_reason: str | None) -> None:
        """One request of the operation is complete."""

    def done(self, message: Mapping[str, Any] | None = None, **attributes: Any) -> None:
        """It has come to its end; ``message`` is what was answered."""

    def failed(self, error: BaseException | str, about: str = "") -> None:
        """It was ended by ``error``, or by what has that name. The first end counts."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            self.failed(error)
        else:
            self.done()


NOTHING = Watch()


def loaded() -> bool:
    """Whether the program has loaded OpenTelemetry, as it must have to set a provider."""
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules


def request(
    *,
    model: str,
    provider: str,
    base_url: str,
    config: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    embeds: bool = False,
    secrets: Iterable[str] = (),
) -> Watch:
    """Begin the span of one request to a model. ``secrets`` are masked in what is captured."""
    return _begun(_request, model, provider, base_url, config, messages, embeds, tuple(secrets))


def agent(client: Any, *, name: str | None = None, conversation: str | None = None) -> Watch:
    """Begin the span of an agent's run. ``conversation`` is the id that its requests have in common."""
    return _begun(_agent, client, name, conversation)


def tool(call: Mapping[str, Any], description: str | None = None) -> Watch:
    """Begin the span of a tool call, by its ``tool_call.done`` item."""
    return _begun(_tool, call, description)


# from here on OpenTelemetry is there


def _begun(begin: Callable[..., Watch], *given: Any) -> Watch:
    try:
        return begin(*given) if loaded() and _wanted() else NOTHING
    except Exception as error:
        _complain(error)
        return NOTHING


def _wanted() -> bool:
    if os.environ.get("MMSP_NB_OTEL", "").strip().lower() in ("0", "false", "no", "off"):
        return False
    from opentelemetry import metrics, trace

    # without a provider both are stand-ins of the API
    spans = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return spans or type(metrics.get_meter_provider()).__name__ != "_ProxyMeterProvider"


def _captures() -> bool:
    asked = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    return asked in ("true", "1", "yes", "on", "span_only", "span_and_event")


def _harmless(method: Callable[P, T]) -> Callable[P, T | None]:
    @functools.wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            _complain(error)
            return None

    return guarded


_complained = False


def _complain(error: Exception) -> None:
    global _complained
    if not _complained:
        _complained = True
        what = mask_keys(f"{type(error).__name__}: {error}")[:300]
        warnings.warn(f"OpenTelemetry failed, answers go on without it: {what}", RuntimeWarning, stacklevel=3)


class _Span(Watch):
    """A span, and what is measured of it."""

    def __init__(
        self,
        name: str,
        kind: str,
        attributes: Mapping[str, Any],
        *,
        measured: Sequence[str] = (),
        conversation: str | None = None,
    ) -> None:
        from opentelemetry import context, trace

        parent = context.get_current()
        conversation = conversation or context.get_value(_CONVERSATION, parent)  # type: ignore[assignment]
        known = {key: value for key, value in attributes.items() if value is not None}
        if conversation:
            known["gen_ai.conversation.id"] = conversation
            parent = context.set_value(_CONVERSATION, conversation, parent)
        self._begin = time.monotonic()
        self._over = False
        self._usage: dict[str, Any] | None = None
        self._reasons: list[str] = []
        self._first: float | None = None
        self._measured = {key: known[key] for key in measured if key in known}
        tracer = _tracer(trace.get_tracer_provider())
        self._span = tracer.start_span(name, parent, kind=trace.SpanKind[kind], attributes=known)
        self._context = trace.set_span_in_context(self._span, parent)
        self.captures = self._span.is_recording() and _captures()

    @contextmanager
    def active(self) -> Iterator[None]:
        from opentelemetry import context

        token = _harmless(context.attach)(self._context)
        try:
            yield
        finally:
            if token is not None:
                _harmless(context.detach)(token)

    async def within(self, work: Awaitable[T]) -> T:
        with self.active():
            return await work

    def reading(self, parse: Callable[[bytes], Any], identify: Callable[[Any], tuple[Any, Any]]) -> Callable[..., Any]:
        wanted, looks = {"gen_ai.response.id", "gen_ai.response.model"}, 3

        @_harmless
        def look(payload: Any) -> None:
            nonlocal looks
            if self._first is None:
                self._first = time.monotonic() - self._begin
                self._span.set_attribute("gen_ai.response.time_to_first_chunk", self._first)
            looks -= 1
            found = zip(("gen_ai.response.id", "gen_ai.response.model"), identify(payload), strict=True)
            for key, value in found:
                if value is not None and key in wanted:
                    wanted.discard(key)
                    self._span.set_attribute(key, value)
                    if key.endswith("model"):
                        self._measured[key] = value

        def parse_and_look(data: bytes) -> Any:
            payload = parse(data)
            if looks and wanted:
                look(payload)
            return payload

        return parse_and_look

    @_harmless
    def capture(self, **values: Any) -> None:
        """Set attributes to what was said, as JSON, without keys."""
        for key, value in values.items():
            if self.captures and value:
                text = json.dumps(without_secrets(value, remembered), ensure_ascii=False, default=str)
                self._span.set_attribute(f"gen_ai.{key.replace('__', '.')}", text[:LONGEST])

    @_harmless
    def add(self, usage: Mapping[str, Any] | None, finish_reason: str | None) -> None:
        if usage is not None:
            self._usage = dict(tokens.add(self._usage, usage))
        if finish_reason:
            self._reasons.append(str(finish_reason))

    @_harmless
    def done(self, message: Mapping[str, Any] | None = None, **attributes: Any) -> None:
        if self._over:
            return
        if message is not None:
            self.add(message.get("usage_metadata"), message.get("finish_reason"))
            if self.captures:
                said = {**_message(message), "finish_reason": str(message.get("finish_reason"))}
                self.capture(output__messages=[said])
        for key, value in attributes.items():
            self._span.set_attribute(f"mmsp_nb.{key}", value)
        self._end(None)

    @_harmless
    def failed(self, error: BaseException | str, about: str = "") -> None:
        if self._over:
            return
        from opentelemetry.trace import Status, StatusCode

        kind = error if isinstance(error, str) else type(error).__name__
        if not self.captures:  # both may quote what was said: a tool's error its arguments, a provider's the prompt
            about = "" if isinstance(error, str) else _unquoted(error)
        elif not about and not isinstance(error, str):
            about = str(error)
        about = mask_keys(without_secrets(about, remembered))[:300]
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, about or kind))
        self._end(kind)

    def _end(self, error: str | None) -> None:
        self._over = True
        try:
            counts = tokens.totals(self._usage)
            known = {
                "input_tokens": counts.input,
                "output_tokens": counts.output,
                "cache_read.input_tokens": (self._usage or {}).get("cached_tokens"),
                "reasoning.output_tokens": (self._usage or {}).get("thoughts_tokens"),
            }
            for key, value in known.items():
                if value is not None:
                    self._span.set_attribute(f"gen_ai.usage.{key}", value)
            if self._reasons:
                self._span.set_attribute("gen_ai.response.finish_reasons", self._reasons)
        finally:
            self._span.end()
        if self._measured:
            _measure(self._measured, time.monotonic() - self._begin, counts, error)


_MEASURED = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "server.address",
    "server.port",
)


def _request(
    model: str,
    provider: str,
    base_url: str,
    config: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    embeds: bool,
    secrets: tuple[str, ...],
) -> Watch:
    operation = "embeddings" if embeds else "chat"
    where = urlsplit(base_url)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,  # its name in older conventions, which many dashboards read
        "gen_ai.request.model": model,
        "gen_ai.request.stream": None if embeds else True,
        "server.address": where.hostname,
        "server.port": where.port or {"https": 443, "http": 80}.get(where.scheme),
        **{name: config.get(key) for key, name in _SETTINGS.items()},
    }
    if config.get("response_format"):
        attributes["gen_ai.output.type"] = "json"
    remember(*secrets)  # a tool may return one
    span = _Span(f"{operation} {model}", "CLIENT", attributes, measured=_MEASURED)
    if span.captures:
        system = config.get("system_prompt")
        span.capture(
            input__messages=[_message(message) for message in messages],
            system_instructions=[{"type": "text", "content": system}] if system else None,
            tool__definitions=[{"type": "function", **each} for each in config.get("tools") or ()],
        )
    return span


def _unquoted(error: BaseException) -> str:
    """What can be told of an error without a word that somebody else has written; maybe nothing."""
    if isinstance(error, ConnectionFailedError | ConnectionCutError | RequestTimeoutError | ApiKeyRequiredError):
        return str(error)
    status = getattr(error, "status", None)
    return f"{type(error).__name__}: status {status}" if isinstance(status, int) else ""


def _agent(client: Any, name: str | None, conversation: str | None) -> Watch:
    name = name and mask_keys(name)
    provider = getattr(client, "provider_name", None)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,
        "gen_ai.request.model": getattr(client, "model", None),
        "gen_ai.agent.name": name,
    }
    return _Span(f"invoke_agent {name}" if name else "invoke_agent", "INTERNAL", attributes, conversation=conversation)


def _tool(call: Mapping[str, Any], description: str | None) -> Watch:
    name = str(call.get("name"))[:200]  # a model made it up, perhaps
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.get("tool_call_id"),
        "gen_ai.tool.description": description[:1000] if description else None,
    }
    return _ToolSpan(call, f"execute_tool {name}", "INTERNAL", attributes)


class _ToolSpan(_Span):
    def __init__(self, call: Mapping[str, Any], *given: Any) -> None:
        super().__init__(*given)
        self.capture(tool__call__arguments=call.get("arguments"))

    @_harmless
    def done(self, message: Mapping[str, Any] | None = None, **attributes: Any) -> None:
        if message is not None:
            self.capture(tool__call__result=message.get("text"))
        super().done(None, **attributes)


@functools.lru_cache(maxsize=1)
def _tracer(provider: Any) -> Any:
    return provider.get_tracer(SCOPE, _version())


@functools.lru_cache(maxsize=1)
def _instruments(provider: Any) -> tuple[Any, Any]:
    meter = provider.get_meter(SCOPE, _version())
    return (
        meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        ),
        meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        ),
    )


def _measure(attributes: Mapping[str, Any], seconds: float, counts: tokens.Totals, error: str | None) -> None:
    from opentelemetry import metrics

    usage, duration = _instruments(metrics.get_meter_provider())
    duration.record(seconds, {**attributes, "error.type": error} if error else attributes)
    for kind, count in (("input", counts.input), ("output", counts.output)):
        if count is not None:
            usage.record(count, {**attributes, "gen_ai.token.type": kind})


def _version() -> str:
    from mmsp_nb._version import __version__

    return __version__


# messages, as the conventions have them


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    items = message.get("content_items") or ()
    results = [item["type"] == "tool_result.done" for item in items]
    role = "tool" if results and all(results) else message.get("role")
    return {"role": role, "parts": [_part(item) for item in items]}


def _part(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item["type"].partition(".")[0]
    if kind == "text":
        return {"type": "text", "content": item["text"]}
    if kind == "thinking":
        return {"type": "reasoning", "content": item["thinking"]}
    if kind == "tool_call":
        return {
            "type": "tool_call",
            "id": item["tool_call_id"],
            "name": item["name"],
            "arguments": item["arguments"],
        }
    if kind == "tool_result":
        return {"type": "tool_call_response", "id": item["tool_call_id"], "response": item["text"]}
    if kind == "image_url":
        url = item["image_url"]
        if url[:5].lower() != "data:":
            return {"type": "uri", "modality": "image", "uri": url}
        return _blob(url[5:].partition(",")[0].partition(";")[0], len(url))
    if kind in ("inline_data", "inline_thinking"):
        return _blob(item["mime_type"], len(item["data"]))
    return {"type": kind}


def _blob(mime_type: str, size: int) -> dict[str, Any]:
    """Media are named, not carried: a span is no place for them."""
    return {
        "type": "blob",
        "modality": mime_type.partition("/")[0] or "image",
        "mime_type": mime_type,
        "content": "",
        "size": size,
    }
