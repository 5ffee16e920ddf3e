"""Histories that no vendor would take as they are: cut off, odd, full of things only one vendor knows."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from switch_kinds import KINDS, PNG_URL, Kind, entries, opaque_in, picture, send, user
from wire_rules import check

from mmsp_nb.protocol.repairs import BEGINNING, IMAGE_BELOW, NO_RESULT
from mmsp_nb.testing import FakeProvider, streams

OPAQUE = base64.b64encode(b"opaque elsewhere".ljust(30)).decode()
ELSEWHERE = "elsewhere"


def assistant(*items: Any) -> dict[str, Any]:
    return {**user(*items), "role": "assistant"}


def thinking(text: str, **fidelity: Any) -> dict[str, Any]:
    return {"type": "thinking.done", "thinking": text, **({"fidelity": fidelity} if fidelity else {})}


def call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_call.done", "name": "tide_table", "arguments": {}, "tool_call_id": call_id, **more}


def result(call_id: str, text: str = "ok") -> dict[str, Any]:
    return {"type": "tool_result.done", "text": text, "tool_call_id": call_id}


def inline(mime_type: str = "image/png", kind: str = "inline_data") -> dict[str, Any]:
    fidelity = {"fidelity": {"signature": OPAQUE}}
    return {"type": f"{kind}.done", "data": streams.PNG, "mime_type": mime_type, **fidelity}


SIGNED = {"fidelity": {"signature": OPAQUE}}
ROUGH: dict[str, list[dict[str, Any]]] = {
    "begins-with-the-assistant": [assistant("Hello."), user("Hi"), assistant("Yes?")],
    "ends-with-open-calls": [user("Tides?"), assistant("I look.", call("a"), call("b"))],
    "open-call-in-the-middle": [
        user("Tides?"),
        assistant(call("a")),
        assistant("Sorry."),
        user("Hm"),
        assistant("Yes?"),
    ],
    "half-of-the-results": [
        user("Tides?"),
        assistant(call("a"), call("b")),
        user(result("b"), "go on"),
        assistant("High."),
    ],
    "late-result": [
        *(user("Tides?"), assistant(call("a")), user("wait"), assistant("I do.")),
        *(user("now", result("a")), assistant("High.")),
    ],
    "result-of-nobody": [user("Tides?"), assistant("High."), user(result("zz"), "And now?"), assistant("Low.")],
    "results-after-text": [user("Tides?"), assistant(call("a")), user("Here:", result("a")), assistant("High.")],
    "ids-used-again": [
        *(
            user("Tides?"),
            assistant(call("tide_table"), call("tide_table")),
            user(result("tide_table"), result("tide_table")),
        ),
        *(assistant(call("tide_table")), user(result("tide_table")), assistant("High.")),
    ],
    "odd-ids": [
        user("Tides?"),
        assistant(call("ü.1/" * 20), call("ü:1/" * 20)),
        user(result("ü:1/" * 20), result("ü.1/" * 20)),
    ],
    "nothing-but-thinking": [
        user("Tides?"),
        assistant(thinking("Hm.", signature=OPAQUE)),
        user("Well?"),
        assistant("High."),
    ],
    "hidden-thinking": [
        *(user("Tides?"), assistant(thinking("", encrypted_content=OPAQUE, format="x"), call("a")), user(result("a"))),
        *(assistant(thinking("_REDACTED_THINKING", signature=OPAQUE), "High."), user("Sure?"), assistant("Yes.")),
    ],
    "empty-texts": [user("Tides?", ""), assistant("", {"type": "text.done", "text": " ", **SIGNED}, "High.")],
    "signed-everything": [
        *(user("Tides?"), assistant(thinking("Hm.", **SIGNED["fidelity"]), call("a", **SIGNED), call("b"))),
        *(user(result("a"), result("b")), assistant({"type": "text.done", "text": "High.", **SIGNED})),
    ],
    "images-by-the-model": [
        *(
            user("Draw"),
            assistant(inline(kind="inline_thinking"), "Here:", inline(), call("a")),
            user(result("a"), "More"),
        ),
        assistant(inline(), "Done."),
    ],
    "sound": [user("Say", inline("audio/wav")), assistant(inline("audio/l16; rate=24000"), "Said.")],
    "two-of-a-role": [user("Tides?"), user(picture()), assistant("High"), assistant("tide.")],
    "embedding": [
        user("Tides?"),
        assistant({"type": "embedding.done", "embedding": [0.5]}),
        user("?"),
        assistant("High."),
    ],
}


def foreign(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**message, "origin": ELSEWHERE} for message in history]


async def sent(kind: Kind, history: list[dict[str, Any]], provider: FakeProvider, model: str | None = None) -> Any:
    client = kind.client(provider, model)
    client.set_history(foreign(history))
    last = history[-1]
    calls = [item["tool_call_id"] for item in last["content_items"] if item["type"] == "tool_call.done"]
    body = await send(client, user("And then?"), provider, kind.says("now"))
    check(kind, body, opaque_in(client.get_history()) - {OPAQUE})
    if calls:
        assert NO_RESULT in json.dumps(body)
    assert "And then?" in json.dumps(entries(kind, body)[-1])
    again = await send(client, user("Bye"), provider, kind.says("later"))
    check(kind, again, opaque_in(client.get_history()) - {OPAQUE})
    assert entries(kind, again)[: len(entries(kind, body))] == entries(kind, body)
    return body


@pytest.mark.parametrize("rough", ROUGH)
async def test_every_vendor_takes_a_rough_history_of_another(rough: str, fake_provider: FakeProvider) -> None:
    for kind in KINDS.values():
        await sent(kind, ROUGH[rough], fake_provider)


MODELS_WITHOUT_EYES = [("zai-official", "glm-5.3"), ("deepseek-official", "deepseek-v4-pro")]


@pytest.mark.parametrize(("name", "model"), MODELS_WITHOUT_EYES)
async def test_a_model_without_eyes_gets_no_image_of_another_vendors_history(
    name: str, model: str, fake_provider: FakeProvider
) -> None:
    history = [
        *(
            user("Look", picture()),
            assistant(call("a")),
            user({**result("a"), "images": [PNG_URL]}),
            assistant(inline()),
        ),
        *(user("See?"), assistant(call("b")), user({**result("b"), "images": []}), assistant("Yes.")),
    ]
    body = await sent(KINDS[name], history, fake_provider, model)
    assert "image/png" not in json.dumps(body)
    assert json.dumps(body).count("left out]") == 3


async def test_what_a_model_drew_is_shown_to_the_next_one(fake_provider: FakeProvider) -> None:
    body = await sent(KINDS["anthropic-official"], ROUGH["images-by-the-model"][:2], fake_provider)
    drawing, question = body["messages"][1:]
    assert [block.get("text") for block in drawing["content"] if block["type"] == "text"] == ["Here:", IMAGE_BELOW]
    assert [block["type"] for block in question["content"]] == ["tool_result", "text", "image", "text"]
    assert base64.b64decode(question["content"][2]["source"]["data"]) == streams.PNG


async def test_a_beginning_that_is_missing_is_said_to_be(fake_provider: FakeProvider) -> None:
    body = await sent(KINDS["google-genai"], ROUGH["begins-with-the-assistant"], fake_provider)
    assert body["contents"][0] == {"role": "user", "parts": [{"text": BEGINNING}]}
