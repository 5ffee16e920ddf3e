"""The values at the edge of the transport: a request, a handler, time limits."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

__all__ = ["KEYLESS", "Handler", "Headers", "Reply", "Timeouts", "WireRequest", "is_loopback", "public_url"]

KEYLESS = "replayed-without-a-key"
"""Stands for the key of a client that is made while a recording is replayed. It is never sent."""

_PUBLIC_HEADERS = frozenset({"accept", "accept-encoding", "connection", "content-type", "user-agent"})
"""Headers whose values may be shown. Any other may hold a key."""

_SECRET_NAMES = ("authorization", "api-key", "token", "cookie", "secret", "credential")


class Headers(dict[str, str]):
    """Request headers whose ``repr`` hides every value that might be a key."""

    def __repr__(self) -> str:
        shown = {name: value if name.lower() in _PUBLIC_HEADERS else "..." for name, value in self.items()}
        return f"Headers({shown})"

    def secrets(self) -> list[str]:
        """The values that must not appear in any output, longest first."""
        found: set[str] = set()
        for name, value in self.items():
            if any(part in name.lower() for part in _SECRET_NAMES):
                found.update((value, value.rpartition(" ")[2]))
        return sorted((value for value in found if len(value) >= 6), key=len, reverse=True)


@dataclass(slots=True, repr=False)
class WireRequest:
    """One HTTP request, complete with endpoint, key and encoded body.

    ``framing`` says what a successful answer is: a stream of server-sent events, one JSON document,
    or AWS event-stream messages.
    """

    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    content: bytes = field(default=b"", repr=False)
    framing: Literal["sse", "json", "aws"] = "sse"

    def __post_init__(self) -> None:
        if type(self.headers) is not Headers:
            self.headers = Headers(self.headers)

    def __repr__(self) -> str:
        # the URL may carry a key in its query, or a password
        url = public_url(self.url)
        return f"WireRequest({self.method!r}, {url!r}, headers={self.headers!r}, framing={self.framing!r})"


Reply = tuple[int, Mapping[str, str], AsyncIterator[bytes]]
"""Status, headers and decompressed body of an answer."""

Handler = Callable[[WireRequest], AbstractAsyncContextManager[Reply]]
"""Who gets the bytes: an ``@asynccontextmanager`` function of a request that yields a `Reply`.

The body may be read inside the context only; leaving it closes the connection, and that may happen
in another task. Exceptions out of the tree under TransportError pass through unchanged.
"""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds. ``read`` is the longest silence, not the longest answer."""

    connect: float = 10.0
    read: float = 600.0
    write: float = 30.0
    loopback_connect: float = 2.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"the timeout {name!r} must be a positive number of seconds, not {value!r}")


def is_loopback(url: str) -> bool:
    """Whether ``url`` leads to this machine."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def public_url(url: str) -> str:
    """``url`` without user, query and fragment: what may be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
