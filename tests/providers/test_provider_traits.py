"""A history that moves from vendor to vendor can be sent to each of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from mmsp_nb.protocol.repairs import Traits, repair
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.providers.routing import resolve
from mmsp_nb.providers.traits import TRAITS, origin
from mmsp_nb.providers.vendors import VENDORS, vertex

MODELS = {
    "anthropic-official": "claude-opus-5-5",
    "ant-messages": "claude-opus-5-5",
    "google-official": "gemini-3.8-flash",
    "google-genai": "gemini-3.8-flash",
    "zai-official": "glm-5.3-flash",
}


def user(*items: Any) -> dict[str, Any]:
    return {"role": "user", "content_items": [text(i) if isinstance(i, str) else i for i in items]}


def assistant(*items: Any) -> dict[str, Any]:
    return {**user(*items), "role": "assistant"}


def text(value: str, **fidelity: Any) -> dict[str, Any]:
    return {"type": "text.done", "text": value, **({"fidelity": fidelity} if fidelity else {})}


def thinking(value: str, **fidelity: Any) -> dict[str, Any]:
    return {"type": "thinking.done", "thinking": value, **({"fidelity": fidelity} if fidelity else {})}


def call(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_call.done", "name": "f", "arguments": {"a": 1}, "tool_call_id": id, **more}


def result(id: str) -> dict[str, Any]:
    return {"type": "tool_result.done", "text": "ok", "tool_call_id": id}


PNG = {"type": "inline_data.done", "data": b"png", "mime_type": "image/png"}
DRAFT = {"type": "inline_thinking.done", "data": b"png", "mime_type": "image/png"}

MIXED = [
    assistant(thinking("Hm.", reasoning_field="reasoning_content"), "Hello.", ""),
    user("Look", PNG),
    assistant(thinking("See."), text("", signature="c2ln"), call("f", fidelity={"signature": "c2ln"}), call("f")),
    user("so:", result("f"), result("f")),
    assistant(DRAFT, PNG, "Like this."),
    user("And?"),
    assistant(thinking("", encrypted_content="ZW5j", format="x")),
    user(result("nobody's"), "Hm?"),
    assistant("Wait.", call("call.with/odd:characters" * 4)),
    user("Stop!"),
]
OWN = {
    "responses": [
        assistant(thinking("Hm.", channel="summary", encrypted_content="ZW5j"), text("I look.", phase="commentary")),
        user("Yes"),
        assistant(call("call_1"), call("call_2")),
        user(result("call_2"), result("call_1")),
    ],
    "chat": [
        assistant(thinking("Hm.", reasoning_field="reasoning"), "I look.", call("call_0")),
        user(result("call_0")),
        assistant(call("call_0")),
        user(result("call_0"), "and?"),
    ],
    "messages": [
        assistant(
            thinking("Hm.", signature="c2ln"), thinking("_REDACTED_THINKING", signature="ZGF0YQ=="), call("toolu_1")
        ),
        user(result("toolu_1")),
        assistant("Done."),
    ],
    "interactions": [
        assistant(
            thinking("Hm."), PNG, text("", signature="c2ln"), call("f", fidelity={"signature": "c2ln"}), call("f")
        ),
        user(result("f"), result("f")),
        assistant(DRAFT, PNG, "Done."),
    ],
}
OWN["generate_content"] = OWN["interactions"]


def test_every_client_type_for_chats_has_its_traits() -> None:
    assert set(TRAITS) == set(VENDORS) - {"openai-embedding"}
    for name, vendor in VENDORS.items():
        if name != "zai-official":
            assert vendor.traits("some-model") == TRAITS.get(name, Traits())


@pytest.mark.parametrize(
    ("name", "model", "reads"),
    [
        *(("zai-official", "glm-5.3", False), ("zai-official", "GLM-5.3-Flash", True)),
        *(("deepseek-official", "x/DeepSeek-V4-Pro-0701", False), ("deepseek-official", "deepseek-v5", True)),
        *(("openai-chat", "any", True), ("anthropic-official", "claude-opus-5-5", True)),
    ],
)
def test_models_without_eyes_refuse_images(name: str, model: str, reads: bool) -> None:
    assert VENDORS[name].reads_images(model) is reads
    assert ("image_url" in VENDORS[name].traits(model).refused) is not reads


def test_nothing_is_mended_for_embeddings() -> None:
    assert resolve("gemini-embedding-2", "key").vendor.traits("gemini-embedding-2") == Traits()
    assert resolve("text-embedding-4", "key").vendor.traits("text-embedding-4") == Traits()


ORIGINS = [
    ("gpt-5.5", {}, "openai"),
    ("gpt-5.5", {"base_url": "https://proxy.example/v1"}, "openai"),
    ("gpt-5.5", {"client_type": "openai-responses"}, "openai"),
    (
        "x/y",
        {"client_type": "openai-responses", "base_url": "https://gate.example:8443/v1"},
        "openai-responses@gate.example/x/y",
    ),
    ("gpt-5.5", {"client_type": "openai-chat"}, "openai-chat@api.openai.com/gpt-5.5"),
    ("claude-opus-5-5", {}, "anthropic"),
    ("claude-opus-5-5", {"client_type": "ant-messages"}, "anthropic"),
    ("claude-opus-5-5", {"base_url": "bedrock://us-east-1", "api_key": "AKID,secret"}, "anthropic"),
    ("claude", {"client_type": "ant-messages", "base_url": "https://gate.example"}, "ant-messages@gate.example/claude"),
    ("gemini-3.8-flash", {}, "google"),
    ("gemini-3.8-flash", {"client_type": "google-genai"}, "google"),
    ("deepseek-v4-pro", {}, "deepseek"),
    ("kimi-k3", {}, "moonshot"),
    ("glm-5.3", {}, "zai"),
    ("minimax-m3", {}, "minimax"),
    ("m", {"client_type": "mmsp"}, "mmsp@127.0.0.1/m"),
    ("m", {"client_type": "openai-chat-vllm-adapter"}, "openai-chat-vllm-adapter@127.0.0.1/m"),
]


@pytest.mark.parametrize(("model", "options", "expected"), ORIGINS)
def test_the_origin_names_who_can_read_what_the_model_signed(
    model: str, options: dict[str, str], expected: str
) -> None:
    route = resolve(model, **{"api_key": "key", **options})
    assert origin(route.vendor, model, route.base_url) == expected


def test_vertex_signs_with_keys_of_its_own() -> None:
    assert origin(vertex("project"), "gemini-3.8-flash", "https://aiplatform.googleapis.com") == "vertex"


@pytest.mark.parametrize("name", TRAITS)
def test_a_history_from_everywhere_can_be_built_once_it_is_repaired(name: str) -> None:
    vendor, model = VENDORS[name], MODELS.get(name, "some-model")
    messages, report = repair(MIXED, traits=vendor.traits(model), foreign={0, 2, 4, 6, 8})
    assert report
    check_messages(messages)
    dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
    (request,) = dialect.build(vendor, model, messages, {})
    assert "ZW5j" not in repr(request.body)


@pytest.mark.parametrize("name", [name for name in TRAITS if name != "mmsp"])
def test_a_history_of_its_own_passes_unchanged(name: str) -> None:
    messages = [user("Q"), *OWN[VENDORS[name].dialect], user("Q2")]
    repaired, report = repair(messages, traits=VENDORS[name].traits(MODELS.get(name, "")), own=range(len(messages)))
    assert all(a is b for a, b in zip(repaired, messages, strict=True))
    assert str(report) == "nothing to repair"
