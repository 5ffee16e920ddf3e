import base64
import json
import sys
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from mmsp_nb.protocol.errors import ApiKeyRequiredError, AuthenticationError
from mmsp_nb.testing import Reply
from mmsp_nb.transport.google_auth import ServiceAccount


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def account(provider, rsa_key):
    return {
        "type": "service_account",
        "client_email": "tides@project.example",
        "private_key": pem(rsa_key),
        "private_key_id": "k1",
        "token_uri": provider.url("/token"),
    }


def part(text):
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def test_a_signed_assertion_is_exchanged_for_a_token(provider, transport, account, rsa_key):
    provider.add(Reply.json({"access_token": "ya29.tok", "expires_in": 3599}))
    service = ServiceAccount(json.dumps(account), clock=lambda: 1_790_000_000.5)
    assert await service.token(transport, client="C") == "ya29.tok"
    request = provider.last
    assert (request.method, request.path) == ("POST", "/token")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    form = parse_qs(request.body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    head, claims, signature = form["assertion"][0].split(".")
    assert part(head) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert part(claims) == {
        "iss": "tides@project.example",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": provider.url("/token"),
        "iat": 1_790_000_000,
        "exp": 1_790_003_600,
    }
    rsa_key.public_key().verify(
        base64.urlsafe_b64decode(signature + "=="), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
    )


async def test_a_token_is_used_until_shortly_before_its_end(provider, transport, account):
    now = 1000.0
    service = ServiceAccount(json.dumps(account), clock=lambda: now)
    provider.add(Reply.json({"access_token": "one", "expires_in": 3600}), Reply.json({"access_token": "two"}))
    assert await service.token(transport, client="C") == "one"
    now += 3299
    assert await service.token(transport, client="C") == "one"
    now += 1
    assert await service.token(transport, client="C") == "two"
    assert len(provider.requests) == 2


async def test_a_refused_account(provider, transport, account):
    provider.add(Reply.json({"error": "invalid_grant", "error_description": "account not found"}, 400))
    with pytest.raises(AuthenticationError, match=r"service account.*account not found") as caught:
        await ServiceAccount(json.dumps(account)).token(transport, client="C")
    assert (caught.value.status, caught.value.code, caught.value.client) == (400, "invalid_grant", "C")
    assert "PRIVATE KEY" not in f"{caught.value} {vars(caught.value)}"


async def test_an_answer_without_a_token(provider, transport, account):
    provider.add(Reply.json({"access_token": ""}))
    with pytest.raises(AuthenticationError, match="no access token"):
        await ServiceAccount(json.dumps(account)).token(transport, client="C")


@pytest.mark.parametrize(
    "change",
    [
        {"private_key": "nonsense"},
        {"private_key": pem(ec.generate_private_key(ec.SECP256R1()))},
        {"private_key": 3},
        {"client_email": None},
    ],
)
async def test_a_document_that_is_none(provider, transport, account, change):
    with pytest.raises(ApiKeyRequiredError, match="service account") as caught:
        await ServiceAccount(json.dumps(account | change)).token(transport, client="C")
    assert caught.value.client == "C"
    assert provider.requests == []


@pytest.mark.parametrize("document", ["{", "[]", "3"])
async def test_a_document_that_is_no_json_object(transport, document):
    with pytest.raises(ApiKeyRequiredError):
        await ServiceAccount(document).token(transport, client="C")


async def test_a_missing_package_is_named(monkeypatch, transport, account):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(ImportError, match=r"mmsp-nb\[vertex\]"):
        await ServiceAccount(json.dumps(account)).token(transport, client="C")


def test_it_shows_no_key(account):
    assert "PRIVATE" not in repr(ServiceAccount(json.dumps(account)))
