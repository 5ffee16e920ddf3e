"""A client of the protocol that says what a script says, at the pace of the script; importable inside a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

Event = dict[str, Any]


def _event(item: dict[str, Any]) -> Event:
    return {
        "role": "assistant", "event_type": "delta", "content_items": [item],
        "usage_metadata": None, "finish_reason": None, "created_at": 1,
    }  # fmt: skip


def text(*deltas: str) -> list[Event]:
    """A text item in these deltas."""
    return [_event({"type": "text.delta", "text": delta}) for delta in deltas] + [
        _event({"type": "text.done", "text": "".join(deltas)})
    ]


def thinking(*deltas: str) -> list[Event]:
    """A thinking item in these deltas."""
    return [_event({"type": "thinking.delta", "thinking": delta}) for delta in deltas] + [
        _event({"type": "thinking.done", "thinking": "".join(deltas)})
    ]


_calls = 0


def call(name: str, **arguments: Any) -> list[Event]:
    """A tool call, its arguments in two deltas."""
    global _calls
    _calls += 1
    written, key = json.dumps(arguments), f"call-{_calls}"
    half = len(written) // 2
    deltas = [(name, "", key), ("", written[:half], ""), ("", written[half:], "")]
    return [_event({"type": "tool_call.delta", "name": n, "arguments": a, "tool_call_id": i}) for n, a, i in deltas] + [
        _event({"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": key})
    ]


def picture(data: bytes, mime_type: str = "image/png") -> list[Event]:
    """A picture made by the model."""
    return [
        _event({"type": f"inline_data.{phase}", "data": data, "mime_type": mime_type}) for phase in ("delta", "done")
    ]


def stop(finish_reason: str = "stop") -> Event:
    """The stop event."""
    usage = {"cached_tokens": None, "prompt_tokens": 120, "thoughts_tokens": None, "response_tokens": 45}
    return {
        "role": "assistant", "event_type": "stop", "content_items": [],
        "usage_metadata": usage, "finish_reason": finish_reason, "created_at": 1,
    }  # fmt: skip


class Scripted:
    """Answers each request with the next script: a list of events, lists of events, seconds to wait, exceptions, and
    `threading.Event` that are waited for.

    ``sent`` and ``closed`` record what happened, with times of `time.time`; ``paused`` is set when seconds are waited.
    """

    client_type = "scripted"

    def __init__(self, *scripts: list[Any], model: str = "scripted-model", pace: float = 0.0) -> None:
        self.scripts = list(scripts)
        self.model = model
        self.pace = pace
        self.history: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.configs: list[dict[str, Any]] = []
        self.sent: list[float] = []
        self.closed: list[float] = []
        self.paused = threading.Event()

    def get_history(self) -> list[dict[str, Any]]:
        return json.loads(json.dumps(self.history, default=str))

    def set_history(self, history: list[dict[str, Any]]) -> None:
        self.history = list(history)

    def clear_history(self) -> None:
        self.history = []

    async def streaming_response_stateful(
        self, message: dict[str, Any], config: dict[str, Any], signal: Any = None
    ) -> AsyncIterator[Event]:
        self.requests.append(message)
        self.configs.append(config)
        items: list[dict[str, Any]] = []
        try:
            begin, count = time.monotonic(), 0
            for event in _complete(self.scripts.pop(0)):
                if isinstance(event, BaseException):
                    raise event
                if isinstance(event, threading.Event):
                    while not event.is_set():
                        await _pause(0.005, signal)
                    begin, count = time.monotonic(), 0
                    continue
                if isinstance(event, int | float):
                    self.paused.set()
                    await _pause(event, signal)
                    begin, count = time.monotonic(), 0
                    continue
                if self.pace:
                    count += 1
                    await asyncio.sleep(max(begin + count * self.pace - time.monotonic(), 0))
                self.sent.append(time.time())
                items += [item for item in event["content_items"] if item["type"].endswith(".done")]
                if event["event_type"] == "stop":
                    answer = {"role": "assistant", "content_items": items}
                    self.history += [message, answer]
                yield event
        finally:
            self.closed.append(time.time())


async def _pause(seconds: float, signal: Any) -> None:
    if signal is None:
        await asyncio.sleep(seconds)
        return
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(signal.wait(), seconds)
    signal.throw_if_aborted()


def _complete(script: list[Any]) -> list[Any]:
    flat = _flat(script)
    stopped = any(isinstance(step, dict) and step["event_type"] == "stop" for step in flat)
    return flat if stopped else [*flat, stop()]


def _flat(script: list[Any]) -> list[Any]:
    return [each for step in script for each in (_flat(step) if isinstance(step, list) else [step])]
