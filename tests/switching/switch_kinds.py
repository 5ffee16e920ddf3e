"""The client types at work: a model, ids as its vendor makes them, and an exchange with everything in it.

What a vendor signs or encrypts is written so that it can be found in any request: `opaque` values begin alike.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmsp_nb import AutoLLMClient
from mmsp_nb.testing import FakeProvider, Reply, streams
from mmsp_nb.testing.parts import Part, call, text, thinking
from mmsp_nb.transport.http import Transport

PNG_URL = "data:image/png;base64," + base64.b64encode(streams.PNG).decode()
ENTRIES = {
    "responses": "input",
    "chat": "messages",
    "messages": "messages",
    "interactions": "input",
    "generate_content": "contents",
    "mmsp": "messages",
}
"""Dialect -> where the history is in a request's body."""

_OPAQUE = re.compile(r"b3BhcXVl[\w+/=-]*")  # "opaque" in base64


@dataclass(frozen=True)
class Kind:
    """A client type, a model that reads images, and how its vendor names calls."""

    name: str
    dialect: str
    model: str
    call_id: Callable[[int], str]
    path: str = "/v1"

    def client(self, provider: FakeProvider, model: str | None = None) -> AutoLLMClient:
        url = provider.url(self.path)
        return AutoLLMClient(model or self.model, "key", url, self.name, transport=Transport(retries=0))

    def opaque(self, what: str) -> str:
        """Something that only this vendor can read."""
        return base64.b64encode(f"opaque {self.name} {what}".encode().ljust(60)).decode()

    def asks(self, tag: str) -> Reply:
        """Thinking, and two parallel calls of one tool."""
        ids = [self.call_id(hash_of(tag) + n) for n in range(2)]
        ports = ({"port": "Brest"}, {"port": "Saint-Malo"})
        calls = [
            call("tide_table", arguments, id=call_id, signature=self._signed(f"{tag} call", "google"))
            for call_id, arguments in zip(ids, ports, strict=True)
        ]
        return self._reply(*self._thoughts(tag), *calls)

    def says(self, tag: str) -> Reply:
        """Thinking, and a text."""
        more = {"phase": "final_answer"} if self.name in ("openai-official", "openai-responses") else {}
        answer = text(f"{tag}: high", " tide.", signature=self._signed(f"{tag} text", "google"), **more)
        return self._reply(*self._thoughts(tag + " answer"), answer)

    def _thoughts(self, tag: str) -> list[Part]:
        thought = f"Thoughts of {tag}."
        if self.name in ("openai-official", "openai-responses"):
            encrypted = self.opaque(tag)
            hidden = thinking(encrypted=self.opaque(tag + " hidden"))
            return [thinking(thought, channel="summary", encrypted=encrypted), hidden]
        if self.dialect == "messages":
            redacted = thinking(redacted=True, signature=self.opaque(tag + " redacted"))
            return [thinking(thought, signature=self.opaque(tag)), redacted]
        if self.name == "openai-chat":
            return [thinking(thought, encrypted=self.opaque(tag))]
        return [thinking(thought, signature=self._signed(tag, "google", "mmsp"))]

    def _signed(self, what: str, *families: str) -> str | None:
        return self.opaque(what) if self.name.startswith(families) else None

    def _reply(self, *parts: Part) -> Reply:
        options: dict[str, Any] = {
            "minimax-official": {"calls_at_end": True},
            "openai-chat": {"reasoning": "details"},
            "openai-chat-vllm-adapter": {"reasoning": "reasoning"},
            "google-genai": {"call_ids": False},
        }.get(self.name, {})
        return Reply.stream(streams.DIALECTS[self.dialect].frames(list(parts), **options))


def hash_of(tag: str) -> int:
    return sum(map(ord, tag)) * 10


KINDS = {
    kind.name: kind
    for kind in (
        Kind("openai-official", "responses", "gpt-5.5", lambda n: f"call_{n:024d}"),
        Kind("openai-responses", "responses", "gpt-5.5", lambda n: f"fc_{n:061d}"),
        Kind("deepseek-official", "responses", "deepseek-v5", lambda n: f"call_00_{n}", ""),
        Kind("minimax-official", "responses", "minimax-m3", lambda n: f"call_function_{n}_1"),
        Kind("openai-chat", "chat", "gpt-5.5", lambda n: f"functions.tide_table:{n}"),
        Kind("openai-chat-vllm-adapter", "chat", "qwen3.5-9b", lambda n: f"chatcmpl-tool-{n:032x}"),
        Kind("zai-official", "chat", "glm-5.3-flash", lambda n: f"call_-{n}", "/api/paas/v4"),
        Kind("moonshot-official", "chat", "kimi-k3", lambda n: f"tide_table:{n}"),
        Kind("anthropic-official", "messages", "claude-opus-5-5", lambda n: f"toolu_01{n:020d}", ""),
        Kind("ant-messages", "messages", "claude-opus-5-5", lambda n: f"toolu_vrtx_01{n:020d}", ""),
        # where calls have no ids, their name stands for it
        Kind("google-official", "interactions", "gemini-3.8-flash", lambda n: "tide_table", ""),
        Kind("google-genai", "generate_content", "gemini-3.8-flash", lambda n: "tide_table", ""),
        Kind("mmsp", "mmsp", "fast", lambda n: f"server/call#{n} " + "ü" * 60),
    )
}


def user(*items: Any) -> dict[str, Any]:
    texts = [{"type": "text.done", "text": item} if isinstance(item, str) else item for item in items]
    return {"role": "user", "content_items": texts}


def picture() -> dict[str, Any]:
    return {"type": "image_url.done", "image_url": PNG_URL}


async def send(client: AutoLLMClient, message: dict[str, Any], provider: FakeProvider, reply: Reply) -> Any:
    """Send a message statefully; returns the body of the request."""
    provider.add(reply)
    async for _ in client.streaming_response_stateful(message):
        pass
    return provider.last.body


async def exchange(client: AutoLLMClient, kind: Kind, provider: FakeProvider, tag: str) -> list[Any]:
    """A question with an image, two calls, their results (one with an image), a final text. Returns the bodies."""
    first = await send(client, user(f"{tag}: tides?", picture()), provider, kind.asks(tag))
    calls = [item for item in client.get_history()[-1]["content_items"] if item["type"] == "tool_call.done"]
    assert [call["arguments"]["port"] for call in calls] == ["Brest", "Saint-Malo"]
    results: list[dict[str, Any]] = [
        {"type": "tool_result.done", "text": f"{tag} {call['arguments']['port']}", "tool_call_id": call["tool_call_id"]}
        for call in calls
    ]
    results[1]["images"] = [PNG_URL]
    return [first, await send(client, user(*results), provider, kind.says(tag))]


def opaque_in(body: Any) -> set[str]:
    """The opaque values in a request."""
    return set(_OPAQUE.findall(json.dumps(body, default=repr)))


def entries(kind: Kind, body: Any) -> list[Any]:
    """The history in a request, entry by entry."""
    return body[ENTRIES[kind.dialect]]
