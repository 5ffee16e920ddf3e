"""Embeddings, and the detail field of large images."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

from mmsp_nb.testing import Reply, faults
from mmsp_nb.testing.streams import PNG
from mmsp_nb.testing.wire import chat, embeddings, interactions

from ..rig import BASE, Case
from .common import KINDS, ask, item, message, said
from .items import DATA_URL, ROWS

VECTORS = [[0.5, -1.25], [2.0, 0.0]]


def cases() -> Iterator[Case]:
    yield from _openai()
    yield from _gemini("google-official")
    yield from _gemini("google-genai")
    yield from _detail()


def _openai() -> Iterator[Case]:
    name = "openai-embedding"
    client: dict[str, Any] = {"model": "text-embedding-3-small", "api_key": "k-test", "base_url": BASE + "/v1"}
    one = Reply.json(embeddings.openai(VECTORS[:1]))

    def embed(
        what: str, messages: Any = None, config: Any = None, reply: Reply | None = None, do: str = "stream"
    ) -> Case:
        given = [said("One", " more"), said("Two")] if messages is None else messages
        step = {"do": do, "config": config or {}}
        step |= {"messages": given} if do == "stream" else {"message": given[0]}
        return Case(f"{name}/embeddings/{what}", client, [step], [reply or Reply.json(embeddings.openai(VECTORS))])

    yield embed("base64")
    yield embed("floats", reply=Reply.json(embeddings.openai(VECTORS, encoding="float")))
    yield embed("shuffled", reply=Reply.json(embeddings.openai(VECTORS, shuffled=True)))
    yield embed("no-usage", reply=Reply.json(embeddings.openai(VECTORS, prompt_tokens=None)))
    yield embed("dimensions", config={"embedding_config": {"dimensions": 2}})
    yield embed("fast", config={"fast_mode": True})
    ignored = {
        "max_tokens": 1,
        "temperature": 0.3,
        "thinking_level": "high",
        "prompt_caching": "disable",
        "tool_choice": "none",
    }
    yield embed("ignored-config", config=ignored)
    yield embed("empty-text", [said("a"), said("")])
    yield embed("image", [message("user", item("image_url", image_url=DATA_URL))])
    yield embed("call", ROWS["call-and-result"])
    yield embed("unknown-item", ROWS["unknown-item"])
    yield embed("no-items", [message("user")])
    yield embed("refused", reply=faults.reply("status-401", "chat"))
    yield embed("html", reply=faults.reply("html", "chat"))
    yield embed("stateful", do="turn", reply=one)
    named = {**client, "client_type": "openai-official"}
    step = {"do": "stream", "messages": [said("x")]}
    yield Case(f"{name}/clients/official-by-id", named, [step], [one])
    listing = Reply.json(chat.models(["text-embedding-x", "gpt-1", "o1"]))
    yield Case(f"{name}/models/family", client, [{"do": "models"}], [listing])
    two = [{"do": "turn", "message": said("Q1")}, {"do": "turn", "message": said("Q2")}]
    yield Case(f"{name}/embeddings/replay-is-refused", client, two, [one, one])


def _gemini(name: str) -> Iterator[Case]:
    kind = KINDS[name]
    batch = name == "google-official"

    def embed(what: str, messages: Any = None, config: Any = None, replies: list[Reply] | None = None) -> Case:
        given = [said("One", "more"), said("Two")] if messages is None else messages
        if replies is None:
            replies = [Reply.json(embeddings.gemini_batch(VECTORS[: len(given)]))]
            if not batch:
                replies = [Reply.json(embeddings.gemini_batch([v])) for v in VECTORS[: len(given)]]
        return ask(kind, f"embeddings/{what}", given, config, model="gemini-embedding-2", replies=replies)

    yield embed("two-messages")
    yield embed("dimensions", config={"embedding_config": {"dimensions": 2}})
    yield embed("any-config", config={"temperature": 0.3, "fast_mode": True, "prompt_caching": "disable"})
    yield embed("image", [message("user", item("text", text="a"), item("image_url", image_url=DATA_URL))])
    yield embed("inline-data", [message("user", item("inline_data", data=PNG, mime_type="image/png"))])
    yield embed("thinking", ROWS["thinking-unsigned"])
    yield embed("refused", replies=[Reply.json(interactions.refusal(401, "no", "unauthenticated"), 401)])


def _detail() -> Iterator[Case]:
    sizes = {
        "small": (100, 100),
        "edge": (32 * 150, 32 * 200),
        "over": (32 * 150 + 1, 32 * 200),
        "huge": (100_000, 70_000),
    }
    for name in ("openai-official", "openai-responses", "openai-chat", "openai-chat-vllm-adapter", "zai-official"):
        kind = KINDS[name]
        model = "glm-5.3-flash-gpt-5.6" if name == "zai-official" else "GPT-5.6-mini"
        for what, size in sizes.items():
            for form, header in (("png", _png), ("gif", _gif), ("jpeg", _jpeg), ("webp", _webp)):
                if form != "png" and what not in ("over", "small"):
                    continue
                data = base64.b64encode(header(*size)).decode()
                items = [item("text", text="Look"), item("image_url", image_url=f"data:image/{form};BASE64,{data}")]
                yield ask(kind, f"detail/{form}-{what}", [message("user", *items)], model=model)
        yield ask(kind, "detail/remote", ROWS["user-image-remote"], model=model)


def _png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06\0\0\0"


def _gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def _jpeg(width: int, height: int) -> bytes:
    return b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + b"\0" * 9


def _webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + size
