"""What the case modules share: the client types, short answers, ways to write a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mmsp_nb.testing import Frame, Reply, streams
from mmsp_nb.testing.parts import Part, text

from ..rig import BASE, Case


@dataclass(frozen=True)
class Kind:
    """A client type: its dialect, the path its base URL ends in, and a model it serves."""

    name: str
    dialect: str
    model: str
    base: str = BASE + "/v1"

    def client(self, model: str | None = None, **options: Any) -> dict[str, Any]:
        given = {"model": model or self.model, "api_key": "k-test", "base_url": self.base, "client_type": self.name}
        return {**given, **options}

    def reply(self, *parts: Part, **options: Any) -> Reply:
        """An answer in this client's dialect: these parts, or the text "ok"."""
        return Reply.stream(self.frames(*parts, **options))

    def frames(self, *parts: Part, **options: Any) -> list[Frame | bytes]:
        if self.name == "minimax-official" and "calls_at_end" not in options:
            options["calls_at_end"] = True
        return list(streams.DIALECTS[self.dialect].frames(parts or [text("ok")], **options))


KINDS = {
    kind.name: kind
    for kind in (
        Kind("openai-chat", "chat", "gpt-5.5"),
        Kind("openai-chat-vllm-adapter", "chat", "qwen3.5-9b"),
        Kind("zai-official", "chat", "glm-5.3", BASE + "/api/paas/v4"),
        Kind("moonshot-official", "chat", "kimi-k3"),
        Kind("openai-official", "responses", "gpt-5.5"),
        Kind("openai-responses", "responses", "gpt-5.5"),
        Kind("deepseek-official", "responses", "deepseek-v4-vision", BASE),
        Kind("minimax-official", "responses", "minimax-m3"),
        Kind("anthropic-official", "messages", "claude-opus-5-5", BASE),
        Kind("ant-messages", "messages", "claude-opus-5-5", BASE),
        Kind("google-official", "interactions", "gemini-3.8-flash", BASE),
        Kind("google-genai", "generate_content", "gemini-3.8-flash", BASE),
        Kind("mmsp", "mmsp", "fast"),
    )
}
CHAT = ("openai-chat", "openai-chat-vllm-adapter", "zai-official", "moonshot-official")
RESPONSES = ("openai-official", "openai-responses", "deepseek-official", "minimax-official")
MESSAGES = ("anthropic-official", "ant-messages")
GOOGLE = ("google-official", "google-genai")


def said(*texts: str) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content_items": [{"type": "text.done", "text": t} for t in texts]}


def message(role: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content_items": list(items)}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"{kind}.done", **fields}


def ask(kind: Kind, what: str, messages: Sequence[Any] | None = None, config: Any = None, **options: Any) -> Case:
    """One stateless request, answered with "ok" unless ``replies`` says otherwise.

    ``options``: ``model``, ``replies``, ``env``, ``step`` (more keys of the step), anything else goes to the client.
    """
    replies = options.pop("replies", None)
    env, step = options.pop("env", {}), options.pop("step", {})
    given = [said("Hi")] if messages is None else list(messages)
    steps = [{"do": "stream", "messages": given, "config": config or {}, **step}]
    return Case(
        f"{kind.name}/{what}", kind.client(**options), steps, [kind.reply()] if replies is None else replies, env
    )


def turns(kind: Kind, what: str, replies: Sequence[Reply], *steps: dict[str, Any], **options: Any) -> Case:
    """Several steps on one client."""
    return Case(f"{kind.name}/{what}", kind.client(**options), list(steps), list(replies))


def turn(content: dict[str, Any] | str, config: Any = None, **more: Any) -> dict[str, Any]:
    """A stateful step."""
    given = said(content) if isinstance(content, str) else content
    return {"do": "turn", "message": given, "config": config or {}, **more}
