"""What the replay tests do twice: once while it is recorded, and again in a process without network and keys."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mmsp_nb import Agent, AutoLLMClient, Conversation, Transport, tool
from mmsp_nb.transport.cassette import Cassette

CLIENTS = {
    "openai-chat": ("chat", "/v1"),
    "openai-official": ("responses", "/v1"),
    "anthropic-official": ("messages", ""),
    "google-official": ("interactions", ""),
    "google-genai": ("generate_content", ""),
    "mmsp": ("mmsp", "/v1"),
}
"""Client type -> its dialect, and the path of its base URL."""

KEY = "kk-0123456789-private"


@tool
def tide_table(port: str, days: int = 1) -> str:
    """Times and heights of the tides."""
    return f"{port}, {days}: high at noon"


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in ("created_at", "origin")}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def user(*items: Any) -> dict[str, Any]:
    items = tuple({"type": "text.done", "text": item} if isinstance(item, str) else item for item in items)
    return {"role": "user", "content_items": list(items)}


async def talk(cassette: Cassette, client_type: str, address: str, key: str | None) -> dict[str, Any]:
    """Two questions, tools, a picture by its address, and the model list."""
    base_url = address + CLIENTS[client_type][1]
    client = AutoLLMClient("a-model", key, base_url, client_type, transport=Transport(handler=cassette))
    agent = Agent(client, [tide_table])
    events = [event async for event in agent.run(user("When is high tide?"))]
    picture = {"type": "image_url.done", "image_url": address + "/chart.png"}
    more = [event async for event in client.streaming_response_stateful(user("And here?", picture))]
    models = await client.list_models()
    shown = [event for event in events if event["type"] == "event"]
    return {"events": without_times(shown), "more": without_times(more), "models": models}


def demo(cassette: Cassette) -> dict[str, Any]:
    """Several turns with the demo model, chosen by nobody."""
    chat = Conversation(tools=[tide_table], cassette=cassette)
    first = chat.ask("When is high tide in Brest?")
    second = chat.ask("Why?")
    return {"model": chat.model, "messages": without_times([*first.messages, *second.messages])}


def block_sockets() -> None:
    """From here on an attempt to reach anything ends the process's test."""

    def refuse(event: str, arguments: Any) -> None:
        if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
            raise RuntimeError(f"the replay used the network: {event}")

    sys.addaudithook(refuse)


def main(path: str, client_type: str, address: str = "") -> None:
    block_sockets()
    cassette = Cassette(path, "none")
    result = demo(cassette) if client_type == "demo" else asyncio.run(talk(cassette, client_type, address, None))
    print(json.dumps({**result, "unused": cassette.unused}))


if __name__ == "__main__":
    main(*sys.argv[1:])
