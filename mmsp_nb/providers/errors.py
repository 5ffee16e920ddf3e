"""Provider errors as data: what a vendor's error object says, and the HTTP status usual for its code.

The shapes differ by vendor, gateway and local server, and errors also arrive inside streams with
status 200. Everything here is tolerant: an unknown shape becomes a short text, never an exception.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mmsp_nb.protocol.errors import ProviderStreamError, UnknownEventError, advised, preview, quoted

__all__ = ["error_details", "stream_error", "unknown_event", "usual_status"]

_CODES_BY_STATUS = {
    400: "invalid_request_error invalid_prompt context_length_exceeded exceed_context_size_error bad_request"
    " invalid_argument failed_precondition out_of_range validationexception",
    401: "authentication_error invalid_api_key unauthenticated unauthorized",
    402: "billing_error",
    403: "permission_error permission_denied forbidden accessdeniedexception",
    404: "not_found_error model_not_found not_found resourcenotfoundexception",
    408: "modeltimeoutexception",
    409: "aborted",
    413: "request_too_large",
    424: "modelstreamerrorexception",
    429: "rate_limit_error rate_limit_exceeded insufficient_quota resource_exhausted too_many_requests"
    " throttlingexception servicequotaexceededexception",
    499: "cancelled",
    500: "api_error server_error internal_error internal_server_error internal internalserverexception",
    501: "unimplemented",
    503: "unavailable unavailable_error service_unavailable engine_overloaded_error serviceunavailableexception",
    504: "timeout_error deadline_exceeded gateway_timeout",
    529: "overloaded_error",
}
_STATUS = {code: status for status, codes in _CODES_BY_STATUS.items() for code in codes.split()}

_CODE_KEYS = ("code", "type", "status", "__type", "status_code")
_MESSAGE_KEYS = ("message", "msg", "Message", "status_msg", "detail", "error_description")
_WRAPPERS = ("error", "errors", "base_resp", "response")


def usual_status(code: Any) -> int | None:
    """The HTTP status usual for a provider's error ``code``; a number between 400 and 599 is its own.

    A code that is a URI counts by its last segment. None for what is not known.
    """
    text = ("" if code is None else str(code)).strip().lower()
    if text.isdigit():
        return int(text) if 400 <= int(text) <= 599 else None
    return _STATUS.get(text.rsplit("/", 1)[-1].rsplit("#", 1)[-1])


def error_details(status: int | None, payload: Any) -> tuple[str | None, str]:
    """``(code, message)`` of an error answer; ``payload`` is its parsed JSON, or its text.

    ``code`` is the provider's own word for it, a text code rather than a number, or None. ``message``
    is never empty: without one it says "HTTP <status>", or "unknown error" when there is no status either.
    """
    code, message = _details(payload)
    fallback = f"HTTP {status}" if status else "unknown error"
    return code, message or (f"{fallback} ({code})" if code else fallback)


def stream_error(client: str, payload: Any, name: str | None = None) -> ProviderStreamError:
    """The exception for an error that came inside a stream; ``name`` is a code known from elsewhere."""
    code, message = error_details(None, payload)
    candidates = [name, code, *(row.get("code") for row in _layers(payload))]
    status = next((status for status in map(usual_status, candidates) if status), None)
    return ProviderStreamError(advised(quoted(message), status), client=client, code=name or code, status=status)


def unknown_event(client: str, event: Any) -> None:
    """Called for each event that a decoder does not know: UnknownEventError in debug mode, else nothing."""
    if os.environ.get("MMSP_DEBUG", "").strip().lower() not in {"", "0", "false", "no", "off"}:
        text = preview(json.dumps(event, ensure_ascii=False, default=repr))
        raise UnknownEventError(f"{client} does not know this event: {text}", client=client, event=text)


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


def _details(payload: Any, nested: bool = False) -> tuple[str | None, str]:
    layers = _layers(payload)
    if not layers:
        text = payload if isinstance(payload, str) else json.dumps(payload, default=repr) if payload else ""
        return None, " ".join(text.split())[:200]
    words = [str(row[key]) for row in layers for key in _CODE_KEYS if isinstance(row.get(key), str | int)]
    words = [word for word in words if word and word != "error"]
    code = next((word for word in words if not word.lstrip("-").isdigit()), words[0] if words else None)
    texts = [row[key] for row in layers for key in _MESSAGE_KEYS if row.get(key)]
    texts += [row["error"] for row in layers if isinstance(row.get("error"), str)]
    message = next((text for text in texts if isinstance(text, str)), None)
    if message is None:
        message = json.dumps(texts[0], ensure_ascii=False, default=repr) if texts else ""
    if not nested and message.lstrip().startswith("{"):
        # gateways put the upstream's error object as text into their own
        try:
            inner_code, inner = _details(json.loads(message), nested=True)
        except ValueError:
            pass
        else:
            code, message = inner_code or code, inner or message
    return code, message.strip()
