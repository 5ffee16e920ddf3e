"""Error documents of the vendors and gateways, and the statuses usual for their codes."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.providers.errors import error_details, usual_status

DOCUMENTS: dict[str, tuple[Any, str | None, str]] = {
    "openai": (
        {
            "error": {
                "message": "no such model",
                "type": "invalid_request_error",
                "param": None,
                "code": "model_not_found",
            }
        },
        "model_not_found",
        "no such model",
    ),
    "openai without a code": (
        {"error": {"message": "bad", "type": "invalid_request_error", "param": "x", "code": None}},
        "invalid_request_error",
        "bad",
    ),
    "anthropic": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"},
        "overloaded_error",
        "Overloaded",
    ),
    "google": (
        {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "x"}]}},
        "RESOURCE_EXHAUSTED",
        "Quota",
    ),
    "google in a list": (
        [{"error": {"code": 400, "message": "Bad", "status": "INVALID_ARGUMENT"}}],
        "INVALID_ARGUMENT",
        "Bad",
    ),
    "amazon": (
        {"message": "The security token is invalid", "__type": "UnrecognizedClientException"},
        "UnrecognizedClientException",
        "The security token is invalid",
    ),
    "amazon, capital": ({"Message": "Missing token"}, None, "Missing token"),
    "z.ai": ({"error": {"code": "1113", "message": "balance"}}, "1113", "balance"),
    "z.ai, other": ({"code": 500, "msg": "404 NOT_FOUND", "success": False}, "500", "404 NOT_FOUND"),
    "minimax": ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "1004", "login fail"),
    "vllm": (
        {"object": "error", "message": "too long", "type": "BadRequestError", "param": None, "code": 400},
        "BadRequestError",
        "too long",
    ),
    "llama.cpp": (
        {"error": {"code": 400, "message": "exceeds", "type": "exceed_context_size_error", "n_ctx": 4096}},
        "exceed_context_size_error",
        "exceeds",
    ),
    "ollama": ({"error": "model 'x' not found"}, None, "model 'x' not found"),
    "openrouter": (
        {"error": {"message": "Provider returned error", "code": 429, "metadata": {"provider_name": "X"}}},
        "429",
        "Provider returned error",
    ),
    "fastapi": ({"detail": "Not Found"}, None, "Not Found"),
    "fastapi, list": ({"detail": [{"msg": "field required"}]}, None, '[{"msg": "field required"}]'),
    "several": ({"errors": [{"code": "a_code", "message": "first"}, {"message": "second"}]}, "a_code", "first"),
    "a document in a message": (
        {"error": {"message": '{"error": {"type": "api_error", "message": "inner"}}', "code": 500}},
        "api_error",
        "inner",
    ),
    "half a document in a message": ({"error": {"message": '{"error": '}}, None, '{"error":'),
    "text": ("  upstream\n timed   out ", None, "upstream timed out"),
    "empty": ("", None, "HTTP 418"),
    "null": (None, None, "HTTP 418"),
    "a list of nothing": ([], None, "HTTP 418"),
    "code alone": ({"error": {"code": "teapot"}}, "teapot", "HTTP 418 (teapot)"),
    "a number": (7, None, "7"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_code_and_message_of_an_error_document(name: str) -> None:
    payload, code, message = DOCUMENTS[name]
    assert error_details(418, payload) == (code, message)


def test_message_is_never_empty() -> None:
    assert error_details(None, None) == (None, "unknown error")
    assert error_details(503, {}) == (None, "HTTP 503")


def test_long_text_is_cut_and_deep_nesting_ends() -> None:
    assert len(error_details(None, "x" * 1000)[1]) == 200
    deep: Any = {"message": "bottom"}
    for _ in range(50):
        deep = {"error": deep}
    assert error_details(500, deep) == (None, "HTTP 500")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("RESOURCE_EXHAUSTED", 429),
        ("throttlingException", 429),
        ("invalid_api_key", 401),
        ("https://example.com/errors/permission_denied", 403),
        ("https://example.com/errors#not_found", 404),
        (503, 503),
        ("429", 429),
        (200, None),
        (7, None),
        ("teapot", None),
        ("", None),
        (None, None),
    ],
)
def test_usual_status_of_a_code(code: Any, status: int | None) -> None:
    assert usual_status(code) == status
