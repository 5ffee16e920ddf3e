"""What the fault tests share: a client of each wire, compact answers with tool calls, events without their times."""

from __future__ import annotations

from typing import Any

from mmsp_nb.client import AutoLLMClient
from mmsp_nb.testing import FakeProvider, Frame, Reply, streams
from mmsp_nb.testing.parts import Part, call, text
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy

CLIENTS = {
    "openai-chat": ("chat", "/v1"),
    "openai-official": ("responses", "/v1"),
    "minimax-official": ("responses", "/v1"),
    "anthropic-official": ("messages", ""),
    "google-official": ("interactions", ""),
    "google-genai": ("generate_content", ""),
    "mmsp": ("mmsp", "/v1"),
}
"""Client type -> its dialect, and the path of its base URL. One for each way of reading a stream."""

COMPACT: dict[str, dict[str, Any]] = {
    "openai-chat": {"envelope": False},
    "openai-official": {"terse": True},
    "minimax-official": {"terse": True, "calls_at_end": True},
    "anthropic-official": {"ping": False},
}
"""Options that leave out what carries nothing, so that every byte of what is left can be tried."""

TERSE = ("openai-chat", "minimax-official", "google-genai")

Event = dict[str, Any]


def make_client(provider: FakeProvider, client_type: str, **options: Any) -> AutoLLMClient:
    options.setdefault("transport", Transport(retries=RetryPolicy(2, base=0.001)))
    _, path = CLIENTS[client_type]
    return AutoLLMClient("a-model", "k-test", provider.url(path), client_type, **options)


def frames(client_type: str, *parts: Part, **options: Any) -> list[Frame | bytes]:
    dialect, _ = CLIENTS[client_type]
    return list(streams.DIALECTS[dialect].frames(parts, **{**COMPACT.get(client_type, {}), **options}))


def with_tools(client_type: str) -> Reply:
    """A call in two pieces with characters of two and four bytes; where events are short, one in a single piece too."""
    calls = [call("tide", '{"port": "', 'Brést 🌊"}', id="c1")]
    if client_type in TERSE:
        calls.append(call("now", "{}", id="c2"))
    return Reply.stream(frames(client_type, *calls))


def plain(client_type: str, said: str = "Fine.") -> Reply:
    return Reply.stream(frames(client_type, text(said)))


def user(said: str) -> dict[str, Any]:
    return {"role": "user", "content_items": [{"type": "text.done", "text": said}]}


def untimed(event: Event) -> Event:
    return {key: value for key, value in event.items() if key != "created_at"}


async def events_of(stream: Any) -> list[Event]:
    """All events of a stream that ends normally, without their times."""
    return [untimed(event) async for event in stream]
