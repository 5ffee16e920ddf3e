"""What the streams of Google's two chat dialects become."""

from __future__ import annotations

from typing import Any

import provider_recordings_google as recorded
import pytest
from provider_helpers import answer, decode
from provider_items import FULL, call, check, counts, picture, text, thinking
from provider_recordings_google import candidate, interaction, step, step_delta

from mmsp_nb.protocol.errors import IncompleteStreamError, MMSPError

SIGNED = {"signature": "c2ln"}

# Google -------------------------------------------------------------------------------------------------

NOTHING = counts(None, None, None, None)
SOUND = "audio/l16; rate=24000; channels=1"
INTERACTIONS = {
    "text": ([text("Ebb until.")], "stop", FULL),
    "thoughts and calls": (
        [thinking("Need it.", **SIGNED), call("tide", "c1", port="Brest"), call("tide", "c2", port="Dover")],
        "tool_call",
        FULL,
    ),
    "pictures": (
        [
            picture(b"\0\1\2", "image/png", "inline_thinking"),
            picture(b"\xfb\xff\xbf", "image/webp", **SIGNED),
            picture(b"\0\0\0", "image/jpeg"),
        ],
        "length",
        NOTHING,
    ),
    "sound": ([picture(b"\0\1\2\3\4\5", SOUND)], "stop", NOTHING),
    "odd audio": ([picture(b"\0\1\2", "audio/l16; rate=None; channels=None")], "unknown", NOTHING),
}


@pytest.mark.parametrize("name", recorded.INTERACTIONS)
def test_interactions_streams(name: str) -> None:
    check("google-official", recorded.INTERACTIONS[name], INTERACTIONS[name])


def test_interactions_skips_steps_and_deltas_that_it_does_not_know() -> None:
    events = [
        step(0, {"type": "google_search_call", "id": "g1", "arguments": {"queries": ["tide"]}}),
        step_delta(0, "google_search_call", arguments={"queries": ["tide"]}),
        step_delta(0, "arguments_delta", arguments='{"queries"'),
        {"event_type": "interaction.of.the.future"},
        {"event_type": "error"},
        {"event_type": "step.delta", "index": 1},
        step(1, {"type": "function_call", "name": "tide"}),
        interaction("requires_action"),
    ]
    assert answer("google-official", events)["content_items"] == [call("tide", "tide")]


GENERATE = {
    "text": ([text("Ebb until.")], "stop"),
    "thoughts and calls": (
        [
            thinking("Need it."),
            {**call("tide", "c1", port="Brest"), "fidelity": {"signature": "+/8="}},
            call("zone", "zone"),
        ],
        "tool_call",
    ),
    "signature at the end": ([text("Ebb.", **SIGNED)], "length"),
    "pictures": (
        [
            picture(b"\0\1\2", "image/png", "inline_thinking"),
            picture(b"\0\0\0", "image/png", **SIGNED),
            text("Here."),
        ],
        "unknown",
    ),
    "sound": ([picture(b"\0\1\2\3\4\5", "audio/L16;codec=pcm;rate=24000")], "stop"),
    "parts that mean nothing here": ([text("One.")], "stop"),
}


@pytest.mark.parametrize("name", recorded.GENERATE)
def test_generate_content_streams(name: str) -> None:
    check("google-genai", recorded.GENERATE[name], (*GENERATE[name], FULL))


def test_generate_content_second_signed_text_begins_an_item_of_its_own() -> None:
    events = [
        candidate({"text": "a", "thoughtSignature": "QUFB"}),
        candidate({"text": "b"}),
        candidate({"text": "c", "thoughtSignature": "QkJC"}, finish="STOP", usage=recorded.GENERATE_USAGE),
    ]
    items = answer("google-genai", events)["content_items"]
    assert items == [text("ab", signature="QUFB"), text("c", signature="QkJC")]


def test_generate_content_tolerates_what_is_missing() -> None:
    events: list[Any] = [
        {},
        {"candidates": []},
        {"candidates": [{}]},
        {"candidates": [{"content": {"role": "model"}}], "usageMetadata": {"totalTokenCount": 3}},
        candidate({"text": ""}, {"text": "", "thought": True}),
        candidate({"text": "a", "thought": True, "thoughtSignature": "no base64!"}),
        candidate({"inlineData": {"data": "AAAA"}}, finish="STOP", usage=recorded.GENERATE_USAGE),
    ]
    items = [thinking("a", signature="no base64!"), picture(b"\0\0\0", "application/octet-stream")]
    check("google-genai", events, (items, "stop", FULL))
    with pytest.raises(IncompleteStreamError):
        answer(
            "google-genai", [{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": recorded.GENERATE_USAGE}]
        )


def test_binary_data_that_is_no_base64_is_reported() -> None:
    for client_type, event in [
        ("google-genai", candidate({"inlineData": {"data": "%%%"}})),
        ("google-official", step_delta(0, "image", data="%%%")),
    ]:
        with pytest.raises(MMSPError, match="no base64"):
            decode(client_type, [event])
