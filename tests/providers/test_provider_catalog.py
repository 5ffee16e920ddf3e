"""The list of known models."""

from __future__ import annotations

from collections import Counter

import pytest

from mmsp_nb.protocol.errors import UnsupportedParameterError
from mmsp_nb.providers import catalog
from mmsp_nb.providers.routing import resolve
from mmsp_nb.providers.vendors import VENDORS

ROWS = {
    "Google Gemini API": 12,
    "Anthropic": 9,
    "OpenAI": 8,
    "MiniMax": 2,
    "Z.AI": 4,
    "Moonshot": 4,
    "DeepSeek": 4,
    "OpenRouter": 37,
    "SiliconFlow": 13,
    "Google Vertex AI": 6,
    "Amazon Bedrock": 9,
    "TokenDance": 16,
    "TokenDance (Messages)": 1,
}


def test_catalog_holds_every_model_of_every_platform() -> None:
    assert Counter(row.platform for row in catalog.models()) == ROWS
    assert list(catalog.platforms()) == list(ROWS)
    assert len({(row.platform, row.model) for row in catalog.models()}) == sum(ROWS.values()) == 125


def test_every_row_makes_a_route() -> None:
    for row in catalog.models():
        assert row.client in VENDORS
        key = "A,B" if row.base_url.startswith("bedrock") else "key"
        route = resolve(row.model, key, row.base_url, row.client, environ={})
        assert route.vendor.name in (row.client, "openai-embedding")


def test_facts_of_single_rows() -> None:
    row = catalog.find("gemini-4-argon")
    assert row is not None
    assert (row.platform, row.context_window, row.currency) == ("Google Gemini API", 1048576, "USD")
    assert (row.input_modalities, row.output_modalities) == (("Text", "Image", "Video", "Audio"), ("Text",))
    assert (row.prompt_price, row.response_price, row.cached_price) == (4, 20, 0.2)
    vertex = catalog.find("GEMINI-4-argon", "Google Vertex AI")
    assert vertex is not None
    assert (vertex.client, vertex.model) == ("google-genai", "gemini-4-argon")
    assert catalog.find("gemini-4-argon", "https://AIplatform.googleapis.com/") == vertex
    speech = catalog.find("gemini-3.8-flash-tts")
    assert speech is not None
    assert (speech.context_window, speech.pricing(), speech.output_modalities) == (None, None, ("Audio",))
    assert catalog.find("gemini-4-argon", "OpenAI") is None
    assert catalog.find("nobody-knows") is None


def test_prices_are_converted_at_the_fixed_rate() -> None:
    kimi = catalog.find("kimi-k2.6")
    assert kimi is not None
    assert kimi.pricing() == {
        "currency": "CNY",
        "prompt_tokens": 6.5,
        "thoughts_tokens": 27,
        "response_tokens": 27,
        "cached_tokens": 1.1,
    }
    dollars = kimi.pricing("USD")
    assert dollars is not None
    assert (dollars["prompt_tokens"], dollars["cached_tokens"]) == (0.928571, 0.157143)
    opus = catalog.find("claude-opus-5")
    assert opus is not None
    yuan = opus.pricing("CNY")
    assert yuan is not None
    assert (yuan["currency"], yuan["prompt_tokens"]) == ("CNY", 35)
    free = catalog.find("minimax/minimax-m3.1-flash:free")
    assert free is not None
    assert free.pricing() == {"currency": "USD", "prompt_tokens": 0, "thoughts_tokens": 0, "response_tokens": 0}


def test_search_wants_every_word() -> None:
    found = catalog.search("claude opus bedrock")
    assert [row.model for row in found] == [
        "global.anthropic.claude-opus-5-5",
        "global.anthropic.claude-opus-5",
        "global.anthropic.claude-opus-4-8",
    ]
    assert catalog.search("no such model") == []


def test_plain_list_has_the_documented_shape_and_fresh_copies() -> None:
    listed = catalog.list_supported_models()
    assert len(listed) == 125
    assert listed[0] == {
        "model": "gemini-4-argon",
        "base_url": "https://generativelanguage.googleapis.com",
        "client": "google-official",
        "input_modalities": ["Text", "Image", "Video", "Audio"],
        "output_modalities": ["Text"],
        "context_window": 1048576,
        "pricing": {
            "currency": "USD",
            "prompt_tokens": 4,
            "thoughts_tokens": 20,
            "response_tokens": 20,
            "cached_tokens": 0.2,
        },
    }
    speech = next(row for row in listed if row["model"] == "gemini-3.8-flash-tts")
    assert "pricing" not in speech
    assert "context_window" not in speech
    listed[0]["input_modalities"].clear()
    assert catalog.list_supported_models("CNY")[0]["input_modalities"]
    with pytest.raises(UnsupportedParameterError, match="currency"):
        catalog.list_supported_models("EUR")
