"""`Agent`: the loop in which a model answers or asks for tools, as an async stream of events.

One iteration is one request. Tools run only after the stop event of a response, when its assistant turn
is recorded, and all their results go back in one message.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import json
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from mmsp_nb.protocol.errors import AbortError, IncompleteStreamError, UnsupportedContentError
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.tools import PreparedCall, Tool, ToolOutcome, ToolRegistry, interrupted, prepare, run_calls

__all__ = ["Agent", "Execute", "checked_max_turns", "user_message"]

Event = dict[str, Any]
Report = Callable[[Event], None]
Execute = Callable[[list[PreparedCall], Report], Awaitable[list[ToolOutcome]]]

STUBBORN = 3
"""So often may one call fail in the same way before the model is told to stop repeating it."""


class Agent:
    """Asks a model, runs the tools it asks for, sends their results, until it answers or the limit is reached.

    Args:
        client: Any stateful client of the protocol: an object with
            ``streaming_response_stateful(message=, config=)``, and ``signal=`` if it can be aborted.
        tools: A `ToolRegistry`, which is used live, or functions and tools.
        max_turns: Requests that one `run` may make, at least 1.
        config: Defaults for the config of every request.
        execute: Runs the calls of one turn, ``await execute(calls, report) -> outcomes``; default `run_calls`.

    Attributes:
        pending: The message that was to be sent next, or was sent and not recorded: after an exception
            of the client it can be sent again, and after interrupted tools it answers every open call.
            None when everything was answered.
    """

    def __init__(
        self,
        client: Any,
        tools: ToolRegistry | Iterable[Callable[..., Any] | Tool | str] = (),
        *,
        max_turns: int = 10,
        config: Mapping[str, Any] | None = None,
        execute: Execute | None = None,
    ) -> None:
        self.client = client
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(*tools)
        self.max_turns = checked_max_turns(max_turns)
        self.config = dict(config or {})
        self.execute: Execute = execute or run_calls
        self.pending: UniMessage | None = None

    async def run(
        self, message: UniMessage | str, *, config: Mapping[str, Any] | None = None, signal: Any = None
    ) -> AsyncGenerator[Event, None]:
        """Send ``message`` and go on until there is an answer. Yields the agent's events, in order.

        ``{"type": "turn_start", "turn", "message"}`` · ``{"type": "event", "event"}`` for every event of the client ·
        ``{"type": "turn_end", "turn", "usage_metadata", "finish_reason", "calls"}`` · for each call
        ``{"type": "tool_start", "call"}`` and ``{"type": "tool_end", "outcome"}`` ·
        ``{"type": "end", "reason": "answer" | "max_turns", "text", "turns", "pending"}``.

        Args:
            message: A user message, or its text.
            config: Laid over the agent's config. A ``tool_choice`` that forces a call holds for the first
                request only, since a model that must call a tool can never answer.
            signal: An AbortSignal, honoured while streaming, between and during tools.

        Raises:
            AbortError: the signal was aborted. Exceptions of the client pass through.
        """
        message = user_message(message)
        merged = {**self.config, **(config or {})}
        failures: Counter[str] = Counter()
        for turn in range(1, self.max_turns + 1):
            self.pending = message
            yield {"type": "turn_start", "turn": turn, "message": message}
            response = _Response()
            async with contextlib.aclosing(self._request(message, self._turn_config(merged, turn), signal)) as events:
                async for event in events:
                    response.add(event)
                    yield {"type": "event", "event": event}
            if response.stop is None:
                name = type(self.client).__name__
                raise IncompleteStreamError(
                    "the stream ended without a stop event", client=name, missing=("usage_metadata", "finish_reason")
                )
            self.pending = None
            yield {
                "type": "turn_end",
                "turn": turn,
                "usage_metadata": response.stop.get("usage_metadata"),
                "finish_reason": response.stop.get("finish_reason"),
                "calls": response.calls,
            }
            if not response.calls:
                yield {"type": "end", "reason": "answer", "text": response.text, "turns": turn, "pending": None}
                return
            outcomes: dict[int, ToolOutcome] = {}
            try:
                async with contextlib.aclosing(self._run_tools(response.calls, outcomes, signal)) as reports:
                    async for report in reports:
                        yield report
            finally:
                message = self.pending = _results(response.calls, outcomes, failures)
        yield {
            "type": "end",
            "reason": "max_turns",
            "text": response.text,
            "turns": self.max_turns,
            "pending": message,
        }

    def _turn_config(self, merged: dict[str, Any], turn: int) -> dict[str, Any]:
        config = {key: value for key, value in merged.items() if value is not None}
        if turn > 1 and config.get("tool_choice") not in ("auto", "none"):
            config.pop("tool_choice", None)
        schemas = [*config.pop("tools", ()), *self.tools.schemas()]
        return {**config, "tools": schemas} if schemas else config

    async def _request(self, message: UniMessage, config: dict[str, Any], signal: Any) -> AsyncGenerator[Any, None]:
        """One request's events. Pictures of tools that this model cannot read are left out, and it is told so."""
        begun = False
        try:
            async with contextlib.aclosing(self._stream(message, config, signal)) as events:
                async for event in events:
                    begun = True
                    yield event
                return
        except UnsupportedContentError:
            if begun or not _drop_images(message):
                raise
        async with contextlib.aclosing(self._stream(message, config, signal)) as events:
            async for event in events:
                yield event

    async def _stream(self, message: UniMessage, config: dict[str, Any], signal: Any) -> AsyncGenerator[Any, None]:
        call = self.client.streaming_response_stateful
        if signal is None:
            events = call(message=message, config=config)
        elif _takes_signal(call):
            events = call(message=message, config=config, signal=signal)
        else:
            events = _abortable(call(message=message, config=config), signal)
        try:
            async for event in events:
                yield event
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    async def _run_tools(
        self, calls: list[Item], outcomes: dict[int, ToolOutcome], signal: Any
    ) -> AsyncGenerator[Event, None]:
        """Run the calls, yield what is reported, and collect the outcomes by the index of their call."""
        loop, here = asyncio.get_running_loop(), threading.get_ident()
        wake = asyncio.Event()
        reports: deque[Event] = deque()
        index = {id(call): i for i, call in enumerate(calls)}

        def report(event: Event) -> None:
            reports.append(event)
            if threading.get_ident() == here:
                wake.set()  # at once: a start is told before a blocking tool begins
                return
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens any more
                loop.call_soon_threadsafe(wake.set)

        def note(outcome: ToolOutcome) -> None:
            if id(outcome.call) in index:
                outcomes[index[id(outcome.call)]] = outcome

        if signal is not None:
            signal.throw_if_aborted()
        work = asyncio.ensure_future(self.execute([prepare(self.tools, call) for call in calls], report))
        stop = asyncio.ensure_future(signal.wait()) if signal is not None else loop.create_future()
        for future in (work, stop):
            future.add_done_callback(lambda _: wake.set())
        try:
            while True:
                wake.clear()
                while reports:
                    event = reports.popleft()
                    if event["type"] == "tool_end":
                        note(event["outcome"])
                    yield event
                if work.done() and not reports:
                    break
                if stop.done():
                    raise AbortError(signal.reason)
                await wake.wait()
            for outcome in work.result():
                note(outcome)
        finally:
            for future in (work, stop):
                future.cancel()
            await asyncio.wait([work, stop])
            for event in reports:  # what ended while we were being stopped
                if event["type"] == "tool_end":
                    note(event["outcome"])


def checked_max_turns(value: Any) -> int:
    """``value`` if it is a limit of requests; else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"max_turns is a whole number from 1 on, not {value!r}")
    return value


class _Response:
    """What counts in one response: its complete calls, its text, its stop event."""

    def __init__(self) -> None:
        self.calls: list[Item] = []
        self.stop: Any = None
        self._texts: list[str] = []

    def add(self, event: Any) -> None:
        if event["event_type"] == "stop":
            self.stop = event
        for item in event["content_items"]:
            if item["type"] == "text.done":
                self._texts.append(item["text"])
            elif item["type"] == "tool_call.done":
                # a copy: a consumer or a tool that changes it must not change what was said
                self.calls.append(copy.deepcopy(item))

    @property
    def text(self) -> str:
        return "".join(self._texts)


def user_message(message: UniMessage | str) -> UniMessage:
    """``message`` as a user message; a string becomes its text."""
    if isinstance(message, str):
        return {"role": "user", "content_items": [{"type": "text.done", "text": message}]}
    return message


def _results(calls: list[Item], outcomes: dict[int, ToolOutcome], failures: Counter[str]) -> UniMessage:
    """The message that answers every call, those without an outcome with "interrupted"."""
    items = []
    for i, call in enumerate(calls):
        outcome = outcomes.get(i) or interrupted(call)
        item = outcome.item()
        item["tool_call_id"] = call["tool_call_id"]
        if outcome.status not in ("ok", "interrupted"):
            key = json.dumps([call["name"], call["arguments"], outcome.status], sort_keys=True, default=repr)
            failures[key] += 1
            if failures[key] >= STUBBORN:
                item["text"] += (
                    f"\nThis same call has now failed {failures[key]} times. "
                    "Do not repeat it: call differently, or answer without it."
                )
        items.append(item)
    return {"role": "user", "content_items": items}


def _drop_images(message: UniMessage) -> bool:
    """Replace the images of tool results by a note, in place; False when there are none."""
    found = False
    for item in message["content_items"]:
        if item["type"] == "tool_result.done" and item.pop("images", None):
            item["text"] += "\n(You cannot see the images of this result: this model reads none.)"
            found = True
    return found


def _takes_signal(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "signal" or p.kind is p.VAR_KEYWORD for p in parameters)


async def _abortable(events: Any, signal: Any) -> AsyncGenerator[Any, None]:
    """The events of a client that knows no signals, until the signal is aborted."""
    iterator = aiter(events)
    stop = asyncio.ensure_future(signal.wait())
    step: asyncio.Future[Any] | None = None
    try:
        while True:
            signal.throw_if_aborted()
            step = asyncio.ensure_future(anext(iterator))
            await asyncio.wait([step, stop], return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                raise AbortError(signal.reason)
            try:
                event = step.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        unfinished = [future for future in (step, stop) if future is not None and not future.done()]
        for future in unfinished:
            future.cancel()
        if unfinished:
            await asyncio.wait(unfinished)
        if hasattr(iterator, "aclose"):
            await iterator.aclose()
