"""Every config key on every client type: what goes out, what is ignored, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..rig import Case
from .common import GOOGLE, KINDS, ask

SCHEMA = {
    "type": "object",
    "properties": {"port": {"type": "string", "description": "Name of the harbour, e.g. “Brest”"}},
    "required": ["port"],
}
TOOLS = [
    {"name": "tide_table", "description": "Tides of a harbour", "parameters": SCHEMA},
    {"name": "now", "description": "The time"},
]
LEVELS = ("none", "low", "medium", "high", "xhigh", "max")

ROWS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "max-tokens": {"max_tokens": 100},
    "temperature-half": {"temperature": 0.5},
    "temperature-zero": {"temperature": 0.0},
    "temperature-one": {"temperature": 1.0},
    "temperature-two": {"temperature": 2.0},
    "system-prompt": {"system_prompt": "Be brief. Ümlaut."},
    "system-prompt-empty": {"system_prompt": ""},
    "tools": {"tools": TOOLS},
    "tools-empty": {"tools": []},
    **{f"tool-choice-{choice}": {"tools": TOOLS, "tool_choice": choice} for choice in ("auto", "required", "none")},
    "tool-choice-one": {"tools": TOOLS, "tool_choice": ["now"]},
    "tool-choice-two": {"tools": TOOLS, "tool_choice": ["now", "tide_table"]},
    "tool-choice-without-tools": {"tool_choice": "auto"},
    **{f"thinking-{level}": {"thinking_level": level} for level in LEVELS},
    "summary-true": {"thinking_summary": True},
    "summary-false": {"thinking_summary": False},
    "summary-true-with-level": {"thinking_summary": True, "thinking_level": "high"},
    "summary-false-with-level": {"thinking_summary": False, "thinking_level": "high"},
    "summary-true-without-thinking": {"thinking_summary": True, "thinking_level": "none"},
    **{f"caching-{mode}": {"prompt_caching": mode} for mode in ("enable", "disable", "enhance")},
    "fast": {"fast_mode": True},
    "fast-false": {"fast_mode": False},
    "image-config": {"image_config": {"aspect_ratio": "16:9", "image_size": "2K"}},
    "tts-config": {"tts_config": [{"voice": "Kore"}]},
    "embedding-config": {"embedding_config": {"dimensions": 8}},
    "nones": dict.fromkeys(("max_tokens", "temperature", "tools", "tool_choice", "thinking_level", "fast_mode")),
    "everything": {
        "max_tokens": 5,
        "system_prompt": "S",
        "tools": TOOLS,
        "tool_choice": "auto",
        "thinking_level": "low",
    },
}

MODELS: dict[str, tuple[str, ...]] = {
    "openai-official": ("gpt-6", "gpt-6-luna"),
    "openai-responses": ("gpt-6", "gpt-6-luna"),
    "minimax-official": ("MiniMax-M3.1",),
    "zai-official": ("glm-5", "GLM-5.3-Flash"),
    "moonshot-official": ("kimi-k2.5",),
    "openai-chat-vllm-adapter": (
        *("Qwen3.8-Flash-Next", "qwen3.8-27b", "qwen3.6-35b-a3b", "deepseek-v4-flash-vision-exp", "deepseek-v4-pro"),
        "some-model",
    ),
    "anthropic-official": (
        *("claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-fable-5", "claude-opus-4-6"),
        "claude-opus-4-5",
    ),
    "google-official": (
        "gemini-3-pro-preview",
        "gemini-3.5-pro",
        "gemini-3.7-flash",
        "gemini-4-argon",
        "gemini-3.1-flash",
    ),
}
MODELS["google-genai"] = MODELS["google-official"]

MODEL_ROWS = (
    *(f"thinking-{level}" for level in LEVELS),
    *("fast", "tool-choice-required", "tool-choice-none", "tool-choice-one", "caching-enhance", "caching-disable"),
    *("summary-true", "summary-true-without-thinking", "temperature-half"),
)


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        if kind.name == "mmsp":
            continue
        for row, config in ROWS.items():
            yield ask(kind, f"config/{row}", config=config)
        for model in MODELS.get(kind.name, ()):
            rows = MODEL_ROWS if kind.name not in GOOGLE else MODEL_ROWS[:6]
            for row in rows:
                yield ask(kind, f"config-{model}/{row}", config=ROWS[row], model=model)
    yield ask(KINDS["anthropic-official"], "config/caching-null", config={"prompt_caching": None})
    for name in ("moonshot-official",):
        for model in ("kimi-k2.5", "kimi-k3"):
            yield ask(KINDS[name], f"config-{model}/trace-id", config={"trace_id": "t/1"}, model=model)
    for name in ("openai-chat", "anthropic-official", "google-official", "google-genai", "openai-official"):
        nested = {"type": "object", "properties": {"parameters": {"type": "array", "items": {"type": "integer"}}}}
        tools = [{"name": "f", "description": "d", "parameters": nested}]
        yield ask(KINDS[name], "config/tools-with-a-property-called-parameters", config={"tools": tools})
