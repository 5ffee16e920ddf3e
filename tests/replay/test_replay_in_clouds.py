"""Bedrock and Vertex AI: no credential and no token is written, and none is needed to replay."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from contextlib import asynccontextmanager

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from talks import user, without_times

from mmsp_nb import AutoLLMClient, Transport
from mmsp_nb.testing import FakeProvider, Reply, streams
from mmsp_nb.transport.cassette import Cassette


def aws_chunk(data: bytes | str) -> bytes:
    inner = data if isinstance(data, bytes) else json.dumps(data).encode()
    payload = json.dumps({"bytes": base64.b64encode(inner).decode()}).encode()
    head = b"".join(
        bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
        for name, value in ((b":message-type", b"event"), (b":event-type", b"chunk"))
    )
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


async def answers(client: AutoLLMClient) -> list:
    return without_times([event async for event in client.streaming_response([user("hi")])])


async def test_bedrock(tmp_path, no_provider_keys):
    frames = [aws_chunk(frame.data) for frame in streams.frames("tools", "messages")]

    @asynccontextmanager
    async def cloud(request):
        async def body():
            for frame in frames:
                yield frame

        yield 200, {}, body()

    path = tmp_path / "talk.jsonl"

    def client(key, cassette):
        return AutoLLMClient("claude-opus-5-5", key, "bedrock://eu-west-1", transport=Transport(handler=cassette))

    first = await answers(client("AKIDEXAMPLE12345,se/cret+0123456789", Cassette(path, "all", handler=cloud)))
    assert not any(part in path.read_text() for part in ("AKIDEXAMPLE", "se/cret", "Signature"))
    assert await answers(client(None, Cassette(path, "none"))) == first


async def test_vertex(tmp_path, no_provider_keys):
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "talk.jsonl"
    with FakeProvider() as provider:
        account = {"project_id": "tides", "client_email": "a@b.example", "token_uri": provider.url("/token")}
        document = json.dumps({**account, "private_key": private.decode()})
        provider.when("/token", Reply.json({"access_token": "ya29.a-token-0123456789", "expires_in": 3600}))
        provider.when(":streamGenerateContent", streams.reply("text", "generate_content"))

        def client(key, mode):
            transport = Transport(handler=Cassette(path, mode))
            return AutoLLMClient("gemini-3.8-flash", key, provider.url(), "google-genai", transport=transport)

        first = await answers(client(document, "all"))
        count = len(provider.requests)
        text = path.read_text()
        assert not any(part in text for part in ("ya29", "assertion", "PRIVATE", "a@b.example"))
        assert await answers(client(None, "none")) == first
        assert await answers(client(document, "none")) == first
        assert len(provider.requests) == count
