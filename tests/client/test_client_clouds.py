"""Claude over Amazon Bedrock, Gemini over Vertex AI."""

import base64
import json
import struct
import zlib
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from talk import collect, kinds, user

from mmsp_nb import AuthenticationError, AutoLLMClient, ProviderStreamError, Transport, UnsupportedOperationError
from mmsp_nb.testing import Reply, streams
from mmsp_nb.transport.aws import sign
from mmsp_nb.transport.wire import Headers, WireRequest


def aws_message(payload, **headers):
    head = b"".join(
        bytes([len(name) + 1])
        + f":{name}".replace("_", "-").encode()
        + b"\x07"
        + struct.pack(">H", len(v))
        + v.encode()
        for name, v in headers.items()
    )
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def aws_chunk(event):
    inner = base64.b64encode(json.dumps(event).encode()).decode()
    return aws_message(json.dumps({"bytes": inner}).encode(), message_type="event", event_type="chunk")


class Cloud:
    """A handler that answers every request with one status and body."""

    def __init__(self, *pieces, status=200):
        self.pieces, self.status, self.requests = pieces, status, []

    @asynccontextmanager
    async def __call__(self, request):
        self.requests.append(request)

        async def body():
            for piece in self.pieces:
                yield piece

        yield self.status, {}, body()


def bedrock(cloud, **options):
    return AutoLLMClient(
        "claude-opus-5-5",
        "AKID,se/cret",
        "bedrock://eu-west-1",
        transport=Transport(handler=cloud, retries=0),
        **options,
    )


async def test_bedrock_streams_and_signs():
    frames = streams.frames("tools", "messages")
    cloud = Cloud(b"".join(aws_chunk(frame.data) for frame in frames))
    events = await collect(bedrock(cloud).streaming_response([user("hi")]))
    assert kinds(events)[-2:] == ["tool_call.done", "stop"]
    [request] = cloud.requests
    path = "/model/claude-opus-5-5/invoke-with-response-stream"
    assert request.url == f"https://bedrock-runtime.eu-west-1.amazonaws.com{path}"
    assert not {"x-api-key", "X-Api-Key"} & set(request.headers)
    again = WireRequest("POST", request.url, Headers(), request.content)
    moment = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    sign(again, "AKID,se/cret", region="eu-west-1", now=moment)
    assert request.headers["Authorization"] == again.headers["Authorization"]
    assert "se/cret" not in str(dict(request.headers))


async def test_a_bedrock_exception_in_the_stream():
    start = aws_chunk(streams.frames("text", "messages")[0].data)
    raised = aws_message(b'{"message":"slow down"}', message_type="exception", exception_type="throttlingException")
    with pytest.raises(ProviderStreamError, match="slow down") as caught:
        await collect(bedrock(Cloud(start, raised)).streaming_response([user("hi")]))
    assert caught.value.status == 429


async def test_a_bedrock_refusal():
    cloud = Cloud(b'{"message":"not authorized"}', status=403)
    with pytest.raises(AuthenticationError, match="not authorized"):
        await collect(bedrock(cloud).streaming_response([user("hi")]))


async def test_bedrock_has_no_listing():
    with pytest.raises(UnsupportedOperationError) as caught:
        await bedrock(Cloud()).list_models()
    assert caught.value.operation == "list_models"


async def test_vertex_fetches_a_token_once_and_streams(provider):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    document = {
        "project_id": "tides",
        "client_email": "a@b.example",
        "token_uri": provider.url("/token"),
        "private_key": key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    }
    provider.when("/token", Reply.json({"access_token": "ya29.tok", "expires_in": 3600}))
    provider.when(":streamGenerateContent", streams.reply("text", "generate_content"))
    client = AutoLLMClient("gemini-3.8-flash", json.dumps(document), provider.url(), "google-genai")
    for _ in range(2):
        events = await collect(client.streaming_response_stateful(user("hi")))
        assert events[-1]["finish_reason"] == "stop"
    assert [request.path.rpartition("/")[2] for request in provider.requests] == [
        "token",
        "gemini-3.8-flash:streamGenerateContent",
        "gemini-3.8-flash:streamGenerateContent",
    ]
    assert provider.last.headers["authorization"] == "Bearer ya29.tok"
    assert "/projects/tides/locations/global/" in provider.last.path
    assert "x-goog-api-key" not in provider.last.headers
    assert "PRIVATE" not in repr(client) + repr(vars(client._endpoint))
