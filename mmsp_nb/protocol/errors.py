"""Every error the package raises, as one documented tree.

::

    MMSPError (ValueError)
    ├── RoutingError                 no client type for this model id, or an unknown client type
    ├── ApiKeyRequiredError          a key is missing, or the environment's key may not go to this URL
    ├── UnsupportedParameterError    a config key or value that this client or model refuses
    ├── UnsupportedContentError      a valid item that this model cannot read
    ├── InvalidMessageError          a message or item that cannot be sent
    ├── UnsupportedOperationError    the client cannot do this at all
    ├── ConcurrentCallError          a second stateful call while one is running
    ├── StreamProtocolError          raw deltas that cannot form a legal stream
    ├── ToolCallArgumentParseError   a tool call whose arguments are no JSON object
    ├── IncompleteStreamError        the stream ended without usage or without a finish reason
    ├── EmptyResponseError           the stream was complete but said nothing
    ├── ProviderStreamError          the provider reported an error inside a stream (also RuntimeError)
    ├── UnknownEventError            debug mode only: an event that the decoder does not know
    ├── UpstreamError                an MMSP server reported an error
    └── TransportError               the bytes did not come, or were refused
        ├── HTTPStatusError          an answer with a status that is no success
        │   ├── AuthenticationError  401 or 403
        │   └── RateLimitError       429
        ├── ConnectionFailedError    no connection, or none of the answer arrived
        ├── ConnectionCutError       the connection broke after the answer had begun
        ├── RequestTimeoutError      nothing arrived in time
        ├── ResponseFormatError      an answer that is not what the protocol promises
        ├── ResponseTooLargeError    a line, an item or a body beyond its limit
        └── CassetteMissError        a recording holds no answer to this request

    AbortError (asyncio.CancelledError)   an AbortSignal ended the call

Messages are for people and are no part of the contract; classes and attributes are.
``client`` is always the adapter's class name, for instance ``"AnthropicOfficialClient"``.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

__all__ = [
    "AbortError",
    "ApiKeyRequiredError",
    "AuthenticationError",
    "CassetteMissError",
    "ConcurrentCallError",
    "ConnectionCutError",
    "ConnectionFailedError",
    "EmptyResponseError",
    "HTTPStatusError",
    "IncompleteStreamError",
    "InvalidMessageError",
    "MMSPError",
    "ProviderStreamError",
    "RateLimitError",
    "RequestTimeoutError",
    "ResponseFormatError",
    "ResponseTooLargeError",
    "RoutingError",
    "StreamProtocolError",
    "ToolCallArgumentParseError",
    "TransportError",
    "UnknownEventError",
    "UnsupportedContentError",
    "UnsupportedOperationError",
    "UnsupportedParameterError",
    "UpstreamError",
    "advised",
    "preview",
    "quoted",
    "visible",
]


def advised(message: str, status: int | None) -> str:
    """``message``, which somebody else has written, and what helps with an error of that HTTP status."""
    advice = _ADVICE.get(status or 500) or _ADVICE[500 if (status or 500) >= 500 else 400]
    return message if message.endswith(advice) else f"{message.rstrip(' .')}. {advice}"


_ADVICE = {
    400: "Check what it names: the model id, a setting, or the length of the conversation",
    401: "Check the key",
    402: "Look at the account's credit",
    403: "The key may not do this, or not from here",
    404: "Check the model id and base_url",
    408: "Ask again",
    409: "Ask again",
    413: "The request is too large: send less, or smaller images",
    425: "Ask again",
    429: "Wait a little, or look at the account's limits and credit",
    500: "The trouble is on the server's side: try again later",
}


_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal would obey, or write in another order."""


def visible(text: str) -> str:
    """``text`` in one line of characters that are only seen."""
    return _UNSEEN.sub("\ufffd", " ".join(text.split()))


def quoted(text: str) -> str:
    """What a provider says, for an error: in one line, of up to 1,000 characters, and no word of it in parts."""
    line = visible(text)
    return line if len(line) <= 1000 else f"{line[: max(line.rfind(' ', 0, 1000), 700)]}..."


def preview(text: str) -> str:
    """Shorten ``text`` for an error: whole up to 160 characters, else its first and last 72."""
    return text if len(text) <= 160 else f"{text[:72]}...[truncated]...{text[-72:]}"


class MMSPError(ValueError):
    """Base of every error of the package. Keyword arguments become attributes.

    Subclasses list the attributes they carry, with defaults, in ``fields``; all of them are always
    present. Instances survive pickling and copying.
    """

    fields: dict[str, Any] = {}

    def __init__(self, message: str = "", **attributes: Any) -> None:
        unknown = attributes.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no attribute {sorted(unknown)[0]!r}")
        super().__init__(message)
        self.message = message
        self.__dict__.update(self.fields)
        self.__dict__.update(attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), dict(self.__dict__)


class RoutingError(MMSPError):
    """No adapter for this model id, or a client type name that does not exist."""

    fields = {"model": None, "client_type": None}


class ApiKeyRequiredError(MMSPError):
    """No key, or a base URL that the environment's key must not be sent to (then ``base_url`` is set)."""

    fields = {"client": None, "client_type": None, "api_key_env": None, "base_url_env": None, "base_url": None}


class UnsupportedParameterError(MMSPError):
    """``parameter`` is the config key that the client or the model refuses."""

    fields = {"client": None, "parameter": None}


class UnsupportedContentError(MMSPError):
    """``item_type`` is the type of a valid item which this model cannot read."""

    fields = {"client": None, "item_type": None}


class InvalidMessageError(MMSPError):
    """A message that cannot be sent; ``message_index`` counts from 0 in the list that was to be sent."""

    fields = {"client": None, "item_type": None, "message_index": None}


class UnsupportedOperationError(MMSPError):
    """The client cannot do ``operation`` at all (for instance ``list_models`` on Bedrock)."""

    fields = {"client": None, "operation": None}


class ConcurrentCallError(MMSPError):
    """A stateful call was started while another one of the same client is unfinished."""

    fields = {"client": None}


class StreamProtocolError(MMSPError):
    """The provider's deltas cannot form a legal stream."""

    fields = {"client": None}


class ToolCallArgumentParseError(MMSPError):
    """The model's arguments for a tool are no JSON object; no call is made of them."""

    fields = {
        "client": None,
        "tool_name": None,
        "tool_call_id": None,
        "raw_arguments_length": 0,
        "raw_arguments_preview": "",
    }


class IncompleteStreamError(MMSPError):
    """The stream ended early. ``missing`` names what never came; retrying is sensible."""

    fields = {"client": None, "missing": (), "finish_reason": None, "usage_metadata": None}


class EmptyResponseError(MMSPError):
    """A complete stream without a done item, or with thinking only."""

    fields = {"client": None, "finish_reason": None, "usage_metadata": None}


class ProviderStreamError(MMSPError, RuntimeError):
    """An error the provider sent inside a stream; ``status`` is the status usual for that ``code``."""

    fields = {"client": None, "code": None, "status": None}


class UnknownEventError(MMSPError):
    """Debug mode (``MMSP_DEBUG``): an event that the decoder does not know, shortened."""

    fields = {"client": None, "event": None}


class UpstreamError(MMSPError):
    """What an MMSP server reported: ``status``, ``error_type`` and the ``error`` object as sent."""

    fields = {"client": None, "status": None, "error_type": None, "error": None}


class TransportError(MMSPError):
    """Base of everything that can go wrong between us and the endpoint. ``url`` holds no secrets."""

    fields = {"client": None, "url": None}


class HTTPStatusError(TransportError):
    """The endpoint refused: ``status``, the provider's own ``code``, ``request_id``, ``retry_after`` in seconds."""

    fields = {
        "client": None,
        "url": None,
        "status": None,
        "code": None,
        "request_id": None,
        "retry_after": None,
        "error": None,
    }


class AuthenticationError(HTTPStatusError):
    """Status 401 or 403: the key is wrong, or may not do this."""


class RateLimitError(HTTPStatusError):
    """Status 429: too many requests or tokens; see ``retry_after``."""


class ConnectionFailedError(TransportError):
    """No connection, or it broke before a byte of the answer came."""


class ConnectionCutError(TransportError):
    """The connection broke after the answer had begun. Nothing is retried then."""


class RequestTimeoutError(TransportError):
    """Nothing arrived in time; ``timeout`` is the limit in seconds that ran out."""

    fields = {"client": None, "url": None, "timeout": None}


class ResponseFormatError(TransportError):
    """An answer that is not what was asked for: HTML with status 200, a frame that is no JSON, ..."""

    fields = {"client": None, "url": None, "status": None}


class ResponseTooLargeError(TransportError):
    """A line, an item, an image or a body beyond ``limit`` bytes."""

    fields = {"client": None, "url": None, "limit": None}


class CassetteMissError(TransportError):
    """A recording holds no answer to a request. ``differences`` says in what the nearest recorded one differs."""

    fields = {"client": None, "url": None, "cassette": None, "differences": ()}


class AbortError(asyncio.CancelledError):
    """An `AbortSignal` ended the call. ``reason`` is what was given to ``abort``, or None.

    It derives from `asyncio.CancelledError`, hence not from `Exception`: code written for the
    protocol, which promises a CancelledError, keeps working (quirk Q-07).
    """

    def __init__(self, reason: Any = None) -> None:
        super().__init__(*(() if reason is None else (reason,)))
        self.reason = reason
