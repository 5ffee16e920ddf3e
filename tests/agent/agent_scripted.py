"""A stateful client without a network: it streams what a test has written down, by the protocol's rules."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import AsyncIterator
from typing import Any

from mmsp_nb.protocol.errors import AbortError, ConcurrentCallError

USAGE = {"cached_tokens": None, "prompt_tokens": 10, "thoughts_tokens": None, "response_tokens": 5}


def text(*pieces: str) -> list[dict[str, Any]]:
    deltas = [{"type": "text.delta", "text": piece} for piece in pieces]
    return [*deltas, {"type": "text.done", "text": "".join(pieces)}]


def thinking(*pieces: str, **fidelity: str) -> list[dict[str, Any]]:
    deltas = [{"type": "thinking.delta", "thinking": piece} for piece in pieces]
    done = {"type": "thinking.done", "thinking": "".join(pieces)}
    return [*deltas, {**done, "fidelity": fidelity} if fidelity else done]


def call(name: str, tool_call_id: str = "c1", /, **arguments: Any) -> list[dict[str, Any]]:
    return [
        {"type": "tool_call.delta", "name": name, "arguments": "", "tool_call_id": tool_call_id},
        {"type": "tool_call.delta", "name": "", "arguments": "{}", "tool_call_id": ""},
        {"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": tool_call_id},
    ]


class Gate:
    """A place in a script where the stream waits, until `open` from any thread; `reached` tells that it got there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._wake: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        self._opened.set()
        for loop, event in self._wake:
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        event = asyncio.Event()
        self._wake.append((asyncio.get_running_loop(), event))
        self.reached.set()
        if not self._opened.is_set():
            await event.wait()


class ScriptedClient:
    """Each response is a list of items, lists of items, exceptions to raise, and gates to wait at.

    ``requests`` has what each request would have sent: its messages, and its config.
    """

    def __init__(self, *responses: list[Any], model: str = "scripted", finish: str = "stop") -> None:
        self.model = model
        self.responses = list(responses)
        self.requests: list[tuple[list[dict[str, Any]], dict[str, Any]]] = []
        self.finish = finish
        self.closed = 0
        self._history: list[dict[str, Any]] = []
        self._running = False

    def get_history(self) -> list[dict[str, Any]]:
        return copy.deepcopy(self._history)

    def set_history(self, history: list[dict[str, Any]]) -> None:
        self._history = copy.deepcopy(history)

    def clear_history(self) -> None:
        self._history = []

    async def streaming_response_stateful(
        self, message: dict[str, Any], config: dict[str, Any] | None = None, signal: Any = None
    ) -> AsyncIterator[dict[str, Any]]:
        if self._running:
            raise ConcurrentCallError("busy", client="ScriptedClient")
        self._running = True
        try:
            self.requests.append((copy.deepcopy([*self._history, message]), copy.deepcopy(config or {})))
            done = []
            for step in self.responses.pop(0):
                for item in step if isinstance(step, list) else [step]:
                    if signal is not None and signal.aborted:
                        raise AbortError(signal.reason)
                    if isinstance(item, BaseException):
                        raise item
                    if isinstance(item, Gate):
                        await _wait(item, signal)
                        continue
                    if item["type"].endswith(".done"):
                        done.append(item)
                    yield _event("delta", [item])
            self._history.append(copy.deepcopy(message))
            self._history.append(
                {
                    "role": "assistant",
                    "content_items": copy.deepcopy(done),
                    "usage_metadata": dict(USAGE),
                    "finish_reason": self.finish,
                    "created_at": 2,
                }
            )
            self._running = False
            yield {**_event("stop", []), "usage_metadata": dict(USAGE), "finish_reason": self.finish, "created_at": 2}
        finally:
            self._running = False
            self.closed += 1


async def _wait(gate: Gate, signal: Any) -> None:
    if signal is None:
        await gate.wait()
        return
    waiting = [asyncio.ensure_future(gate.wait()), asyncio.ensure_future(signal.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    signal.throw_if_aborted()


def _event(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "event_type": kind,
        "content_items": items,
        "usage_metadata": None,
        "finish_reason": None,
        "created_at": 1,
    }
