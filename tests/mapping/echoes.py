"""A provider that answers each row with its own prompt, and counts how often it was asked what."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from mmsp_nb import AutoLLMClient
from mmsp_nb.testing import FakeProvider, Reply, parts, wire

USAGE = parts.Usage(cached=0, prompt=7, thoughts=0, response=3)


class Echo:
    """Answers ``x`` with ``<x>``, unless `rules` say otherwise: functions of the prompt that return a reply or None."""

    def __init__(self) -> None:
        self.provider = FakeProvider().when("/completions", self.answer)
        self.rules: list[Callable[[str], Reply | None]] = []
        self.asked: Counter[str] = Counter()
        self.order: list[str] = []
        self.lock = threading.Lock()

    def answer(self, request: Any) -> Reply:
        prompt = said(request.body["messages"][-1])
        with self.lock:
            self.asked[prompt] += 1
            self.order.append(prompt)
        for rule in self.rules:
            if (reply := rule(prompt)) is not None:
                return reply
        return text(f"<{prompt}>")

    def client(self, **options: Any) -> AutoLLMClient:
        return AutoLLMClient("any", "key", self.provider.url("/v1"), "openai-chat", **options)


def said(message: Any) -> str:
    """The text of a message on the wire."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "[picture]") for part in content)


def text(*pieces: str, **options: Any) -> Reply:
    return Reply.stream(wire.chat.frames([parts.text(*pieces)], usage=USAGE, **options))


def refusal(status: int, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply.json({"error": {"message": "no", "code": "refused"}}, status, named)
