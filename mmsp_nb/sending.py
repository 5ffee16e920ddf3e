"""The requests of an agent: a client's events, also of a client that knows no signals or reads no pictures."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any

from mmsp_nb.protocol.assembly import now_ms
from mmsp_nb.protocol.errors import AbortError, StreamProtocolError, UnsupportedContentError
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.protocol.suggestions import shown
from mmsp_nb.telemetry import NOTHING, Watch

__all__ = ["abortable", "checked", "request", "stream_of", "takes_signal"]

_TEXTS = {"text.delta": "text", "text.done": "text", "thinking.delta": "thinking", "thinking.done": "thinking"}
"""Items whose text is joined, and where it is."""


async def request(
    client: Any, message: UniMessage, config: dict[str, Any], signal: Any, watch: Watch = NOTHING
) -> AsyncGenerator[Any, None]:
    """One request's events, as a part of ``watch``.

    Pictures of tools that this model cannot read are left out, and it is told so.
    """
    begun = False
    try:
        async with contextlib.aclosing(_stream(client, message, config, signal, watch)) as events:
            async for event in events:
                begun = True
                yield event
            return
    except UnsupportedContentError:
        if begun or not _drop_images(message):
            raise
    async with contextlib.aclosing(_stream(client, message, config, signal, watch)) as events:
        async for event in events:
            yield event


async def _stream(
    client: Any, message: UniMessage, config: dict[str, Any], signal: Any, watch: Watch
) -> AsyncGenerator[Any, None]:
    call = client.streaming_response_stateful
    if signal is None:
        events = stream_of(call(message=message, config=config), client)
    elif takes_signal(call):
        events = stream_of(call(message=message, config=config, signal=signal), client)
    else:
        events = abortable(stream_of(call(message=message, config=config), client), signal)
    try:
        steps = aiter(events)
        try:
            with watch.active():  # a client begins with its first step, and nothing is handed out meanwhile
                first = await anext(steps)
        except StopAsyncIteration:
            return
        yield _whole(checked(first, client))
        async for event in steps:
            yield _whole(checked(event, client))
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()


def _drop_images(message: UniMessage) -> bool:
    """Replace the images of tool results by a note, in place; False when there are none."""
    found = False
    for item in message["content_items"]:
        if item["type"] == "tool_result.done" and item.pop("images", None):
            item["text"] += "\n(You cannot see the images of this result: this model reads none.)"
            found = True
    return found


def stream_of(events: Any, client: Any) -> Any:
    """What a client's method gave; StreamProtocolError when it cannot be iterated by ``async for``."""
    if hasattr(events, "__aiter__"):
        return events
    if inspect.iscoroutine(events):
        events.close()  # else Python warns that nobody awaited it
    name = type(client).__name__
    raise StreamProtocolError(
        f"{name}.streaming_response_stateful() gave {shown(events)}, not events to iterate by async for: "
        "make it an async generator",
        client=name,
    )


def checked(event: Any, client: Any) -> Any:
    """``event``, if it has the form of one; StreamProtocolError when a client gave something else."""
    try:
        if isinstance(event["event_type"], str) and all(map(_is_item, event["content_items"])):
            return event
        missing = ""
    except KeyError as error:
        missing = f" without {error.args[0]!r}"
    except (TypeError, AttributeError):
        missing = ""
    name = type(client).__name__
    raise StreamProtocolError(
        f"{name} gave {shown(event)}{missing}, which is no event of the protocol: that is a dict with event_type "
        "('delta' or 'stop') and content_items, a list of dicts with a type",
        client=name,
    )


def _is_item(item: Any) -> bool:
    kind = item["type"]
    return isinstance(kind, str) and (kind not in _TEXTS or isinstance(item[_TEXTS[kind]], str))


def _whole(event: Any) -> Any:
    """An event with what our own clients always say, also of a client that leaves out what it does not know."""
    if "created_at" in event and "usage_metadata" in event and "finish_reason" in event:
        return event
    return {"created_at": now_ms(), "usage_metadata": None, "finish_reason": None, **event}


def takes_signal(function: Callable[..., Any]) -> bool:
    """Whether a client's method can be given an AbortSignal."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "signal" or p.kind is p.VAR_KEYWORD for p in parameters)


async def abortable(events: Any, signal: Any) -> AsyncGenerator[Any, None]:
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
