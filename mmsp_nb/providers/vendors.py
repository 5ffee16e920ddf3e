"""The vendors as data: one row for each client type, read by its dialect and by routing.

A vendor that differs by a field differs by a rule here, never by code of its own. A rule is a plain
value or a `ByModel`, which picks the value by the model id; `Vendor.rule` resolves both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mmsp_nb.protocol.repairs import Traits
from mmsp_nb.providers.traits import traits_for

__all__ = ["ALIASES", "FAMILIES", "JSON_HEADERS", "VENDORS", "ByModel", "Vendor", "bedrock", "vertex"]

JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}

Auth = Literal["bearer", "x-api-key", "both", "goog", "aws", "vertex"]


@dataclass(frozen=True, slots=True)
class ByModel:
    """A value that depends on the model id: that of the first row with a pattern which the id contains."""

    rows: tuple[tuple[tuple[str, ...], Any], ...]
    default: Any
    fold: bool = False
    """Whether the id is lowercased before it is compared."""

    def __call__(self, model: str) -> Any:
        name = model.lower() if self.fold else model
        for patterns, value in self.rows:
            if any(pattern in name for pattern in patterns):
                return value
        return self.default


@dataclass(frozen=True, slots=True)
class Vendor:
    """One client type: where it lives, how it authenticates, and how it differs within its dialect."""

    name: str
    """The client type, for instance ``"openai-chat"``."""
    client: str
    """The adapter's class name, as in ``error.client``."""
    dialect: str
    """The module of this package that speaks its wire format."""
    api_key_env: str
    base_url_env: str
    default_base_url: str
    auth: Auth = "bearer"
    """The header that carries the key: ``Authorization: Bearer``, ``X-Api-Key``, both of them, or
    ``x-goog-api-key``. With ``aws`` (SigV4) and ``vertex`` (OAuth exchange) the transport makes it."""
    open_server: bool = False
    """A server that usually wants no key; an explicit base URL then never gets the environment's."""
    inline_images: bool = False
    """Remote images must be fetched and put into the messages as data URLs before `build`."""
    rules: Mapping[str, Any] = field(default_factory=dict)

    def rule(self, key: str, model: str, default: Any = None) -> Any:
        """The vendor's rule ``key`` for this model id."""
        value = self.rules.get(key, default)
        return value(model) if isinstance(value, ByModel) else value

    def reads_images(self, model: str) -> bool:
        """Whether this model takes images at all."""
        text_models = self.rules.get("text_models")
        text_only = text_models is not None and text_models.fullmatch(model.rsplit("/", 1)[-1].lower())
        return bool(self.rule("images", model, True)) and not text_only

    def traits(self, model: str) -> Traits:
        """What a history of another vendor must be like to be sent to this model, for `repair`."""
        return traits_for(self, model)


# Thinking levels -----------------------------------------------------------------------------------

_LEVELS = ("none", "low", "medium", "high", "xhigh", "max")


def _levels(efforts: str) -> dict[str, str]:
    """Level -> what the vendor calls it, written in the order of the levels."""
    return dict(zip(_LEVELS, efforts.split(), strict=True))


def _each(efforts: str, make: Any, **first: Any) -> dict[str, Any]:
    """Level -> piece of the request body; ``none`` replaces what ``make`` says for that level."""
    return {level: make(effort) for level, effort in _levels(efforts).items()} | first


_PLAIN = _levels("none low medium high xhigh max")
_ON, _OFF = {"type": "enabled"}, {"type": "disabled"}

_GPT_EFFORT = ByModel(((("gpt-6-luna",), _PLAIN), (("gpt-6",), _PLAIN | {"none": "low"})), _PLAIN)
_M31 = ("m3.1",)
_MINIMAX_EFFORT = ByModel(((_M31, _PLAIN | {"none": "low"}),), _levels("none low medium high high high"), fold=True)


def _zai(effort: str) -> dict[str, Any]:
    return {"thinking": {**_ON, "clear_thinking": False}, "reasoning_effort": effort}


_ZAI_THINKING = ByModel(
    ((("glm-5.3",), _each("low low high high max max", _zai)),),
    _each("none low medium high xhigh max", _zai, none={"thinking": _OFF}),
    fold=True,
)
_K2_THINKING = _each("none low medium high xhigh max", lambda _: {"thinking": {**_ON, "keep": "all"}})
_MOONSHOT_THINKING = ByModel(
    ((("k2.",), _K2_THINKING | {"none": {"thinking": _OFF}}),),
    _each("none low high high max max", lambda effort: {"reasoning_effort": effort}),
    fold=True,
)


def _template(**arguments: Any) -> dict[str, Any]:
    return {"chat_template_kwargs": arguments}


def _deepseek_template(efforts: str) -> dict[str, Any]:
    return _each(efforts, lambda effort: _template(thinking=True, reasoning_effort=effort), none={})


_NO_THINKING = _template(enable_thinking=False)
_QWEN38 = _each("- low medium xhigh xhigh xhigh", lambda e: _template(reasoning_effort=e), none=_NO_THINKING)
_VLLM_THINKING = ByModel(
    (
        (("qwen3.8-flash-next", "qwen3.8-27b"), _QWEN38),
        (("deepseek-v4-flash-vision-exp",), _deepseek_template("- low high high high max")),
        (("deepseek-v4-pro", "deepseek-v4-flash"), _deepseek_template("- high high high high max")),
    ),
    _each("- low medium high xhigh max", lambda _: _template(enable_thinking=True), none=_NO_THINKING),
    fold=True,
)


def _adaptive(effort: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


_CLAUDE = _each("none low medium high xhigh max", _adaptive, none={"thinking": _OFF})
_CLAUDE_THINKING = ByModel(
    (
        (("opus-5-5", "fable-5", "haiku-5-5"), _CLAUDE | {"none": _adaptive("low")}),
        (("sonnet-5-5",), _CLAUDE | {"none": {"thinking": {"type": "between_tools"}}}),
        (("4-6",), _CLAUDE | {"xhigh": _adaptive("high")}),
    ),
    _CLAUDE,
)

_GEMINI_EFFORT = ByModel(
    (
        (("-image",), _levels("minimal minimal high high high high")),
        (("gemini-3-pro",), _levels("low low high high high high")),
        (("-pro", "gemini-3.7", "gemini-3.8", "gemini-4-argon"), _levels("low low medium high high high")),
    ),
    _levels("minimal low medium high high high"),
)

# Other config rules --------------------------------------------------------------------------------

# temperature: (lowest, highest, whether it is sent)
_ANY, _ONLY_ONE, _UNIT, _NEVER = (-math.inf, math.inf, True), (1, 1, False), (0, 1, True), (1, 0, False)

# tool_choice: what is accepted; "one" and "many" are lists of that many names
_ALL = frozenset({"auto", "none", "required", "one", "many"})
_AUTO, _AUTO_NONE = frozenset({"auto"}), frozenset({"auto", "none"})

# prompt_caching: accepted value -> piece of the body
_DEFAULT_CACHE: dict[str, Any] = {"enable": {}}
_CLAUDE_CACHE = {
    "enable": {"cache_control": {"type": "ephemeral"}},
    "enhance": {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    "disable": {},
}
_KIMI_CACHE = _DEFAULT_CACHE | {"enhance": {"prompt_cache_options": {"mode": "implicit", "ttl": "1h"}}}

# fast_mode: piece of the body; None = refused
_PRIORITY = {"service_tier": "priority"}

# The table -----------------------------------------------------------------------------------------

_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
_GOOGLE = ("GEMINI_API_KEY", "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")
_DEEPSEEK = ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "https://api.deepseek.com")
_MINIMAX = ("MINIMAX_API_KEY", "MINIMAX_BASE_URL", "https://api.minimax.io/v1")
_ZAI = ("ZAI_API_KEY", "ZAI_BASE_URL", "https://api.z.ai/api/paas/v4/")
_MOONSHOT = ("MOONSHOT_API_KEY", "MOONSHOT_BASE_URL", "https://api.moonshot.cn/v1")
_VLLM = ("VLLM_API_KEY", "VLLM_BASE_URL", "http://127.0.0.1:8000/v1")
_MMSP = ("MMSP_API_KEY", "MMSP_BASE_URL", "http://127.0.0.1:25752/v1")

_RESPONSES = {
    "temperature": _ANY,
    "tool_choice": _ALL,
    "fast_mode": _PRIORITY,
    "prompt_caching": _DEFAULT_CACHE,
    "summary": "with_level",  # when thinking_summary counts: with_level, always, never
    "reasoning": "fidelity",  # how thinking is replayed: fidelity, content (text only), bare (no summary key)
    "thinking_from": ("content",),  # the kinds of reasoning deltas that are read
}
_OPENAI_RESPONSES = _RESPONSES | {
    "effort": _GPT_EFFORT,
    "phase": True,
    "thinking_from": ("summary", "content"),
    "channels": ("summary",),
    "image_detail": True,
}
_OFFICIAL_RESPONSES = _OPENAI_RESPONSES | {
    "body": {"include": ["reasoning.encrypted_content"]},
    "temperature": _ONLY_ONE,
    "summary": "always",
    "channels": ("summary", "content"),
    "implicit_summary": True,
}
_DEEPSEEK_RESPONSES = _RESPONSES | {
    "effort": _levels("none low high high high max"),
    "temperature": _ONLY_ONE,
    "summary": "always",
    "tool_choice": _AUTO_NONE,
    "fast_mode": None,
    "schema_mode": False,  # only JSON of any form can be asked for
    "text_models": re.compile(r"deepseek-v4-(flash|pro)(-\d{4})?"),
    "reasoning": "content",
}
_MINIMAX_RESPONSES = _RESPONSES | {
    "effort": _MINIMAX_EFFORT,
    "temperature": _UNIT,
    "summary": "never",
    "tool_choice": ByModel(((_M31, _AUTO),), _AUTO_NONE, fold=True),
    "fast_mode": ByModel(((_M31, None),), _PRIORITY, fold=True),
    "reasoning": "bare",
    "whole_calls": True,  # calls are read when they are complete
}
_PLAIN_CHAT = {
    "body": {"stream_options": {"include_usage": True}},
    "max_tokens": "max_completion_tokens",
    "temperature": _ANY,
    "tool_choice": _ALL,
    "fast_mode": _PRIORITY,
    "prompt_caching": _DEFAULT_CACHE,
    "images": True,
}
_CHAT = _PLAIN_CHAT | {
    "reasoning_details": True,
    "empty_reasoning": True,  # a turn with calls and without thinking replays an empty reasoning field
    "generate_ids": True,  # calls without an id get one
    "image_detail": True,
}
_ZAI_CHAT = _PLAIN_CHAT | {
    "body": {"tool_stream": True},
    "max_tokens": "max_tokens",
    "tool_choice": _AUTO,
    "schema_mode": False,
    "fast_mode": None,
    "thinking": _ZAI_THINKING,
    "images": ByModel(((("glm-5.3-flash",), True),), False, fold=True),
}
_K2 = ("k2.",)
_MOONSHOT_CHAT = _PLAIN_CHAT | {
    "temperature": _ONLY_ONE,
    "tool_choice": ByModel(((_K2, _AUTO_NONE),), _AUTO_NONE | {"required"}, fold=True),
    "fast_mode": None,
    "prompt_caching": ByModel(((_K2, _DEFAULT_CACHE),), _KIMI_CACHE, fold=True),
    "thinking": _MOONSHOT_THINKING,
    "trace_id": ByModel(((_K2, "prompt_cache_key"),), None, fold=True),
}
_MESSAGES = {
    "headers": {**JSON_HEADERS, "anthropic-version": "2026-10-21"},
    "models_path": "/v1/models",
    "temperature": _ANY,
    "tool_choice": _ALL - {"many"},
    "fast_mode": {"speed": "fast"},
    "prompt_caching": _DEFAULT_CACHE,
    "thinking": _CLAUDE,
}
_CLAUDE_55 = ("sonnet-5-5", "haiku-5-5", "fable-5-1")
_CLAUDE_MESSAGES = _MESSAGES | {
    "temperature": _ONLY_ONE,
    "top_p": False,
    "tool_choice": ByModel(((("opus-5-5", *_CLAUDE_55), _AUTO_NONE),), _MESSAGES["tool_choice"]),
    "fast_mode": ByModel(((("4-6", *_CLAUDE_55), None),), _MESSAGES["fast_mode"]),
    "prompt_caching": _CLAUDE_CACHE,
    "thinking": _CLAUDE_THINKING,
    "signed_only": True,  # thinking without a signature is not replayed
    "usage": "output",  # the final usage event counts output only
}
_GEMINI = {
    "models_path": "/v1/models",
    "model_path": "/v1/models/",
    "temperature": _NEVER,
    "tool_choice": _ALL,
    "fast_mode": None,
    "prompt_caching": _DEFAULT_CACHE,
    "effort": _GEMINI_EFFORT,
}
_SSE_HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}
_INTERACTIONS = _GEMINI | {"headers": _SSE_HEADERS, "fast_mode": _PRIORITY, "embedding": "batch"}
_GENERATE = _GEMINI | {"headers": {**JSON_HEADERS, "Accept": "*/*"}, "embedding": "each"}
_ADAPTER = _CHAT | {"thinking": _VLLM_THINKING, "keyless": "EMPTY"}
_EMBEDDING = {"embedding": "openai", "fast_mode": None}

# client type, adapter class, dialect, key variable + endpoint variable + endpoint, auth, properties, rules
_TABLE: tuple[tuple[str, str, str, tuple[str, str, str], Auth, str, Mapping[str, Any]], ...] = (
    ("openai-official", "OpenAIOfficialClient", "responses", _OPENAI, "bearer", "", _OFFICIAL_RESPONSES),
    ("openai-responses", "OpenaiResponsesClient", "responses", _OPENAI, "bearer", "", _OPENAI_RESPONSES),
    ("deepseek-official", "DeepSeekOfficialClient", "responses", _DEEPSEEK, "bearer", "", _DEEPSEEK_RESPONSES),
    ("minimax-official", "MiniMaxOfficialClient", "responses", _MINIMAX, "bearer", "", _MINIMAX_RESPONSES),
    ("openai-chat", "OpenaiChatClient", "chat", _OPENAI, "bearer", "inline", _CHAT),
    ("openai-chat-vllm-adapter", "OpenaiChatVllmAdapterClient", "chat", _VLLM, "bearer", "inline open", _ADAPTER),
    ("zai-official", "ZAIOfficialClient", "chat", _ZAI, "bearer", "", _ZAI_CHAT),
    ("moonshot-official", "MoonshotOfficialClient", "chat", _MOONSHOT, "bearer", "inline", _MOONSHOT_CHAT),
    ("anthropic-official", "AnthropicOfficialClient", "messages", _ANTHROPIC, "x-api-key", "", _CLAUDE_MESSAGES),
    ("ant-messages", "AntMessagesClient", "messages", _ANTHROPIC, "both", "", _MESSAGES),
    ("google-official", "GoogleOfficialClient", "interactions", _GOOGLE, "goog", "inline", _INTERACTIONS),
    ("google-genai", "GoogleGenaiClient", "generate_content", _GOOGLE, "goog", "inline", _GENERATE),
    ("openai-embedding", "OpenaiEmbeddingClient", "embeddings", _OPENAI, "bearer", "", _EMBEDDING),
    ("mmsp", "MmspClient", "mmsp", _MMSP, "bearer", "open", {"headers": _SSE_HEADERS}),
)

VENDORS: dict[str, Vendor] = {
    name: Vendor(name, client, dialect, *where, auth, "open" in properties, "inline" in properties, rules)
    for name, client, dialect, where, auth, properties, rules in _TABLE
}
"""Client type -> its row."""

ALIASES = {"openai": "openai-chat", "gemini-official": "google-official", "gemini-generate-content": "google-genai"}
"""Other spellings of client types."""

FAMILIES = {
    "gpt-": "openai-official",
    "text-embedding-": "openai-official",
    "claude-": "anthropic-official",
    "gemini-": "google-official",
    "glm-": "zai-official",
    "kimi-": "moonshot-official",
    "deepseek-": "deepseek-official",
    "minimax-": "minimax-official",
}
"""Prefix of a lowercased model id -> the client type of its official vendor."""


def bedrock(region: str) -> Vendor:
    """``anthropic-official`` over Amazon Bedrock; its rule ``region`` is for the signature."""
    rules = _CLAUDE_MESSAGES | {
        "headers": JSON_HEADERS,
        "region": region,
        "models_path": None,
        "fast_mode": None,
        # there the cache mark sits on a block of the last user message, for this long
        "prompt_caching": {"enable": {}, "enhance": {}, "disable": {}},
        "cache_ttl": {"enable": "5m", "enhance": "1h"},
        "anthropic_version": ByModel(((("4-6",), "bedrock-2023-05-31"),), "2026-10-21"),
    }
    endpoint = f"https://bedrock-runtime.{region}.amazonaws.com"
    row = VENDORS["anthropic-official"]
    return replace(row, auth="aws", inline_images=True, default_base_url=endpoint, rules=rules)


def vertex(project: str) -> Vendor:
    """``google-genai`` over Vertex AI, for the project of a service account."""
    row = VENDORS["google-genai"]
    rules = {
        **row.rules,
        "models_path": "/v1beta1/publishers/google/models",
        "model_path": f"/v1beta1/projects/{project}/locations/global/publishers/google/models/",
        "embedding": "vertex",
    }
    return replace(row, auth="vertex", default_base_url="https://aiplatform.googleapis.com", rules=rules)
