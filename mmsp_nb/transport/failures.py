"""Turns what went wrong into typed errors whose messages say what to do. Pure."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import proxy_bypass

import httpx
import pydantic_core

from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol.errors import (
    AuthenticationError,
    ConnectionCutError,
    ConnectionFailedError,
    HTTPStatusError,
    RateLimitError,
    RequestTimeoutError,
    ResponseFormatError,
    TransportError,
    advised,
    preview,
    quoted,
    visible,
)
from mmsp_nb.transport.listeners import nothing_listens
from mmsp_nb.transport.redaction import url_secrets
from mmsp_nb.transport.wire import Timeouts, WireRequest, is_loopback, public_url

__all__ = [
    "REQUEST_ID_HEADERS",
    "ErrorParser",
    "Subject",
    "allow_more",
    "error_details",
    "is_disconnect",
    "is_permanent",
    "parse_json",
]

ErrorParser = Callable[[int | None, Any], tuple[str | None, str]]
"""Reads a provider's error document (status, parsed JSON): its ``(code, message)``."""

REQUEST_ID_HEADERS = (
    "x-request-id",
    "request-id",
    "x-goog-request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "cf-ray",
)
_TITLE = re.compile(r"<title[^>]*>\s*(.*?)\s*</title", re.I | re.S)


def parse_json(data: bytes) -> Any:
    """The JSON value in ``data``. ValueError if there is none.

    Half a surrogate pair and bytes that are no UTF-8 become U+FFFD.
    """
    try:
        return pydantic_core.from_json(data)
    except ValueError:
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        text = json.dumps(value, ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def allow_more(name: str) -> str:
    """The advice where the limit ``name`` of a `Transport` was met."""
    return f"Allow more with Transport({name}=...), if this is no fault of the server"


def error_details(status: int | None, payload: Any) -> tuple[str | None, str]:
    """Code and message out of the most widespread shape of an error document: the default `ErrorParser`."""
    error = payload.get("error", payload) if isinstance(payload, dict) else payload
    if not isinstance(error, dict):
        return None, error if isinstance(error, str) else ""
    code, message = (error.get(key) for key in ("code", "message"))
    return code if isinstance(code, str) else None, message if isinstance(message, str) else ""


class Subject:
    """What every error of one exchange has in common: whose it is, and what to keep out of it."""

    def __init__(
        self, request: WireRequest, client: str, parse_error: ErrorParser = error_details, key_env: str | None = None
    ) -> None:
        self.client = client
        self.url = public_url(request.url)
        self.host = urlsplit(self.url).netloc
        self.loopback = is_loopback(request.url)
        self._parse_error = parse_error
        self._key_env = key_env
        own = {secret for secret in url_secrets(request.url) if len(secret) >= 6}
        self._secrets = sorted({*request.headers.secrets(), *own}, key=len, reverse=True)

    def claim(self, error: BaseException) -> None:
        """Complete an error of a handler or parser, which does not know whose request it is."""
        if isinstance(error, TransportError) and error.__dict__.get("client") is None:
            error.__dict__.update(client=self.client, url=self.url)

    def clean(self, text: str) -> str:
        """``text`` in one line of visible characters, without the request's secrets; servers do quote them."""
        return visible(mask_keys(self.hide(text)))

    def hide(self, value: Any) -> Any:
        """A JSON value without the request's secrets; other values as they are."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "***")
            return value
        if isinstance(value, dict):
            return {key: self.hide(inner) for key, inner in value.items()}
        return [self.hide(inner) for inner in value] if isinstance(value, list) else value

    def details(self, status: int | None, payload: Any) -> tuple[str | None, str]:
        """The provider's code and message, cleaned and shortened."""
        code, message = self._parse_error(status, payload)
        return code and self.clean(code), quoted(self.clean(message))

    def connection_error(
        self, error: Exception, timeouts: Timeouts, *, received: int, tries: int = 1
    ) -> TransportError:
        """The error for a failed exchange of which ``received`` bytes of the body had come."""
        place: dict[str, Any] = {"client": self.client, "url": self.url}
        after = f" ({tries} tries)" if tries > 1 else ""
        if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
            limit = timeouts.loopback_connect if self.loopback else timeouts.connect
            hint = self._hint(error) or ". Is the machine online, and base_url right?"
            return ConnectionFailedError(f"no connection to {self.host} within {limit:g} s{after}{hint}", **place)
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            writing = isinstance(error, httpx.WriteTimeout)
            limit = timeouts.write if writing else timeouts.read
            what = "took nothing more" if writing else "sent nothing more" if received else "sent nothing"
            return RequestTimeoutError(
                f"{self.host} {what} for {limit:g} s. Ask again, or wait longer with Transport(timeout=...)",
                timeout=limit,
                **place,
            )
        if isinstance(error, httpx.DecodingError):
            return ResponseFormatError(
                f"the answer of {self.host} is compressed in a way that cannot be read. Ask again; if that stays so, "
                "look at the server or proxy in between",
                **place,
            )
        reason = self.clean(str(_root(error)) or type(error).__name__).rstrip(".")
        if received:
            return ConnectionCutError(
                f"the connection to {self.host} broke in the middle of the answer: {reason}. Ask again", **place
            )
        if isinstance(error, httpx.UnsupportedProtocol):
            return ConnectionFailedError(f"{self.url} is no http:// or https:// address. Correct base_url", **place)
        if is_disconnect(error):
            return ConnectionFailedError(
                f"{self.host} closed the connection without an answer{after}: {reason}. Ask again; if that stays so, "
                "check base_url and the server",
                **place,
            )
        if self.loopback and isinstance(_root(error), ConnectionRefusedError):
            return ConnectionFailedError(f"no connection to {self.host}: {nothing_listens(self.url)}", **place)
        return ConnectionFailedError(f"no connection to {self.host}{after}: {reason}{self._hint(error)}", **place)

    def _hint(self, error: Exception) -> str:
        root = _root(error)
        if isinstance(error, httpx.ProxyError):
            return ". The proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY refused"
        if isinstance(root, ssl.SSLCertVerificationError):
            return ". If a company's proxy is in between, let SSL_CERT_FILE name its certificates"
        if isinstance(root, ssl.SSLError):
            return ". Is this a port for https://? Correct base_url"
        if not self.loopback and (name := _proxy_variable(self.url)):
            return f". The way there is the proxy that {name} names: is it right, and running?"
        if isinstance(root, socket.gaierror):
            return ". Is the machine offline, or the base URL misspelt?"
        return ". Is the server running?" if self.loopback else ". Check base_url, and whether the server is up"

    def status_error(
        self, status: int, headers: Mapping[str, str], body: bytes, retry_after: float | None, tries: int
    ) -> HTTPStatusError:
        """The error for an answer that is no success."""
        try:
            payload = parse_json(body)
        except ValueError:
            text = body.decode("utf-8", "replace")
            title = _TITLE.search(text)
            code, message = None, preview(self.clean(title[1] if title else text))
            payload = message or None
        else:
            code, message = self.details(status, payload)
        kind: type[HTTPStatusError] = HTTPStatusError
        if status in (401, 403):
            kind = AuthenticationError
        elif status == 429:
            kind = RateLimitError
        said = ": ".join(filter(None, (code if code != message else None, message.rstrip(". "))))
        parts = [f"{self.host} answered with status {status}" + (f" ({said})" if said else "")]
        advice = self._advice(status, headers, retry_after)
        if tries > 1:
            parts.append(f"after {tries} tries")
        error = payload.get("error") or payload if isinstance(payload, dict) else payload
        text = "; ".join(parts)
        return kind(
            f"{text}. {advice}" if advice else advised(text, status),
            client=self.client,
            url=self.url,
            status=status,
            code=code,
            request_id=next(
                (preview(self.clean(headers[name])) for name in REQUEST_ID_HEADERS if name in headers), None
            ),
            retry_after=retry_after,
            error=self._cleaned(error),
        )

    def _advice(self, status: int, headers: Mapping[str, str], retry_after: float | None) -> str:
        if 300 <= status < 400:
            target = self._target(headers.get("location"))
            return f"It redirects to {target}; that is not followed, since the key would go along. Correct base_url"
        if status == 401:
            where = f"the key in {self._key_env} (or api_key=)" if self._key_env else "api_key="
            return f"Check {where}"
        if status == 404:
            return f"Check the model id and the base URL ({self.url})"
        if status == 429 and retry_after:
            return f"Wait {retry_after:.0f} s, or look at the account's limits and credit"
        return ""

    def _target(self, location: str | None) -> str:
        try:
            return preview(self.clean(public_url(urljoin(self.url, location)))) if location else "another address"
        except ValueError:
            return "an address that is none"

    def _cleaned(self, value: Any) -> Any:
        """A provider's error object without the request's secrets."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {key: self._cleaned(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._cleaned(item) for item in value]
        return value


def is_disconnect(error: BaseException) -> bool:
    """Whether an open connection broke, as opposed to none having come about."""
    return isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError | ConnectionResetError)


def is_permanent(error: BaseException, *, loopback: bool = False) -> bool:
    """Whether trying again cannot help. On this machine (``loopback``) a server runs, or somebody has to start it."""
    root = _root(error)
    if loopback and isinstance(root, ConnectionRefusedError):
        return not isinstance(error, httpx.ProxyError)
    return isinstance(error, httpx.UnsupportedProtocol) or isinstance(root, ssl.SSLCertVerificationError)


def _proxy_variable(url: str) -> str | None:
    """The variable of the environment whose proxy a request to ``url`` takes, if there is one."""
    parts = urlsplit(url)
    names = (f"{parts.scheme}_proxy", "all_proxy")
    found = [each for name in names for each in (name.upper(), name) if os.environ.get(each, "").strip()]
    return None if not found or proxy_bypass(parts.hostname or "") else found[0]


def _root(error: BaseException) -> BaseException:
    """The failure underneath the layers that wrapped it, as far as it says anything."""
    seen = {id(error)}
    while (inner := error.__cause__ or error.__context__) is not None and id(inner) not in seen and str(inner):
        seen.add(id(inner))
        error = inner
    return error
