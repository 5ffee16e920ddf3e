"""What the decoders share: dispatch by event type, raw values, token arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from mmsp_nb.protocol.usage import count
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.errors import stream_error, unknown_event
from mmsp_nb.providers.mapping import json_text
from mmsp_nb.providers.vendors import Vendor

Event = dict[str, Any]
Handlers = Mapping[Any, Callable[[Any, Event], Sequence[Raw]]]


class EventDecoder:
    """A decoder for streams whose events say their type: one look-up, then a small method."""

    type_key: ClassVar[str] = "type"
    handlers: Handlers = {}

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        self.vendor = vendor
        self.client = vendor.client
        self.over = False

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        handler = self.handlers.get(event.get(self.type_key) or name)
        if handler is not None:
            return handler(self, event)
        if event.get("error"):
            raise stream_error(self.client, event)
        unknown_event(self.client, event)
        return ()

    def finish(self) -> Sequence[Raw]:
        return ()

    def nothing(self, event: Event) -> Sequence[Raw]:
        return ()

    def end(self, event: Event) -> Sequence[Raw]:
        self.over = True
        return ()

    def failed(self, event: Event) -> Sequence[Raw]:
        raise stream_error(self.client, event)


def text_delta(kind: str, text: str, item_id: str | None, kept: Mapping[str, Any] | None = None) -> Raw:
    """A ``text.delta`` or ``thinking.delta``; ``kept`` is fidelity, of which None values are dropped."""
    fidelity: dict[str, Any] = {"item_id": item_id}
    if kept:
        fidelity.update((key, value) for key, value in kept.items() if value is not None)
    return {"type": kind + ".delta", kind: text, "fidelity": fidelity}


def data_delta(kind: str, data: bytes, mime_type: str, item_id: str | None, signature: Any = None) -> Raw:
    """An ``inline_data.delta`` or ``inline_thinking.delta``."""
    fidelity = {"item_id": item_id} if signature is None else {"item_id": item_id, "signature": signature}
    return {"type": kind + ".delta", "data": data, "mime_type": mime_type, "fidelity": fidelity}


def call_delta(name: str | None, arguments: Any, call_id: str | None, item_id: str, signature: Any = None) -> Raw:
    """A ``tool_call.delta``: opening a call when there is a name, else a piece of its arguments."""
    fidelity = {"item_id": item_id} if signature is None else {"item_id": item_id, "signature": signature}
    return {
        "type": "tool_call.delta",
        "name": name or "",
        "arguments": json_text(arguments),
        "tool_call_id": call_id or "",
        "fidelity": fidelity,
    }


def usage(cached: int | None, prompt: int | None, thoughts: int | None, response: int | None) -> Raw:
    return {
        "type": "usage",
        "cached_tokens": cached,
        "prompt_tokens": prompt,
        "thoughts_tokens": thoughts,
        "response_tokens": response,
    }


def without(total: int | None, part: int | None) -> int | None:
    """``total`` without ``part``; all of ``total`` at a gateway that counts ``part`` outside of it."""
    if total is None or part is None:
        return total
    return total - part if total >= part else total


def finished(reasons: Mapping[str, str], reason: str) -> Raw:
    return {"type": "finish", "finish_reason": reasons.get(reason, "unknown")}


def counted(usage: Any, field: str) -> int | None:
    """A count out of a usage object; None where it, or the object, is something else."""
    return count(usage.get(field)) if isinstance(usage, dict) else None


def detail(usage: Any, block: str, field: str) -> int | None:
    """A count out of one of the detail blocks of a usage object."""
    return counted(usage.get(block), field) if isinstance(usage, dict) else None
