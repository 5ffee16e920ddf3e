"""Dialect S: the protocol itself, spoken by an MMSP server. What the server sends is handed through."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from mmsp_nb.protocol.errors import IncompleteStreamError, UpstreamError, advised, quoted
from mmsp_nb.protocol.items import UniConfig, UniMessage
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.images import received_bytes
from mmsp_nb.providers.mapping import Draft, models_request, parse_models
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models", "upstream_error"]

_OURS = ("extra_body", "extra_headers")
_LEAVES = frozenset({str, int, float, bool, type(None)})


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    # everything is the server's to judge, but for the two keys that are about this very request
    forwarded = {key: value for key, value in config.items() if key not in _OURS}
    body = {"model": model, "messages": entries(past, messages, _entry, None), "config": _plain(forwarded)}
    return [Draft(vendor, model, config, body).request("/stream")]


def upstream_error(client: str, status: int | None, payload: Any, message: str = "") -> UpstreamError:
    """The exception for what a server reports: an error frame, or an answer with another status than 200.

    ``payload`` is the parsed JSON, or the text of a body that is none; ``message`` is for people.
    """
    error = payload.get("error") if isinstance(payload, dict) else None
    if not isinstance(error, dict):
        text = error if isinstance(error, str) else payload if isinstance(payload, str) else ""
        error = {"type": "HTTPError" if status else "UpstreamError", "message": text[:200] or f"HTTP {status}"}
    kind, reported = error.get("type"), error.get("status")
    status = status if status is not None else reported if isinstance(reported, int) else None
    message = message or advised(quoted(str(error.get("message") or kind or "unknown error")), status)
    return UpstreamError(message, client=client, status=status, error_type=kind, error=error)


class MmspDecoder:
    """Public events, with the bytes of inline items decoded. Their grammar is the server's business."""

    over = False  # a stop that another event follows was not the end

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        self._client = vendor.client
        self._stopped = False

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if "error" in event:
            raise upstream_error(self._client, None, event)
        items = event.get("content_items") or []
        if not isinstance(items, list) or not all(_is_item(item) for item in items):
            raise ValueError("its content_items are no list of items")
        for item in items:
            if item["type"].startswith(("inline_data.", "inline_thinking.")) and isinstance(item.get("data"), str):
                item["data"] = received_bytes(self._client, item["data"])
        self._stopped = event.get("event_type") == "stop"  # one that more follows was not the end
        return ({"type": "event", "event": event},)

    def finish(self) -> Sequence[Raw]:
        if not self._stopped:
            missing = ("usage_metadata", "finish_reason")
            message = f"{self._client}'s stream ended without a stop event; it was probably cut. Ask again"
            raise IncompleteStreamError(message, client=self._client, missing=missing)
        return ()


def _entry(index: int, message: Any, state: None) -> list[Any]:
    """The message itself; only ``origin`` is between the client and its history."""
    if isinstance(message, Mapping) and "origin" in message:
        message = {key: value for key, value in message.items() if key != "origin"}
    return [_plain(message)]


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str)


def _plain(value: Any) -> Any:
    """``value`` with all bytes in it as base64 text."""
    kind = value.__class__
    if kind in _LEAVES:
        return value
    if kind is dict:
        return {key: part if part.__class__ in _LEAVES else _plain(part) for key, part in value.items()}
    if kind is list:
        return [part if part.__class__ in _LEAVES else _plain(part) for part in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


decoder = MmspDecoder
