"""How full the context window is before anything is sent.

Token counts come from the last answer, which says what its request took; only what is newer is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.items import Item, UniMessage, UsageMetadata

__all__ = ["Gauge", "estimate", "guess", "measure", "window"]

IMAGE = 1_000
"""Tokens that a picture is taken to be."""

AUDIO = 32
"""Tokens for a second of sound, at 48,000 bytes a second."""


@dataclass(frozen=True)
class Gauge:
    """What the next request would carry.

    Attributes:
        tokens: Its size. ``exact`` tokens of it were counted by the provider, the others are estimated.
        window: The model's context window in tokens; None when it is not known.
    """

    tokens: int
    exact: int
    window: int | None

    @property
    def share(self) -> float | None:
        """The part of the window that it fills, from 0; None when the window is not known."""
        return None if not self.window else self.tokens / self.window

    def __str__(self) -> str:
        about = "" if self.exact == self.tokens else "about "
        if self.window is None:
            return f"{about}{self.tokens:,} tokens"
        return f"{about}{self.tokens:,} of {self.window:,} tokens ({self.tokens / self.window:.1%})"


def window(client: Any) -> int | None:
    """The context window of a client's model, from the catalogue."""
    from mmsp_nb.providers import catalog

    model, base_url = getattr(client, "model", None), getattr(client, "base_url", None)
    if not isinstance(model, str):
        return None
    found = (catalog.find(model, base_url) if isinstance(base_url, str) else None) or catalog.find(model)
    return None if found is None else found.context_window


def measure(messages: list[UniMessage], config: Mapping[str, Any], client: Any, *, counted: bool = True) -> Gauge:
    """The size of a request with ``messages``.

    counted: whether the usage that the answers report still says what their history takes; not after some of it
        was hidden.
    """
    exact, rest = 0, list(messages)
    if counted:
        for index in range(len(messages) - 1, -1, -1):
            total = tokens.totals(messages[index].get("usage_metadata")).total
            if total:
                exact, rest = total, messages[index + 1 :]
                break
    guess = sum(estimate(message) for message in rest)
    if not exact:
        guess += _text(str(config.get("system_prompt") or ""))
    return Gauge(exact + guess, exact, window(client))


def guess(
    before: list[UniMessage], asking: UniMessage, items: list[Item], config: Mapping[str, Any], client: Any
) -> UsageMetadata:
    """About what a request took that was cut off before its usage came.

    Args:
        before, asking: What was sent: the history, and the message after it.
        items: What had come, cut off or not.
        config, client: As for `measure`.
    """
    thoughts = sum(estimate(item) for item in items if item["type"].startswith(("thinking", "inline_thinking")))
    return {
        "cached_tokens": None,
        "prompt_tokens": measure([*before, asking], config, client).tokens,
        "thoughts_tokens": thoughts or None,
        "response_tokens": sum(map(estimate, items)) - thoughts,
    }


def estimate(value: Any) -> int:
    """Tokens that a message, an item or a text is likely to be; good to a fifth or so for prose."""
    if isinstance(value, str):
        return _text(value)
    if "content_items" in value:
        return 4 + sum(estimate(item) for item in value["content_items"])
    kind = value["type"].partition(".")[0]
    if kind in ("text", "thinking"):
        return _text(value[kind])
    if kind == "tool_call":
        return 8 + _text(value["name"]) + _text(str(value["arguments"]))
    if kind == "tool_result":
        return 8 + _text(value["text"]) + IMAGE * len(value.get("images") or ())
    if kind == "image_url":
        return IMAGE
    if kind in ("inline_data", "inline_thinking"):
        image = value["mime_type"].startswith("image/")
        return IMAGE if image else AUDIO * len(value["data"]) // 48_000
    return 0


def _text(text: str) -> int:
    """Four ASCII characters a token, and one of any other script's for a token and a bit."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return (ascii_only + 3) // 4 + (len(text) - ascii_only) * 3 // 4
