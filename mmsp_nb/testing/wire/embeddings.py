"""Embeddings: OpenAI's form and Gemini's two. These answers are JSON documents, not streams."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from mmsp_nb.testing.wire.chat import models, refusal

__all__ = ["gemini_batch", "gemini_single", "models", "openai", "refusal"]

Vectors = Sequence[Sequence[float]]


def openai(
    vectors: Vectors, *, encoding: str = "base64", shuffled: bool = False, prompt_tokens: int | None = 5
) -> dict[str, Any]:
    """``POST /embeddings``. ``shuffled`` reverses ``data``.

    ``encoding``: ``base64`` (little-endian float32) or ``float``.
    """
    data = [
        {"object": "embedding", "index": n, "embedding": _packed(v) if encoding == "base64" else list(v)}
        for n, v in enumerate(vectors)
    ]
    payload: dict[str, Any] = {"object": "list", "data": data[::-1] if shuffled else data, "model": "fake-embedding"}
    if prompt_tokens is not None:
        payload["usage"] = {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens}
    return payload


def gemini_batch(vectors: Vectors, *, characters: int | None = 17) -> dict[str, Any]:
    """``:batchEmbedContents``, all vectors in one answer."""
    payload: dict[str, Any] = {"embeddings": [{"values": list(vector)} for vector in vectors]}
    return payload if characters is None else {**payload, "metadata": {"billableCharacterCount": characters}}


def gemini_single(vector: Sequence[float], *, tokens: int | None = 5) -> dict[str, Any]:
    """``:embedContent``, one vector."""
    statistics = {} if tokens is None else {"statistics": {"tokenCount": tokens}}
    return {"embedding": {"values": list(vector), **statistics}}


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
