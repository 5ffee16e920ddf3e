"""The server's side of every wire format: which path is which, requests in, answers out. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from . import chat, generate, interactions, messages, mmsp, responses
from .base import Encoder, Wire
from .neutral import CREATED

__all__ = ["ENDPOINTS", "Encoder", "Target", "Wire", "guess", "models", "target"]

ENDPOINTS = {
    "/chat/completions": "OpenAI Chat Completions",
    "/responses": "OpenAI Responses",
    "/messages": "Anthropic Messages",
    "/interactions": "Gemini Interactions",
    "/models/ID:streamGenerateContent": "Gemini generateContent",
    "/stream": "MMSP",
    "/embeddings": "OpenAI embeddings",
    "/models/ID:batchEmbedContents": "Gemini embeddings",
    "/models": "model listings",
}
"""The paths that are served, below ``/v1``, with what they speak."""

_WIRES: dict[str, Wire] = {
    "chat/completions": chat,
    "responses": responses,
    "messages": messages,
    "interactions": interactions,
    "stream": mmsp,
}
_PATH = re.compile(r"^(?:/v1(?:beta\d?)?|/api/paas/v4)?/(?P<rest>.+?)/?$")
_METHOD = re.compile(r"^(?:models|tunedModels)/(?P<model>[^:]+(?::[^:]+)*):(?P<verb>\w+)$")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is for. ``kind``: "answer", "embeddings", "gemini-embeddings" (``batch``), "models" or "model"."""

    kind: str
    wire: Wire
    model: str = ""
    stream: bool | None = None
    batch: bool = False


def guess(headers: Mapping[str, str]) -> Wire:
    """The vendor a client takes us for, by the headers it sends; ``headers`` has lower-case names."""
    if "anthropic-version" in headers:
        return messages
    return generate if "x-goog-api-key" in headers or "x-goog-api-client" in headers else chat


def target(method: str, path: str, headers: Mapping[str, str]) -> Target | None:
    """Where ``method path`` leads, or None. The prefix may be ``/v1``, ``/v1beta``, that of Z.AI, or nothing."""
    found = _PATH.match(path)
    if not found:
        return None
    rest = unquote(found["rest"])
    if method == "GET":
        if rest == "models":
            return Target("models", guess(headers))
        return Target("model", guess(headers), rest[7:]) if re.match(r"models/[^:]+(:[^:]+)*$", rest) else None
    if method != "POST":
        return None
    if rest in _WIRES:
        return Target("answer", _WIRES[rest])
    if rest == "embeddings":
        return Target("embeddings", chat)
    if not (call := _METHOD.match(rest)):
        return None
    verbs = {
        "streamGenerateContent": Target("answer", generate, call["model"], True),
        "generateContent": Target("answer", generate, call["model"], False),
        "embedContent": Target("gemini-embeddings", generate, call["model"]),
        "batchEmbedContents": Target("gemini-embeddings", generate, call["model"], batch=True),
    }
    return verbs.get(call["verb"])


def models(wire: Wire, ids: Sequence[str], query: Mapping[str, str], owner: str) -> dict[str, Any]:
    """The listing of ``ids`` in the form of a vendor, in pages where the vendor has pages."""
    if wire is generate:
        start = int(query.get("pageToken") or 0) if (query.get("pageToken") or "0").isdigit() else 0
        size = _size(query.get("pageSize"), 50)
        page = {"models": [_google(ident) for ident in ids[start : start + size]]}
        return page | ({"nextPageToken": str(start + size)} if start + size < len(ids) else {})
    if wire is messages:
        after = query.get("after_id")
        start = ids.index(after) + 1 if after in ids else 0
        shown = ids[start : start + _size(query.get("limit"), 20)]
        entries = [_anthropic(ident) for ident in shown]
        more = start + len(shown) < len(ids)
        ends = {"first_id": shown[0] if shown else None, "last_id": shown[-1] if shown else None}
        return {"data": entries, "has_more": more, **ends}
    return {"object": "list", "data": [model(wire, ident, owner) for ident in ids]}


def model(wire: Wire, ident: str, owner: str) -> dict[str, Any]:
    """The entry of one model."""
    if wire is generate:
        return _google(ident)
    if wire is messages:
        return _anthropic(ident)
    return {"id": ident, "object": "model", "created": CREATED, "owned_by": owner}


def _size(value: str | None, default: int) -> int:
    return min(max(int(value), 1), 1000) if value and value.isdigit() else default


def _anthropic(ident: str) -> dict[str, Any]:
    return {"type": "model", "id": ident, "display_name": ident, "created_at": "2026-01-01T00:00:00Z"}


def _google(ident: str) -> dict[str, Any]:
    return {
        "name": f"models/{ident}",
        "displayName": ident,
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "embedContent"],
    }
