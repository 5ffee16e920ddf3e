"""Errors inside streams, and events that nobody knows."""

from __future__ import annotations

from typing import Any

import provider_recordings as recorded
import pytest
from provider_helpers import decode, route
from provider_recordings import grown
from provider_recordings_google import GENERATE, INTERACTIONS, candidate, step_delta

from mmsp_nb.protocol.errors import ProviderStreamError, UnknownEventError
from mmsp_nb.providers.vendors import VENDORS

# Errors and unknown events ------------------------------------------------------------------------------

STREAMING = [name for name in VENDORS if name not in ("openai-embedding", "mmsp")]
ERRORS: list[tuple[Any, str | None, int | None, str]] = [
    ({"error": {"code": 500, "message": "boom", "type": "server_error"}}, "server_error", 500, "boom"),
    ({"error": {"code": "429", "message": "slow down"}}, "429", 429, "slow down"),
    ({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}, "UNAVAILABLE", 503, "m"),
    ({"error": "out of memory"}, None, None, "out of memory"),
    ({"error": {"message": {"detail": "deep"}}}, None, None, "deep"),
    ({"error": {"error": {"type": "overloaded_error", "message": "busy"}}}, "overloaded_error", 529, "busy"),
    (
        {"error": {"code": 502, "message": '{"error": {"code": "rate_limit_exceeded", "message": "in"}}'}},
        "rate_limit_exceeded",
        429,
        "in",
    ),
    ({"error": {"code": 502}}, "502", 502, "unknown error (502)"),
]


@pytest.mark.parametrize("client_type", STREAMING)
@pytest.mark.parametrize(("event", "code", "status", "message"), ERRORS)
def test_error_in_a_stream_is_raised_by_every_dialect(
    client_type: str, event: Any, code: str | None, status: int | None, message: str
) -> None:
    with pytest.raises(ProviderStreamError) as caught:
        decode(client_type, [event])
    found = caught.value
    assert (found.code, found.status, found.client) == (code, status, VENDORS[client_type].client)
    assert str(found).startswith(f"{message}. ")  # then what helps
    assert isinstance(found, RuntimeError)


@pytest.mark.parametrize(
    ("client_type", "event", "code", "status"),
    [
        (
            "anthropic-official",
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            "overloaded_error",
            529,
        ),
        (
            "anthropic-official",
            {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}},
            "rate_limit_error",
            429,
        ),
        (
            "openai-official",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "m"}},
            },
            "server_error",
            500,
        ),
        (
            "openai-official",
            {"type": "error", "code": "rate_limit_exceeded", "message": "m", "param": None},
            "rate_limit_exceeded",
            429,
        ),
        (
            "openai-chat",
            {"choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": {"code": 502, "message": "m"}},
            "502",
            502,
        ),
        (
            "google-official",
            {
                "event_type": "error",
                "error": {"code": "https://ai.google.dev/errors/resource_exhausted", "message": "m"},
            },
            "https://ai.google.dev/errors/resource_exhausted",
            429,
        ),
    ],
)
def test_error_events_of_the_vendors(client_type: str, event: Any, code: str, status: int) -> None:
    with pytest.raises(ProviderStreamError) as caught:
        decode(client_type, [event])
    assert str(caught.value).startswith("m. ")
    assert (caught.value.code, caught.value.status) == (code, status)


def test_failed_response_without_a_reason_still_fails() -> None:
    with pytest.raises(ProviderStreamError, match="failed"):
        decode("openai-official", [{"type": "response.failed", "response": {"status": "failed", "error": None}}])


UNKNOWN: dict[str, Any] = {
    "openai-official": {"type": "response.of.the.future", "x": "y" * 500},
    "deepseek-official": grown("reasoning_summary_text", 0, "rs_1", "x"),
    "anthropic-official": {"type": "message_of_the_future"},
    "google-official": step_delta(0, "video", data=""),
    "google-genai": candidate({"executableCode": {"code": "1"}}),
}


@pytest.mark.parametrize("client_type", UNKNOWN)
def test_unknown_events_are_skipped_unless_debugging(client_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    event = UNKNOWN[client_type]
    for value in (None, "", "0", "False", " off ", "no"):
        if value is None:
            monkeypatch.delenv("MMSP_DEBUG", raising=False)
        else:
            monkeypatch.setenv("MMSP_DEBUG", value)
        assert all(raw["type"] in ("usage", "finish") for raw in decode(client_type, [event]))
    monkeypatch.setenv("MMSP_DEBUG", "1")
    with pytest.raises(UnknownEventError) as caught:
        decode(client_type, [event])
    assert caught.value.client == VENDORS[client_type].client
    assert 0 < len(caught.value.event) <= 170


@pytest.mark.parametrize("client_type", STREAMING)
def test_known_events_raise_nothing_while_debugging(client_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMSP_DEBUG", "1")
    by_dialect = {
        "chat": recorded.CHAT,
        "responses": recorded.RESPONSES,
        "messages": recorded.MESSAGES,
        "interactions": INTERACTIONS,
        "generate_content": GENERATE,
    }
    skipped = {"keepalive and tools that run there", "parts that mean nothing here"}
    if route(client_type).vendor.rules.get("thinking_from") == ("content",):
        skipped.add("summary")
    streams = by_dialect[VENDORS[client_type].dialect]
    assert all(decode(client_type, events) for name, events in streams.items() if name not in skipped)
