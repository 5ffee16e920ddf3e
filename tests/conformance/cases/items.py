"""Every kind of item in every role: how a message looks on the wire, and which items are refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from mmsp_nb.testing.streams import PNG

from ..rig import BASE, Case
from .common import KINDS, ask, item, message, said

DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
SIGNATURE = base64.b64encode(b"signed").decode()

CALL = item("tool_call", name="tide_table", arguments={"port": "Brést", "days": 2}, tool_call_id="c1")
OTHER = item("tool_call", name="now", arguments={}, tool_call_id="c2")
RESULT = item("tool_result", text="6.4 m", tool_call_id="c1")
THOUGHT = item("thinking", thinking="Hm.")


def conversation(*reply: dict[str, Any]) -> list[dict[str, Any]]:
    """A question, an assistant's message of these items, and another question."""
    return [said("Q1"), message("assistant", *reply), said("Q2")]


def after_call(*results: dict[str, Any], calls: tuple[dict[str, Any], ...] = (CALL,)) -> list[dict[str, Any]]:
    return [said("Q1"), message("assistant", *calls), message("user", *results)]


ROWS: dict[str, list[dict[str, Any]]] = {
    "two-texts": [said("One", "Two – ünïcode 🌊")],
    "empty-text": [message("user", item("text", text=""))],
    "text-then-empty-text": [message("user", item("text", text="a"), item("text", text=""))],
    "user-image-data": [message("user", item("text", text="Look"), item("image_url", image_url=DATA_URL))],
    "user-image-remote": [message("user", item("image_url", image_url=BASE + "/pic.png"), item("text", text="Look"))],
    "user-image-remote-jpg": [message("user", item("image_url", image_url=BASE + "/pic.jpg"))],
    "user-image-remote-unknown": [message("user", item("image_url", image_url=BASE + "/pic.bin"))],
    "user-image-only": [message("user", item("image_url", image_url=DATA_URL))],
    "user-image-bad-data-url": [message("user", item("image_url", image_url="data:image/png,plain"))],
    "assistant-image": conversation(item("image_url", image_url=DATA_URL)),
    "inline-data": [message("user", item("inline_data", data=PNG, mime_type="image/png"), item("text", text="Look"))],
    "inline-audio": [message("user", item("inline_data", data=b"abc", mime_type="audio/wav"))],
    "inline-pdf": [message("user", item("inline_data", data=b"%PDF", mime_type="application/pdf"))],
    "assistant-inline-data": conversation(item("inline_data", data=PNG, mime_type="image/png")),
    "assistant-inline-thinking": conversation(
        item("inline_thinking", data=PNG, mime_type="image/png"), item("text", text="There.")
    ),
    "assistant-text": conversation(item("text", text="A1"), item("text", text="A2")),
    "thinking-unsigned": conversation(THOUGHT, item("text", text="A")),
    "thinking-signed": conversation({**THOUGHT, "fidelity": {"signature": SIGNATURE}}, item("text", text="A")),
    "thinking-signed-empty": conversation(
        item("thinking", thinking="", fidelity={"signature": SIGNATURE}), item("text", text="A")
    ),
    "thinking-redacted": conversation(
        item("thinking", thinking="_REDACTED_THINKING", fidelity={"signature": SIGNATURE}), item("text", text="A")
    ),
    "thinking-only": conversation({**THOUGHT, "fidelity": {"signature": SIGNATURE}}),
    "thinking-between": conversation(
        *(item("text", text="A"), {**THOUGHT, "fidelity": {"signature": SIGNATURE}}, item("text", text="B"))
    ),
    "thinking-from-chat": conversation(
        {**THOUGHT, "fidelity": {"reasoning_field": "reasoning"}}, item("text", text="A")
    ),
    "thinking-from-chat-content": conversation(
        {**THOUGHT, "fidelity": {"reasoning_field": "reasoning_content"}}, item("text", text="A")
    ),
    "thinking-two-fields": conversation(
        {**THOUGHT, "fidelity": {"reasoning_field": "reasoning_content"}},
        {**THOUGHT, "fidelity": {"reasoning_field": "reasoning"}},
        item("text", text="A"),
    ),
    "thinking-encrypted": conversation(
        item("thinking", thinking="", fidelity={"encrypted_content": "ZW5j", "format": "f1", "reasoning_id": "rs1"}),
        item("text", text="A"),
    ),
    "thinking-summary": conversation(
        {**THOUGHT, "fidelity": {"channel": "summary", "encrypted_content": "ZW5j"}}, item("text", text="A")
    ),
    "thinking-content": conversation({**THOUGHT, "fidelity": {"channel": "content"}}, item("text", text="A")),
    "thinking-encrypted-no-channel": conversation(
        {**THOUGHT, "fidelity": {"encrypted_content": "ZW5j"}}, item("text", text="A")
    ),
    "thinking-then-call": [
        said("Q1"),
        message("assistant", {**THOUGHT, "fidelity": {"signature": SIGNATURE}}, CALL),
        message("user", RESULT),
    ],
    "reasoning-field-remembered": [
        said("Q1"),
        message("assistant", {**THOUGHT, "fidelity": {"reasoning_field": "reasoning_content"}}, item("text", text="A")),
        said("Q2"),
        message("assistant", CALL),
        message("user", RESULT),
    ],
    "phase": conversation(
        item("text", text="Looking", fidelity={"phase": "commentary"}),
        item("text", text="more"),
        item("text", text="Found", fidelity={"phase": "final_answer"}),
    ),
    "phase-around-a-call": [
        said("Q1"),
        message("assistant", item("text", text="Looking", fidelity={"phase": "commentary"}), CALL),
        message("user", RESULT, item("text", text="and?")),
    ],
    "call-and-result": after_call(RESULT),
    "call-with-text": [said("Q1"), message("assistant", item("text", text="I look"), CALL), message("user", RESULT)],
    "two-calls": after_call(
        item("tool_result", text="12:00", tool_call_id="c2"), RESULT, item("text", text="And?"), calls=(CALL, OTHER)
    ),
    "call-signed": after_call(RESULT, calls=({**CALL, "fidelity": {"signature": SIGNATURE}}, OTHER)),
    "call-id-equals-name": after_call(
        item("tool_result", text="x", tool_call_id="now"),
        calls=(item("tool_call", name="now", arguments={}, tool_call_id="now"),),
    ),
    "result-with-image": after_call({**RESULT, "images": [DATA_URL]}),
    "result-with-remote-image": after_call({**RESULT, "images": [BASE + "/pic.png"]}),
    "result-with-no-images": after_call({**RESULT, "images": []}),
    "result-empty-text": after_call(item("tool_result", text="", tool_call_id="c1")),
    "result-with-image-and-empty-text": after_call(item("tool_result", text="", tool_call_id="c1", images=[DATA_URL])),
    "result-for-unknown-call": [message("user", RESULT)],
    "result-without-id": after_call(item("tool_result", text="6.4 m", tool_call_id="")),
    "user-thinking": [message("user", THOUGHT, item("text", text="Hi"))],
    "embedding": conversation(item("embedding", embedding=[1.0])),
    "unknown-item": [message("user", {"type": "weird.done", "text": "x"})],
    "delta-item": [message("user", {"type": "text.delta", "text": "x"})],
    "no-items": [said("a"), message("user")],
    "legacy-names": [message("user", {"type": "text", "text": "old"})],
    "legacy-partial-call": [message("user", {"type": "partial_tool_call", "name": "f", "arguments": "{"})],
    "extra-keys": [
        {**said("a"), "note": "mine"},
        message("assistant", {**item("text", text="A"), "note": 1}),
        said("b"),
    ],
    "empty-list": [],
}

IMAGE_MODELS = {
    "deepseek-official": ("deepseek-v4-flash", "x/deepseek-v4-pro-0115"),
    "zai-official": ("glm-5.3-flash", "glm-5"),
}
IMAGE_ROWS = ("user-image-data", "user-image-remote", "result-with-image", "result-with-no-images")


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        for row, messages in ROWS.items():
            yield ask(kind, f"items/{row}", messages)
        for model in IMAGE_MODELS.get(kind.name, ()):
            for row in IMAGE_ROWS:
                yield ask(kind, f"items-{model}/{row}", ROWS[row], model=model)
