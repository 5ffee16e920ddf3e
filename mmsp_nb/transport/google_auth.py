"""Access tokens for a Google service account: a signed assertion is exchanged for a token (OAuth 2.0).

Needs the package ``cryptography`` (``pip install 'mmsp-nb[vertex]'``), and only here.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from mmsp_nb.protocol.errors import ApiKeyRequiredError, AuthenticationError, HTTPStatusError
from mmsp_nb.transport.wire import Headers, WireRequest

if TYPE_CHECKING:
    from mmsp_nb.protocol.abort import AbortSignal
    from mmsp_nb.transport.http import Transport

__all__ = ["ServiceAccount"]

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_URI = "https://oauth2.googleapis.com/token"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFETIME = 3600
EARLY = 300
"""Seconds before its end at which a token is replaced."""


class ServiceAccount:
    """Hands out access tokens for one service account, a new one only when it is needed.

    Args:
        document: the account's JSON document, with ``client_email`` and ``private_key``.
        clock: gives Unix seconds; replaceable in tests.
    """

    def __init__(self, document: str, *, clock: Callable[[], float] = time.time) -> None:
        self._document = document
        self._clock = clock
        self._token = ""
        self._until = 0.0

    def __repr__(self) -> str:
        return "ServiceAccount(...)"

    async def token(self, transport: Transport, *, client: str, signal: AbortSignal | None = None) -> str:
        """A token that is good for some minutes at least.

        Raises:
            ApiKeyRequiredError: the document is no service account's.
            AuthenticationError: Google refuses the account.
            ImportError: the package ``cryptography`` is missing.
            And what `Transport.send` raises.
        """
        now = self._clock()
        if now >= self._until:
            account = self._account(client)
            form = urlencode({"grant_type": GRANT, "assertion": _assertion(account, int(now), client)})
            request = WireRequest(
                "POST",
                account.get("token_uri") or TOKEN_URI,
                Headers({"Content-Type": "application/x-www-form-urlencoded"}),
                form.encode(),
                "json",
            )
            try:
                async with await transport.send(
                    request, client=client, signal=signal, parse_error=_details
                ) as response:
                    answer = await response.json()
            except HTTPStatusError as error:
                said = {name: value for name, value in error.__dict__.items() if name in AuthenticationError.fields}
                raise AuthenticationError(f"Google gives no token for the service account: {error}", **said) from None
            token, lifetime = answer.get("access_token"), answer.get("expires_in")
            if not isinstance(token, str) or not token:
                raise AuthenticationError("Google's answer holds no access token", client=client, url=request.url)
            self._token = token
            self._until = now + (lifetime if isinstance(lifetime, int | float) else LIFETIME) - EARLY
        return self._token

    def _account(self, client: str) -> dict[str, Any]:
        try:
            account = json.loads(self._document)
            complete = all(isinstance(account[key], str) for key in ("client_email", "private_key"))
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            raise _bad_key(client, "it must hold client_email and private_key")
        return dict(account)


def _assertion(account: dict[str, Any], now: int, client: str) -> str:
    """A signed claim that this is the service account (a JSON Web Token, RS256)."""
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        raise ImportError("Vertex AI needs the package cryptography: pip install 'mmsp-nb[vertex]'") from None
    header = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id", "")}
    claims = {
        "iss": account["client_email"],
        "scope": SCOPE,
        "aud": account.get("token_uri") or TOKEN_URI,
        "iat": now,
        "exp": now + LIFETIME,
    }
    text = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    try:
        key = serialization.load_pem_private_key(account["private_key"].encode(), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise _bad_key(client, "its private_key cannot be read")
    return f"{text}.{_base64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _bad_key(client: str, why: str) -> ApiKeyRequiredError:
    return ApiKeyRequiredError(f"the key is no service account's JSON document: {why}", client=client)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _details(status: int | None, payload: Any) -> tuple[str | None, str]:
    """OAuth errors: ``{"error": code, "error_description": text}``."""
    if not isinstance(payload, dict):
        return None, ""
    return str(payload.get("error") or "") or None, str(payload.get("error_description") or "")
