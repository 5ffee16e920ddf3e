"""Dialect E: embeddings, in OpenAI's form and in Gemini's. One vector for each message."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Any

from mmsp_nb.protocol.errors import ResponseFormatError
from mmsp_nb.protocol.items import UniConfig, UniMessage
from mmsp_nb.providers import google, mapping
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past
from mmsp_nb.providers.errors import stream_error
from mmsp_nb.providers.mapping import Draft, models_request, parse_models
from mmsp_nb.providers.stream import counted, finished, usage
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {})
    form = draft.rule("embedding")
    draft.apply({"fast_mode": mapping.set_fast_mode} if form == "openai" else {})
    dimensions = draft.config.get("embedding_config", {}).get("dimensions")
    if form == "openai":
        size = {} if dimensions is None else {"dimensions": dimensions}
        inputs = [_text(draft, index, message) for index, message in enumerate(messages)]
        draft.body = {"model": model, "input": inputs, "encoding_format": "base64", **size}
        return [draft.request("/embeddings", framing="json")]
    size = {} if dimensions is None else {"outputDimensionality": dimensions}
    wanted = [{"content": _content(draft, index, message), **size} for index, message in enumerate(messages)]
    bodies: list[dict[str, Any]] = wanted
    if form != "vertex":
        name = model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
        rows = [{"model": name, **row} for row in wanted]
        bodies = [{"requests": rows}] if form == "batch" else [{"requests": [row]} for row in rows]
    requests = []
    for draft.body in bodies:
        path = google.model_path(draft, "embedContent" if form == "vertex" else "batchEmbedContents")
        requests.append(draft.request(path, framing="json"))
    return requests


def _text(draft: Draft, index: int, message: UniMessage) -> str:
    for item in message["content_items"]:
        if item.get("type") != "text.done":
            raise draft.unsupported(item)
    text = "".join(item["text"] for item in message["content_items"])
    if not text:
        raise draft.nothing_to_send(index)
    return text


def _content(draft: Draft, index: int, message: UniMessage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for item in message["content_items"]:
        if draft.maker({"text.done": "text", "image_url.done": "media", "inline_data.done": "media"}, item) == "text":
            parts.append({"text": item["text"]})
        else:
            mime_type, data = google.media(draft, item, url_safe=True)
            parts.append({"inline_data": {"mime_type": mime_type, "data": data}})
    if not parts:
        raise draft.nothing_to_send(index)
    return {"role": "user" if message["role"] == "user" else "model", "parts": parts}


class EmbeddingsDecoder:
    """JSON answers to vectors. With the requests at hand, a missing vector is an error, not a shift."""

    over = False  # it is one document

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        self._client = vendor.client
        self._expected = [_count(request.body or {}) for request in requests]
        self._tokens: int | None = None

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if event.get("error"):
            raise stream_error(self._client, event)
        rows = event.get("data")
        if isinstance(rows, list):
            rows = sorted(rows, key=lambda row: row.get("index") or 0)
            vectors = [self._vector(row.get("embedding")) for row in rows]
            tokens = counted(event.get("usage"), "prompt_tokens")
        else:
            rows = event.get("embeddings") or ([event["embedding"]] if event.get("embedding") else [])
            vectors = [self._vector(row.get("values")) for row in rows]
            tokens = _google_tokens(event, rows)
        expected = self._expected.pop(0) if self._expected else len(vectors)
        if len(vectors) != expected:
            message = f"{self._client} asked for {expected} embeddings and received {len(vectors)}"
            raise ResponseFormatError(message, client=self._client)
        if tokens is not None:
            self._tokens = (self._tokens or 0) + tokens
        return [{"type": "embedding.delta", "embedding": vector} for vector in vectors]

    def finish(self) -> Sequence[Raw]:
        return usage(None, self._tokens, None, None), finished({"stop": "stop"}, "stop")

    def _vector(self, value: Any) -> list[float]:
        if not isinstance(value, str):
            return list(value or ())
        try:
            data = base64.b64decode(value, validate=True)
            return list(struct.unpack(f"<{len(data) // 4}f", data))
        except (binascii.Error, struct.error):
            raise ResponseFormatError(
                f"{self._client} received an embedding that is none", client=self._client
            ) from None


def _google_tokens(event: dict[str, Any], rows: list[dict[str, Any]]) -> int | None:
    counts = [counted(row.get("statistics"), "tokenCount") for row in rows]
    known = [count for count in counts if count is not None]
    # Google bills characters where it counts no tokens
    return sum(known) if known else counted(event.get("metadata"), "billableCharacterCount")


def _count(body: dict[str, Any]) -> int:
    return len(body.get("input") or body.get("requests") or [body])


decoder = EmbeddingsDecoder
