"""How items reach the wires of Google's two chat dialects."""

from __future__ import annotations

from typing import Any

import pytest
from provider_helpers import PNG, assistant, body, call, image, inline, result, text, thinking, user

Q = user(text("q"))

# Interactions -------------------------------------------------------------------------------------------

PLACEHOLDER = {"type": "thought", "signature": "skip_thought_signature_validator"}


def steps(*messages: Any) -> list[dict]:
    before = len(body("google-official", None, list(messages[:-1]))["input"]) if len(messages) > 1 else 0
    return body("google-official", None, list(messages))["input"][before:]


def thought(value: str | None = None, signature: str | None = None) -> dict:
    step: dict = {"type": "thought"}
    if value is not None:
        step["summary"] = [{"type": "text", "text": value}] if value else []
    return {**step, "signature": signature} if signature else step


def output(*parts: str) -> dict:
    return {"type": "model_output", "content": [{"type": "text", "text": part} for part in parts]}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([text("a"), text(""), text("b")], [PLACEHOLDER, output("a", "b")]),
        ([thinking("t", signature="c2ln"), text("a")], [thought("t", "c2ln"), output("a")]),
        ([thinking("t", signature=b"sig"), text("a")], [thought("t", "c2ln"), output("a")]),
        ([thinking("", signature="c2ln"), text("a")], [thought("", "c2ln"), output("a")]),
        ([thinking(""), text("a")], [PLACEHOLDER, output("a")]),
        ([thinking("t"), text("a")], [PLACEHOLDER, thought("t"), output("a")]),
        ([text("a", signature="c2ln"), text("b")], [thought(signature="c2ln"), output("a", "b")]),
        (
            [thinking("t"), text("a", signature="c2ln")],
            [thought("t", "c2ln"), thought(signature="c2ln"), output("a")],
        ),
        (
            [text("a"), thinking("t", signature="c2ln"), text("b")],
            [PLACEHOLDER, output("a"), thought("t", "c2ln"), output("b")],
        ),
    ],
)
def test_interactions_places_signatures_in_thought_steps(items: list, expected: list) -> None:
    assert steps(Q, assistant(*items)) == expected


def test_interactions_gathers_thoughts_until_one_is_signed() -> None:
    items = [thinking("t"), inline("inline_thinking"), thinking("u", signature="c2ln"), thinking("v"), text("a")]
    picture = {"type": "image", "data": "+/8A", "mime_type": "image/png"}
    (first, second, spoken) = steps(Q, assistant(*items))
    assert first == {
        "type": "thought",
        "summary": [{"type": "text", "text": "t"}, picture, {"type": "text", "text": "u"}],
        "signature": "c2ln",
    }
    assert (second, spoken) == (thought("v"), output("a"))


def test_interactions_carries_media_by_their_major_type() -> None:
    items = [inline(mime="audio/l16; rate=24000"), inline(mime="video/mp4"), inline(mime="application/pdf"), image(PNG)]
    (step,) = steps(user(*items))
    assert (step["type"], [block["type"] for block in step["content"]]) == (
        "user_input",
        ["audio", "video", "document", "image"],
    )
    assert step["content"][2] == {"type": "document", "data": "+/8A", "mime_type": "application/pdf"}


def test_interactions_names_results_after_their_calls_and_leaves_out_ids_that_are_names() -> None:
    calls = assistant(call("tide", "c1", {"a": 1}), call("zone", "zone"))
    assert steps(Q, calls)[1:] == [
        {"type": "function_call", "name": "tide", "arguments": {"a": 1}, "id": "c1"},
        {"type": "function_call", "name": "zone", "arguments": {}},
    ]
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}
    answers = user(result("r", "c1"), result("", "zone", PNG), result("u", "unknown"))
    assert steps(Q, calls, answers) == [
        {"type": "function_result", "name": "tide", "result": "r", "call_id": "c1"},
        {"type": "function_result", "name": "zone", "result": [picture]},
        {"type": "function_result", "name": "unknown", "result": "u"},
    ]


# generateContent ----------------------------------------------------------------------------------------


def parts(*items: Any) -> list[dict]:
    return body("google-genai", None, [Q, assistant(*items)])["contents"][-1]["parts"]


def signed_text(value: str, signature: str | None = None, **extra: Any) -> dict:
    return {"text": value, **extra, **({"thoughtSignature": signature} if signature else {})}


FUNCTION = {"functionCall": {"id": "c1", "name": "f", "args": {}}}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([text("a"), text("")], [signed_text("a"), signed_text("")]),
        ([thinking("t", signature="c2ln"), text("a")], [signed_text("t", thought=True), signed_text("a", "c2ln")]),
        ([thinking("", signature="c2ln"), text("a")], [signed_text("a", "c2ln")]),
        ([thinking("t"), text("a")], [signed_text("t", thought=True), signed_text("a")]),
        ([text("a"), thinking("t", signature="c2ln")], [signed_text("a"), signed_text("t", "c2ln", thought=True)]),
        ([call("f", "c1")], [{**FUNCTION, "thoughtSignature": "skip_thought_signature_validator"}]),
        ([call("f", "c1", signature="+/8=")], [{**FUNCTION, "thoughtSignature": "-_8="}]),
        (
            [thinking("t", signature="c2ln"), text("a"), call("f", "c1")],
            [signed_text("t", thought=True), signed_text("a"), {**FUNCTION, "thoughtSignature": "c2ln"}],
        ),
        (
            [thinking("t", signature="c2ln"), thinking("u", signature="c2lo"), text("a"), call("f", "c1")],
            [
                signed_text("t", thought=True),
                signed_text("u", thought=True),
                signed_text("a", "c2ln"),
                {**FUNCTION, "thoughtSignature": "c2lo"},
            ],
        ),
        ([thinking("t", signature="no base64!"), text("a")], [signed_text("t", thought=True), signed_text("a")]),
    ],
)
def test_generate_content_moves_signatures_to_where_google_looks(items: list, expected: list) -> None:
    assert parts(*items) == expected


def test_generate_content_encodes_binary_data_url_safe() -> None:
    data = {"inlineData": {"mime_type": "image/png", "data": "-_8A"}}
    found = body("google-genai", None, [user(inline(), image("data:image/png;base64,+/8A"))])
    assert found["contents"] == [{"role": "user", "parts": [data, data]}]
    assert parts(inline("inline_thinking", signature="c2ln"), text("a"))[0] == {
        **data,
        "thoughtSignature": "c2ln",
        "thought": True,
    }


def test_generate_content_keeps_function_responses_in_contents_of_their_own() -> None:
    messages = [
        Q,
        assistant(call("f", "c1"), call("g", "g")),
        user(text("a"), result("r", "c1", PNG), result("s", "g"), text("b")),
    ]
    found = body("google-genai", None, messages)["contents"]
    picture = {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}}
    assert [content["role"] for content in found] == ["user", "model", "user", "user", "user"]
    assert found[3]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "f", "response": {"result": "r"}, "parts": [picture]}},
        {"functionResponse": {"name": "g", "response": {"result": "s"}}},
    ]
