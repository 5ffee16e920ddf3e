"""A history that moves from vendor to vendor can be sent to each of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from mmsp_nb.protocol.repairs import Traits, repair
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.providers.traits import TRAITS
from mmsp_nb.providers.vendors import VENDORS

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
    assert set(TRAITS) == set(VENDORS) - {"openai-embedding", "mmsp"}
    assert {name: vendor.traits for name, vendor in VENDORS.items() if name in TRAITS} == TRAITS
    assert VENDORS["mmsp"].traits == Traits()


@pytest.mark.parametrize("name", TRAITS)
def test_a_history_from_everywhere_can_be_built_once_it_is_repaired(name: str) -> None:
    vendor = VENDORS[name]
    messages, report = repair(MIXED, traits=vendor.traits, foreign={0, 2, 4, 6, 8})
    assert report
    check_messages(messages)
    dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
    (request,) = dialect.build(vendor, MODELS.get(name, "some-model"), messages, {})
    assert b"ZW5j" not in repr(request.body).encode()


@pytest.mark.parametrize("name", TRAITS)
def test_a_history_of_its_own_passes_unchanged(name: str) -> None:
    messages = [user("Q"), *OWN[VENDORS[name].dialect], user("Q2")]
    repaired, report = repair(messages, traits=VENDORS[name].traits)
    assert all(a is b for a, b in zip(repaired, messages, strict=True))
    assert str(report) == "nothing to repair"
