"""Embeddings in the OpenAI and the Gemini form. The vectors are made from the words: alike texts lie close."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from .base import mapping, need, records
from .generate import parts_of, pick
from .neutral import BadRequest, Text
from .pieces import count

DIMENSIONS = 64
"""The length of a vector when the request names none."""

_LARGEST = 4096


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A unit vector for ``text``: each word and each three letters of it add to a few coordinates.

    Texts that share words or stems are near each other, which is enough to show what embeddings are for.
    """
    values = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [text]:
        grams = [word, *(f" {word} "[at : at + 3] for at in range(len(word)))]
        for gram in grams:
            seed = hashlib.sha256(gram.encode("utf-8", "replace")).digest()
            weight = 2.0 if gram == word else 1.0
            for at in range(0, 12, 3):
                place = int.from_bytes(seed[at : at + 2], "big") % dimensions
                values[place] += weight if seed[at + 2] & 1 else -weight
    norm = math.sqrt(sum(value * value for value in values)) or 1.0
    return [struct.unpack("<f", struct.pack("<f", value / norm))[0] for value in values]


def _dimensions(value: Any) -> int:
    if value is None:
        return DIMENSIONS
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
        raise BadRequest(f"Invalid value for 'dimensions': must be between 1 and {_LARGEST}.", param="dimensions")
    return value


def openai(body: Mapping[str, Any]) -> dict[str, Any]:
    """``POST /v1/embeddings``: one vector for each input, as floats or as base64 of little-endian float32."""
    model = need(body, "model", str, "you must provide a model parameter")
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise BadRequest("'input' must be text or a list of texts, none of them empty.", param="input")
    size = _dimensions(body.get("dimensions"))
    data: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        values: Any = vector(text, size)
        if body.get("encoding_format") == "base64":
            values = base64.b64encode(struct.pack(f"<{size}f", *values)).decode()
        data.append({"object": "embedding", "index": index, "embedding": values})
    tokens = sum(map(count, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _embed(request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    content = need(request, "content", Mapping, "* EmbedContentRequest.content: content is not specified")
    text = "\n".join(part.text for part in parts_of(content) if isinstance(part, Text))
    size = pick(request, "outputDimensionality", "output_dimensionality")
    return {"values": vector(text, _dimensions(size))}, text


def gemini(body: Mapping[str, Any], batch: bool) -> dict[str, Any]:
    """``:embedContent`` and ``:batchEmbedContents``."""
    if not batch:
        embedding, text = _embed(body)
        return {"embedding": embedding, "metadata": {"billableCharacterCount": len(text)}}
    requests = need(body, "requests", list, "* BatchEmbedContentsRequest.requests: requests is not specified")
    made = [_embed(mapping(request)) for request in records(requests)]
    return {
        "embeddings": [embedding for embedding, _ in made],
        "metadata": {"billableCharacterCount": sum(len(text) for _, text in made)},
    }
