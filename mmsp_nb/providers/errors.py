"""Provider errors as data: what a vendor's error object says, and the HTTP status usual for its code.

The shapes differ by vendor, gateway and local server, and errors also arrive inside streams with
status 200. Everything here is tolerant: an unknown shape becomes a short text, never an exception.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mmsp_nb.protocol.errors import ProviderStreamError, UnknownEventError, preview

__all__ = ["error_details", "stream_error", "unknown_event", "usual_status"]

_STATUS: dict[str, int] = {
    # Anthropic
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # OpenAI and those who speak like it
    "invalid_api_key": 401,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "model_not_found": 404,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "invalid_prompt": 400,
    "server_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "engine_overloaded_error": 503,
    "unavailable_error": 503,
    # Google
    "invalid_argument": 400,
    "failed_precondition": 400,
    "out_of_range": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "aborted": 409,
    "resource_exhausted": 429,
    "cancelled": 499,
    "internal": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
    # Amazon
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "servicequotaexceededexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}

_CODE_KEYS = ("code", "type", "status", "__type", "status_code")
_MESSAGE_KEYS = ("message", "msg", "Message", "status_msg", "detail", "error_description")
_WRAPPERS = ("error", "errors", "base_resp", "response")


def usual_status(code: Any) -> int | None:
    """The HTTP status usual for a provider's error ``code``; a number between 400 and 599 is its own.

    A code that is a URI counts by its last segment. None for what is not known.
    """
    text = str(code if code is not None else "").strip().lower()
    if text.isdigit():
        return int(text) if 400 <= int(text) <= 599 else None
    return _STATUS.get(text.rsplit("/", 1)[-1].rsplit("#", 1)[-1])


def error_details(status: int | None, payload: Any) -> tuple[str | None, str]:
    """``(code, message)`` of an error answer; ``payload`` is its parsed JSON, or its text.

    ``code`` is the provider's own word for it, a text code rather than a number, or None. ``message``
    is never empty: without one it says "HTTP <status>", or "unknown error" when there is no status either.
    """
    code, message = _details(payload, 0)
    fallback = f"HTTP {status}" if status else "unknown error"
    return code, message or (f"{fallback} ({code})" if code else fallback)


def stream_error(client: str, payload: Any, name: str | None = None) -> ProviderStreamError:
    """The exception for an error that came inside a stream; ``name`` is a code known from elsewhere."""
    code, message = error_details(None, payload)
    numbers = [row.get("code") for row in _layers(payload) if isinstance(row.get("code"), int)]
    status = usual_status(name or code) or next((s for s in map(usual_status, numbers) if s), None)
    return ProviderStreamError(message, client=client, code=name or code, status=status)


def unknown_event(client: str, event: Any) -> None:
    """Called for each event that a decoder does not know: UnknownEventError in debug mode, else nothing."""
    if os.environ.get("MMSP_DEBUG", "").strip().lower() not in {"", "0", "false", "no", "off"}:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False, default=repr)
        raise UnknownEventError(
            f"{client} does not know this event: {preview(text)}", client=client, event=preview(text)
        )


def _layers(payload: Any) -> list[dict[str, Any]]:
    """The error object and what it is wrapped in, the innermost first."""
    layers: list[dict[str, Any]] = []
    while payload and len(layers) < 5:
        if isinstance(payload, list):
            payload = payload[0]
        elif isinstance(payload, dict):
            layers.insert(0, payload)
            payload = next((payload[key] for key in _WRAPPERS if isinstance(payload.get(key), dict | list)), None)
        else:
            break
    return layers


def _details(payload: Any, depth: int) -> tuple[str | None, str]:
    layers = _layers(payload)
    if not layers:
        text = payload if isinstance(payload, str) else "" if payload is None else json.dumps(payload, default=repr)
        return None, " ".join(text.split())[:200]
    words = [row[key] for row in layers for key in _CODE_KEYS if key in row]
    code = next((w for w in words if isinstance(w, str) and w and w != "error" and not w.isdigit()), None)
    code = code or next((str(w) for w in words if isinstance(w, int | str) and w and w != "error"), None)
    texts = [row.get(key) for row in layers for key in _MESSAGE_KEYS] + [row.get("error") for row in layers]
    message = next((t for t in texts if isinstance(t, str) and t.strip()), None)
    if message is None:
        rest = next((t for t in texts if t), None)
        message = json.dumps(rest, ensure_ascii=False, default=repr) if rest else ""
    elif depth < 2 and message.lstrip().startswith("{"):
        # gateways put the upstream's error object as text into their own
        try:
            inner_code, inner = _details(json.loads(message), depth + 1)
        except ValueError:
            pass
        else:
            code, message = inner_code or code, inner or message
    return code, message.strip()
