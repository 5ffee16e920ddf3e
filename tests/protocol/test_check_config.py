"""What a config may hold, and the one line that says what is wrong with it."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from mmsp_nb.protocol.configs import _RULES, check_config, check_trace_id
from mmsp_nb.protocol.errors import UnsupportedParameterError
from mmsp_nb.protocol.items import PromptCaching, ThinkingLevel, UniConfig

TOOL = {"name": "tide", "description": "Tides", "parameters": {"type": "object", "properties": {"port": {}}}}


def refusal(config: Any) -> UnsupportedParameterError:
    with pytest.raises(UnsupportedParameterError) as caught:
        check_config(config, client="TestClient")
    assert caught.value.client == "TestClient"
    assert "\n" not in str(caught.value)
    return caught.value


LEGAL: dict[str, list[Any]] = {
    "max_tokens": [1, 100_000],
    "temperature": [0, 1.0, 2.5],
    "tools": [[], [TOOL], [{"name": "now"}], [{**TOOL, "strict": True}], [{"name": "f", "parameters": {}}]],
    "tool_choice": ["auto", "required", "none"],
    "thinking_level": ["none", "low", "medium", "high", "xhigh", "max"],
    "thinking_summary": [True, False],
    "system_prompt": ["", "Be brief."],
    "prompt_caching": ["enable", "disable", "enhance"],
    "fast_mode": [True, False],
    "image_config": [{}, {"aspect_ratio": "16:9"}, {"image_size": "2K", "aspect_ratio": "1:1"}],
    "tts_config": [[], [{"voice": "Kore"}], [{"voice": "a", "speaker": "A"}, {"voice": "b", "speaker": "B"}]],
    "embedding_config": [{}, {"dimensions": 8}],
    "trace_id": ["", "a", "agent1/run_7", "a.b/c d-e", "Größe/日本/x1", "console", "nullable.txt", "..."],
    "top_p": [0, 0.5, 1],
    "stop": ["END", ["a", "b"], []],
    "seed": [0, -1, 7],
    "parallel_tool_calls": [True, False],
    "response_format": [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        {"type": "json_schema", "schema": {"type": "object"}},
    ],
    "extra_body": [{}, {"top_k": 5, "nested": {"a": None}, "null": None}],
    "extra_headers": [{}, {"X-Test": "1"}],
}


def test_every_key_of_a_config_has_a_rule_and_legal_values_here() -> None:
    assert set(_RULES) == set(UniConfig.__annotations__) == set(LEGAL)


@pytest.mark.parametrize("key", LEGAL)
def test_a_legal_value_passes_unchanged(key: str) -> None:
    for value in LEGAL[key]:
        assert check_config({key: value}) == {key: value}


def test_no_config_is_an_empty_one() -> None:
    assert check_config(None) == check_config({}) == {}


def test_none_counts_as_absent() -> None:
    given = dict.fromkeys(LEGAL)
    assert check_config(given) == {}
    assert set(given) == set(LEGAL)
    nested = {"image_config": {"aspect_ratio": None, "image_size": "1K"}, "tools": [{"name": "f", "parameters": None}]}
    assert check_config(nested) == {"image_config": {"image_size": "1K"}, "tools": [{"name": "f"}]}
    assert nested["image_config"] == {"aspect_ratio": None, "image_size": "1K"}


def test_members_of_enumerations_become_plain_strings() -> None:
    checked = check_config({"thinking_level": ThinkingLevel.HIGH, "prompt_caching": PromptCaching.ENHANCE})
    assert checked == {"thinking_level": "high", "prompt_caching": "enhance"}
    assert {type(value) for value in checked.values()} == {str}


def test_numbers_of_numpy_and_tuples_become_plain() -> None:
    given = {"max_tokens": numpy.int64(5), "temperature": numpy.float64(0.5), "stop": ("a", "b"), "seed": numpy.int8(3)}
    checked = check_config(given)
    assert checked == {"max_tokens": 5, "temperature": 0.5, "stop": ["a", "b"], "seed": 3}
    assert [type(value) for value in checked.values()] == [int, float, list, int]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("max_tokens", 0, "a whole number above 0, not 0"),
        ("max_tokens", -5, "above 0"),
        ("max_tokens", True, "not True"),
        ("max_tokens", 1.5, "not 1.5"),
        ("max_tokens", "100", "not '100'"),
        ("temperature", math.nan, "a finite number, not nan"),
        ("temperature", math.inf, "not inf"),
        ("temperature", "1", "not '1'"),
        ("temperature", True, "not True"),
        ("thinking_level", "hgih", "did you mean 'high'?"),
        ("thinking_level", "HIGH", "did you mean 'high'?"),
        ("thinking_level", 3, "one of none, low, medium, high, xhigh, max, not 3"),
        ("prompt_caching", "enabled", "did you mean 'enable'?"),
        ("fast_mode", 1, "True or False"),
        ("thinking_summary", "yes", "True or False"),
        ("system_prompt", ["x"], "a string, not a list"),
        ("system_prompt", len, "not the function 'len'"),
        ("tools", TOOL, "a list of tool schemas, not a dict"),
        ("tools", len, "a list of tool schemas, not the function 'len'"),
        ("tools", [len], "[0] must be a dict with 'name', 'description' and 'parameters', not the function 'len'"),
        ("tools", [TOOL, {"description": "x"}], "config['tools'][1] lacks 'name'"),
        ("tools", [{"name": ""}], "['name'] must be a non-empty string, not ''"),
        ("tools", [{"name": 5}], "['name'] must be a non-empty string, not 5"),
        ("tools", [{"name": "f", "description": 5}], "['description'] must be a string"),
        ("tools", [{"name": "f", "parameters": [1]}], "a JSON Schema such as"),
        ("tools", [{"name": "f", "parameters": {"type": "string"}}], "must describe an object"),
        (
            "tools",
            [{"name": "f", "parameters": {"properties": []}}],
            "['properties'] must be a dict, not an empty list",
        ),
        ("tools", [TOOL, {"name": "x"}, TOOL], "two tools named 'tide'"),
        ("tool_choice", "requird", "did you mean 'required'?"),
        ("tool_choice", [], "not an empty list"),
        ("tool_choice", [5], "[0] must be a non-empty string, not 5"),
        ("tool_choice", {"name": "f"}, "a list of tool names, not a dict"),
        ("tool_choice", ["tide"], "names 'tide', but the config has no tools"),
        ("image_config", "16:9", "a dict with 'aspect_ratio' or 'image_size', not '16:9'"),
        ("image_config", {"aspect_ratio": "16/9"}, "did you mean '16:9'?"),
        ("image_config", {"aspct_ratio": "16:9"}, "did you mean 'aspect_ratio'?"),
        ("image_config", {"image_size": "4K"}, "one of 1K, 2K, not '4K'"),
        ("tts_config", {"voice": "a"}, "a list of voices, not a dict"),
        ("tts_config", [{}], "[0] lacks 'voice'"),
        ("tts_config", [{"voice": "a", "speaker": "A"}, {"voice": "b"}], "a 'speaker' in each"),
        ("tts_config", [{"voice": "a", "speaker": "A"}] * 3, "one or two voices, not 3"),
        ("embedding_config", {"dimensions": 0}, "['dimensions'] must be a whole number above 0, not 0"),
        ("embedding_config", {"dimension": 8}, "did you mean 'dimensions'?"),
        ("top_p", 1.5, "a number from 0 to 1, not 1.5"),
        ("stop", "", "a non-empty string, not ''"),
        ("stop", ["a", ""], "config['stop'][1] must be a non-empty string"),
        ("seed", 1.0, "a whole number, not 1.0"),
        ("parallel_tool_calls", "no", "True or False"),
        ("response_format", "json", "a dict with a 'type', not 'json'"),
        ("response_format", {"type": "json"}, "one of text, json_object, json_schema, not 'json'"),
        ("response_format", {"type": "json_schema"}, "lacks a 'schema'"),
        ("extra_body", {1: 2}, "a dict with string keys"),
        ("extra_headers", {"X Y": "1"}, "a key that is no header name"),
        ("extra_headers", {"X-Test": 1}, "['X-Test'] must be a string on one line"),
        ("extra_headers", {"X-Test": "a\r\nb: c"}, "['X-Test'] must be a string on one line"),
    ],
)
def test_an_illegal_value_is_refused_by_name(key: str, value: Any, words: str) -> None:
    error = refusal({"max_tokens": 5, key: value})
    assert error.parameter == key
    assert str(error).startswith(f"config['{key}']")
    assert words in str(error)


def test_a_tool_choice_must_name_tools_that_are_there() -> None:
    assert check_config({"tools": [TOOL], "tool_choice": ["tide"]})["tool_choice"] == ["tide"]
    error = refusal({"tool_choice": ["tied"], "tools": [TOOL]})
    assert error.parameter == "tool_choice"
    assert str(error).endswith("the tools are tide; did you mean 'tide'?")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("max_tokns", "did you mean 'max_tokens'?"),
        ("MAX_TOKENS", "did you mean 'max_tokens'?"),
        ("max_completion_tokens", "did you mean 'max_tokens'?"),
        ("reasoning_effort", "did you mean 'thinking_level'?"),
        ("system", "did you mean 'system_prompt'?"),
        ("model", "the model is chosen where the client is made"),
        ("zzz", "the config has no key 'zzz'"),
        (5, "the config has no key 5"),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_probably_meant(key: Any, words: str) -> None:
    error = refusal({key: 1})
    assert error.parameter == key
    assert str(error).endswith(words)


@pytest.mark.parametrize("config", [{"api_key": "sk-secret"}, {"extra_headers": "Bearer sk-secret"},
                                    {"extra_headers": {"Authorization": "sk-secret\n"}}, {"extra_body": "sk-secret"},
                                    {"extra_headers": {"sk-secret here": "x"}}])  # fmt: skip
def test_a_secret_never_gets_into_the_message(config: Any) -> None:
    assert "sk-secret" not in str(refusal(config))


@pytest.mark.parametrize("config", [[], "max_tokens=5", 5, [("max_tokens", 5)]])
def test_a_config_is_a_dict(config: Any) -> None:
    assert "the config must be a dict, not" in str(refusal(config))


BAD_TRACE_IDS = {
    "../up": "'..' would leave",
    "a/../b": "'..' would leave",
    ".": "'.' would leave",
    "/abs/path": "an empty segment",
    "a//b": "an empty segment",
    "a/": "an empty segment",
    "C:/x": "it holds ':'",
    "a\\b": "it holds '\\\\'",
    "a\0b": "it holds '\\x00'",
    "a\nb": "it holds '\\n'",
    "a\n": "it holds '\\n'",
    "what?": "it holds '?'",
    "e\u0301": "it holds",
    "x" * 201: "longer than 200 bytes",
    "é" * 101: "longer than 200 bytes",
    "NUL": "a Windows device",
    "a/con.txt": "a Windows device",
    "lpt1": "a Windows device",
    "COM¹.x": "a Windows device",
    "aux .log": "a Windows device",
}


@pytest.mark.parametrize("trace_id", BAD_TRACE_IDS)
def test_a_trace_id_that_cannot_safely_name_a_file_is_refused(trace_id: str) -> None:
    for check in (check_trace_id, lambda value: check_config({"trace_id": value})):
        with pytest.raises(UnsupportedParameterError) as caught:
            check(trace_id)
        assert caught.value.parameter == "trace_id"
        assert BAD_TRACE_IDS[trace_id] in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_trace_id_is_a_string() -> None:
    assert refusal({"trace_id": 7}).parameter == "trace_id"
    assert check_trace_id("x" * 200) is None
