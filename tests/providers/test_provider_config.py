"""How each config key reaches the body of each client type, and which values are refused."""

from __future__ import annotations

from typing import Any

import pytest
from provider_helpers import attributes, body, changes, requests

from mmsp_nb.protocol.errors import UnsupportedParameterError
from mmsp_nb.protocol.items import PromptCaching, ThinkingLevel
from mmsp_nb.providers.vendors import VENDORS

CHAT_TYPES = [name for name in VENDORS if name not in ("openai-embedding", "mmsp")]
LEVELS = ("none", "low", "medium", "high", "xhigh", "max")
TOOL = {"name": "tide", "description": "é", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("client_type", "expected"),
    [
        (
            "openai-official",
            {"model": "gpt-5.5", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]},
        ),
        ("openai-responses", {"model": "openai/gpt-5.5", "stream": True, "store": False}),
        ("deepseek-official", {"model": "deepseek-flash", "stream": True, "store": False}),
        ("minimax-official", {"model": "MiniMax-M3", "stream": True, "store": False}),
        ("openai-chat", {"model": "some-model", "stream": True, "stream_options": {"include_usage": True}}),
        (
            "openai-chat-vllm-adapter",
            {"model": "some-model", "stream": True, "stream_options": {"include_usage": True}},
        ),
        ("zai-official", {"model": "glm-5.2", "stream": True, "tool_stream": True}),
        ("moonshot-official", {"model": "kimi-k3", "stream": True, "stream_options": {"include_usage": True}}),
        (
            "anthropic-official",
            {"model": "claude-opus-5", "stream": True, "max_tokens": 64000, "cache_control": {"type": "ephemeral"}},
        ),
        ("ant-messages", {"model": "some-model", "stream": True, "max_tokens": 64000}),
        ("google-official", {"model": "gemini-3.5-flash", "stream": True, "store": False}),
        ("google-genai", {}),
    ],
)
def test_plain_body_holds_only_what_every_request_has(client_type: str, expected: dict) -> None:
    messages = {"chat": "messages", "messages": "messages", "generate_content": "contents"}
    name = messages.get(VENDORS[client_type].dialect, "input")
    found = body(client_type)
    assert found.pop(name)
    assert found == expected
    # None counts as absent, for every key
    nothing = dict.fromkeys(["temperature", "tools", "prompt_caching", "thinking_level", "fast_mode", "stop", "seed"])
    assert body(client_type, **nothing) == body(client_type)


MAX_TOKENS = {
    "openai-official": {"max_output_tokens": 9},
    "openai-chat": {"max_completion_tokens": 9},
    "openai-chat-vllm-adapter": {"max_completion_tokens": 9},
    "zai-official": {"max_tokens": 9},
    "moonshot-official": {"max_completion_tokens": 9},
    "anthropic-official": {"max_tokens": 9},
    "google-official": {"generation_config": {"max_output_tokens": 9}},
    "google-genai": {"generationConfig": {"maxOutputTokens": 9}},
}
FAST = {"service_tier": "priority"}
REFUSED = "refused"


@pytest.mark.parametrize(("client_type", "expected"), MAX_TOKENS.items())
def test_max_tokens(client_type: str, expected: dict) -> None:
    assert changes(client_type, max_tokens=9) == expected


@pytest.mark.parametrize(
    ("client_type", "expected"),
    [
        ("openai-official", {"instructions": "s"}),
        ("anthropic-official", {"system": "s"}),
        ("google-official", {"system_instruction": "s"}),
        ("google-genai", {"systemInstruction": {"role": "user", "parts": [{"text": "s"}]}}),
    ],
)
def test_system_prompt(client_type: str, expected: dict) -> None:
    assert changes(client_type, system_prompt="s") == expected
    assert list(changes(client_type, system_prompt="")) == list(expected)


def test_system_prompt_is_the_first_chat_message_unless_it_is_empty() -> None:
    assert body("openai-chat", system_prompt="s")["messages"][0] == {"role": "system", "content": "s"}
    assert changes("openai-chat", system_prompt="") == {}


@pytest.mark.parametrize(
    ("client_type", "values"),
    [
        ("openai-official", {1.0: {}, 0.3: REFUSED, 0: REFUSED}),
        ("deepseek-official", {1.0: {}, 0.3: REFUSED}),
        ("moonshot-official", {1.0: {}, 0.3: REFUSED}),
        ("anthropic-official", {1.0: {}, 0.3: REFUSED}),
        ("minimax-official", {0: {"temperature": 0}, 1.0: {"temperature": 1.0}, 1.2: REFUSED, -0.1: REFUSED}),
        ("openai-responses", {1.7: {"temperature": 1.7}}),
        ("openai-chat", {0: {"temperature": 0}}),
        ("zai-official", {0.3: {"temperature": 0.3}}),
        ("ant-messages", {0.3: {"temperature": 0.3}}),
        ("google-official", {1.0: REFUSED, 0: REFUSED}),
        ("google-genai", {1.0: REFUSED}),
    ],
)
def test_temperature(client_type: str, values: dict) -> None:
    for value, expected in values.items():
        if expected is REFUSED:
            with pytest.raises(UnsupportedParameterError) as caught:
                body(client_type, temperature=value)
            assert attributes(caught.value) == {"client": VENDORS[client_type].client, "parameter": "temperature"}
            assert "\n" not in str(caught.value)
        else:
            assert changes(client_type, temperature=value) == expected


EFFORT = {
    ("openai-official", "gpt-5.5"): "none low medium high xhigh max",
    ("openai-official", "gpt-6.1-sol"): "low low medium high xhigh max",
    ("openai-official", "gpt-6-astra"): "low low medium high xhigh max",
    ("openai-responses", "openai/gpt-6-astra"): "low low medium high xhigh max",
    ("openai-official", "gpt-6-luna"): "none low medium high xhigh max",
    ("deepseek-official", "deepseek-flash"): "none low high high high max",
    ("minimax-official", "MiniMax-M3"): "none low medium high high high",
    ("minimax-official", "MiniMax-M3.1-Flash"): "low low medium high xhigh max",
}
GEMINI_EFFORT = {
    "gemini-3.1-flash-image": "minimal minimal high high high high",
    "gemini-3-pro": "low low high high high high",
    "gemini-3-pro-image": "minimal minimal high high high high",
    "gemini-3.1-pro": "low low medium high high high",
    "gemini-3.7-flash": "low low medium high high high",
    "gemini-3.8-flash": "low low medium high high high",
    "gemini-4-argon": "low low medium high high high",
    "gemini-3.5-flash": "minimal low medium high high high",
    "gemini-9-of-the-future": "minimal low medium high high high",
}


@pytest.mark.parametrize(("target", "efforts"), EFFORT.items())
def test_thinking_level_becomes_the_reasoning_effort(target: tuple[str, str], efforts: str) -> None:
    found = [changes(*target, thinking_level=level) for level in LEVELS]
    assert found == [{"reasoning": {"effort": effort}} for effort in efforts.split()]


@pytest.mark.parametrize(("model", "efforts"), GEMINI_EFFORT.items())
def test_thinking_level_of_gemini(model: str, efforts: str) -> None:
    for level, effort in zip(LEVELS, efforts.split(), strict=True):
        assert changes("google-official", model, thinking_level=level) == {
            "generation_config": {"thinking_level": effort}
        }
        assert changes("google-genai", model, thinking_level=level) == {
            "generationConfig": {"thinkingConfig": {"thinking_level": effort.upper()}}
        }


ENABLED = {"type": "enabled", "clear_thinking": False}


def _zai(*efforts: str) -> list[dict]:
    return [{"thinking": ENABLED, "reasoning_effort": effort} for effort in efforts]


def _template(*rows: dict | None) -> list[dict]:
    return [{} if row is None else {"chat_template_kwargs": row} for row in rows]


def _claude(*efforts: str) -> list[dict]:
    return [{"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}} for effort in efforts]


def _deepseek(*efforts: str) -> list[dict | None]:
    return [None, *({"thinking": True, "reasoning_effort": effort} for effort in efforts)]


OFF = {"thinking": {"type": "disabled"}}
PLAIN_CLAUDE = [OFF, *_claude("low", "medium", "high", "xhigh", "max")]
KEPT = {"thinking": {"type": "enabled", "keep": "all"}}
QWEN38 = [{"enable_thinking": False}, *({"reasoning_effort": e} for e in ("low", "medium", "xhigh", "xhigh", "xhigh"))]
SWITCH = [{"enable_thinking": False}, *[{"enable_thinking": True}] * 5]
THINKING = {
    ("openai-chat", "gpt-5.5"): [{}] * 6,
    ("zai-official", "glm-5.3-flash"): _zai("low", "low", "high", "high", "max", "max"),
    ("zai-official", "zai-org/GLM-5.3"): _zai("low", "low", "high", "high", "max", "max"),
    ("zai-official", "glm-5.2"): [OFF, *_zai("low", "medium", "high", "xhigh", "max")],
    ("moonshot-official", "kimi-k3.1-pro"): [
        {"reasoning_effort": e} for e in ("none", "low", "high", "high", "max", "max")
    ],
    ("moonshot-official", "Pro/moonshotai/Kimi-K2.6"): [OFF, *[KEPT] * 5],
    ("openai-chat-vllm-adapter", "Qwen/Qwen3.8-27B"): _template(*QWEN38),
    ("openai-chat-vllm-adapter", "qwen3.8-flash-next"): _template(*QWEN38),
    ("openai-chat-vllm-adapter", "qwen3.6-35b-a3b"): _template(*SWITCH),
    ("openai-chat-vllm-adapter", "anything"): _template(*SWITCH),
    ("openai-chat-vllm-adapter", "deepseek-v4-flash-vision-exp"): _template(
        *_deepseek("low", "high", "high", "high", "max")
    ),
    ("openai-chat-vllm-adapter", "deepseek-v4-flash"): _template(*_deepseek("high", "high", "high", "high", "max")),
    ("openai-chat-vllm-adapter", "deepseek-v4-pro"): _template(*_deepseek("high", "high", "high", "high", "max")),
    ("anthropic-official", "claude-opus-5"): PLAIN_CLAUDE,
    ("anthropic-official", "claude-opus-5-5"): [*_claude("low"), *PLAIN_CLAUDE[1:]],
    ("anthropic-official", "claude-fable-5-1"): [*_claude("low"), *PLAIN_CLAUDE[1:]],
    ("anthropic-official", "claude-haiku-5-5"): [*_claude("low"), *PLAIN_CLAUDE[1:]],
    ("anthropic-official", "claude-sonnet-5-5"): [{"thinking": {"type": "between_tools"}}, *PLAIN_CLAUDE[1:]],
    ("anthropic-official", "claude-sonnet-4-6"): [OFF, *_claude("low", "medium", "high", "high", "max")],
    ("ant-messages", "claude-opus-5-5"): PLAIN_CLAUDE,
}


@pytest.mark.parametrize(("target", "expected"), THINKING.items())
def test_thinking_level_of_each_vendor(target: tuple[str, str], expected: list) -> None:
    assert [changes(*target, thinking_level=level) for level in LEVELS] == expected
    assert changes(*target, thinking_level=ThinkingLevel.HIGH) == expected[3]


@pytest.mark.parametrize(
    ("client_type", "on", "off", "on_with_level"),
    [
        ("openai-official", {"reasoning": {"summary": "concise"}}, {}, {"effort": "high", "summary": "concise"}),
        ("deepseek-official", {"reasoning": {"summary": "concise"}}, {}, {"effort": "high", "summary": "concise"}),
        ("openai-responses", {}, {}, {"effort": "high", "summary": "concise"}),
        ("minimax-official", {}, {}, {"effort": "high"}),
    ],
)
def test_thinking_summary_of_responses(client_type: str, on: dict, off: dict, on_with_level: dict) -> None:
    assert changes(client_type, thinking_summary=True) == on
    assert changes(client_type, thinking_summary=False) == off
    assert changes(client_type, thinking_level="high", thinking_summary=True) == {"reasoning": on_with_level}


def test_thinking_summary_of_messages_sits_on_the_thinking_block() -> None:
    def block(model: str, **config: Any) -> dict:
        return changes("anthropic-official", model, **config)["thinking"]

    for value, display in ((True, "summarized"), (False, "omitted")):
        assert block("claude-opus-5", thinking_summary=value) == {"type": "adaptive", "display": display}
        assert block("claude-opus-5", thinking_summary=value, thinking_level="low")["display"] == display
        assert "display" not in block("claude-opus-5", thinking_summary=value, thinking_level="none")
        assert "display" not in block("claude-sonnet-5-5", thinking_summary=value, thinking_level="none")
    # the tables behind it stay as they are
    assert "display" not in block("claude-opus-5", thinking_level="low")


def test_thinking_summary_of_gemini() -> None:
    for value, word in ((True, "auto"), (False, "none")):
        assert changes("google-official", thinking_summary=value) == {"generation_config": {"thinking_summaries": word}}
        assert changes("google-genai", thinking_summary=value) == {
            "generationConfig": {"thinkingConfig": {"include_thoughts": value}}
        }


@pytest.mark.parametrize(
    ("client_type", "expected"),
    [
        ("openai-official", {"type": "function", **TOOL}),
        ("openai-chat", {"type": "function", "function": TOOL}),
        ("anthropic-official", {"name": "tide", "description": "é", "input_schema": TOOL["parameters"]}),
        ("google-official", {"type": "function", **TOOL}),
        (
            "google-genai",
            {
                "functionDeclarations": [
                    {"name": "tide", "description": "é", "parameters": {"type": "OBJECT", "properties": {}}}
                ]
            },
        ),
    ],
)
def test_tools(client_type: str, expected: dict) -> None:
    assert changes(client_type, tools=[TOOL]) == {"tools": [expected]}


def test_tool_without_parameters_gets_the_schema_that_anthropic_requires() -> None:
    (tool,) = body("ant-messages", tools=[{"name": "now", "description": "d"}])["tools"]
    assert tool["input_schema"] == {"type": "object", "properties": {}}


def test_schema_for_generate_content_is_spelled_googles_way() -> None:
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "minLength": 1, "enum": ["anyOf", "string"]},
            "opt": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "arr": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
        },
        "required": ["minLength"],
        "additionalProperties": False,
    }
    (tools,) = body("google-genai", tools=[{**TOOL, "parameters": schema}])["tools"]
    assert tools["functionDeclarations"][0]["parameters"] == {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "min_length": 1, "enum": ["anyOf", "string"]},
            "opt": {"any_of": [{"type": "INTEGER"}, {"type": "NULL"}]},
            "arr": {"type": "ARRAY", "items": {"type": "NUMBER"}, "max_items": 3},
        },
        "required": ["minLength"],
        "additional_properties": False,
    }


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#/$defs/Port"},
        {"type": ["string", "null"]},
        {"const": 1},
        {"type": "array", "items": {"oneOf": [{"type": "string"}]}},
    ],
)
def test_schema_that_google_cannot_spell_goes_as_json_schema(part: dict) -> None:
    schema = {"type": "object", "properties": {"port": part}}
    (tools,) = body("google-genai", tools=[{**TOOL, "parameters": schema}])["tools"]
    assert tools["functionDeclarations"] == [{"name": "tide", "description": "é", "parametersJsonSchema": schema}]


FUNCTIONS = [{"type": "function", "name": "tide"}, {"type": "function", "name": "zone"}]
NESTED = [{"type": "function", "function": {"name": "tide"}}, {"type": "function", "function": {"name": "zone"}}]
CHAT_LIST = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": NESTED}}
BOTH = ["tide", "zone"]
CHOICES = {
    ("openai-official", "gpt-5.5"): {
        "auto": "auto",
        "none": "none",
        "required": "required",
        "both": {"type": "allowed_tools", "mode": "required", "tools": FUNCTIONS},
    },
    ("deepseek-official", "deepseek-flash"): {"auto": "auto", "none": "none"},
    ("minimax-official", "MiniMax-M3"): {"auto": "auto", "none": "none"},
    ("minimax-official", "minimax-m3.1-flash"): {"auto": "auto"},
    ("openai-chat", "m"): {"auto": "auto", "none": "none", "required": "required", "both": CHAT_LIST},
    ("zai-official", "glm-5.3"): {"auto": "auto"},
    ("moonshot-official", "kimi-k3"): {"auto": "auto", "none": "none", "required": "required"},
    ("moonshot-official", "kimi-k2.6"): {"auto": "auto", "none": "none"},
    ("anthropic-official", "claude-opus-5"): {
        "auto": {"type": "auto"},
        "none": {"type": "none"},
        "required": {"type": "any"},
        "one": {"type": "tool", "name": "tide"},
    },
    ("anthropic-official", "claude-opus-5-5"): {"auto": {"type": "auto"}, "none": {"type": "none"}},
    ("anthropic-official", "claude-fable-5"): {
        "auto": {"type": "auto"},
        "none": {"type": "none"},
        "required": {"type": "any"},
        "one": {"type": "tool", "name": "tide"},
    },
    ("ant-messages", "claude-opus-5-5"): {
        "auto": {"type": "auto"},
        "none": {"type": "none"},
        "required": {"type": "any"},
        "one": {"type": "tool", "name": "tide"},
    },
}


@pytest.mark.parametrize(("target", "accepted"), CHOICES.items())
def test_tool_choice(target: tuple[str, str], accepted: dict) -> None:
    many = {"openai-official", "openai-chat"}
    for kind in ("auto", "none", "required", "one", "both"):
        choice: Any = {"one": ["tide"], "both": BOTH}.get(kind, kind)
        if kind in accepted:
            assert changes(*target, tools=[TOOL], tool_choice=choice)["tool_choice"] == accepted[kind]
        elif not (kind == "one" and target[0] in many):
            with pytest.raises(UnsupportedParameterError) as caught:
                body(*target, tools=[TOOL], tool_choice=choice)
            assert caught.value.parameter == "tool_choice"


def test_tool_choice_of_gemini_counts_only_with_tools() -> None:
    def interactions(choice: Any) -> Any:
        return body("google-official", tools=[TOOL], tool_choice=choice)["generation_config"]["tool_choice"]

    def generate(choice: Any) -> Any:
        return body("google-genai", tools=[TOOL], tool_choice=choice)["toolConfig"]["functionCallingConfig"]

    assert [interactions(choice) for choice in ("auto", "none", "required")] == ["auto", "none", "any"]
    assert interactions(BOTH) == {"allowed_tools": {"mode": "any", "tools": BOTH}}
    assert [generate(choice)["mode"] for choice in ("auto", "none", "required")] == ["AUTO", "NONE", "ANY"]
    assert generate(BOTH) == {"mode": "ANY", "allowedFunctionNames": BOTH}
    for client_type in ("google-official", "google-genai"):
        assert changes(client_type, tool_choice="required") == {}


@pytest.mark.parametrize("client_type", CHAT_TYPES)
def test_choosing_among_no_tools_is_refused(client_type: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        body(client_type, tools=[TOOL], tool_choice=[])
    assert caught.value.parameter == "tool_choice"


FAST_MODES = {
    ("openai-official", "gpt-5.5"): FAST,
    ("openai-responses", "m"): FAST,
    ("deepseek-official", "deepseek-flash"): REFUSED,
    ("minimax-official", "MiniMax-M3"): FAST,
    ("minimax-official", "MiniMax-M3.1-Flash"): REFUSED,
    ("openai-chat", "m"): FAST,
    ("openai-chat-vllm-adapter", "m"): FAST,
    ("zai-official", "glm-5.3"): REFUSED,
    ("moonshot-official", "kimi-k3"): REFUSED,
    ("anthropic-official", "claude-opus-5-5"): {"speed": "fast"},
    ("anthropic-official", "claude-sonnet-4-6"): REFUSED,
    ("anthropic-official", "claude-sonnet-5-5"): REFUSED,
    ("anthropic-official", "claude-haiku-5-5"): REFUSED,
    ("anthropic-official", "claude-fable-5-1"): REFUSED,
    ("ant-messages", "claude-sonnet-4-6"): {"speed": "fast"},
    ("google-official", "gemini-3.5-flash"): FAST,
    ("google-genai", "gemini-3.5-flash"): REFUSED,
    ("openai-embedding", "text-embedding-3-large"): REFUSED,
}


@pytest.mark.parametrize(("target", "expected"), FAST_MODES.items())
def test_fast_mode(target: tuple[str, str], expected: Any) -> None:
    assert changes(*target, fast_mode=False) == {}
    if expected is REFUSED:
        with pytest.raises(UnsupportedParameterError) as caught:
            body(*target, fast_mode=True)
        assert caught.value.parameter == "fast_mode"
    else:
        assert changes(*target, fast_mode=True) == expected
        (request,) = requests(*target, fast_mode=True)
        beta = "fast-mode-2026-02-01" if "messages" in VENDORS[target[0]].dialect else None
        assert request.headers.get("anthropic-beta") == beta


@pytest.mark.parametrize("client_type", CHAT_TYPES)
@pytest.mark.parametrize("value", ["disable", "enhance", "sometimes"])
def test_prompt_caching_that_a_vendor_lacks_is_refused(client_type: str, value: str) -> None:
    accepted = {"anthropic-official": ("disable", "enhance"), "moonshot-official": ("enhance",)}
    assert changes(client_type, prompt_caching="enable") == {}
    if value not in accepted.get(client_type, ()):
        with pytest.raises(UnsupportedParameterError) as caught:
            body(client_type, prompt_caching=value)
        assert caught.value.parameter == "prompt_caching"


def test_prompt_caching_of_claude_and_kimi() -> None:
    def marks(**config: Any) -> Any:
        return body("anthropic-official", **config).get("cache_control")

    assert marks() == marks(prompt_caching=PromptCaching.ENABLE) == marks(prompt_caching=None) == {"type": "ephemeral"}
    assert marks(prompt_caching="enhance") == {"type": "ephemeral", "ttl": "1h"}
    assert marks(prompt_caching="disable") is None
    assert changes("moonshot-official", "kimi-k3", prompt_caching="enhance") == {
        "prompt_cache_options": {"mode": "implicit", "ttl": "1h"}
    }
    with pytest.raises(UnsupportedParameterError):
        body("moonshot-official", "kimi-k2.6", prompt_caching="enhance")


def test_trace_id_reaches_the_wire_only_as_kimi_k2s_cache_key() -> None:
    assert changes("moonshot-official", "Kimi-K2.6", trace_id="t/1") == {"prompt_cache_key": "t/1"}
    for client_type in CHAT_TYPES:
        assert changes(client_type, trace_id="t/1") == {}


def test_image_config() -> None:
    value = {"aspect_ratio": "16:9", "image_size": "2K"}
    assert changes("google-official", image_config=value) == {
        "response_format": [{"type": "text"}, {"type": "image", **value}]
    }
    assert changes("google-genai", image_config=value) == {
        "generationConfig": {"imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"}}
    }
    assert changes("openai-chat", image_config=value) == {}
