import itertools
import json
import struct
import zlib
from datetime import UTC, datetime

import pytest
from exchange import post, read
from hypothesis import given, settings
from hypothesis import strategies as st

from mmsp_nb.protocol.errors import ConnectionCutError, ResponseFormatError, ResponseTooLargeError
from mmsp_nb.testing import Reply
from mmsp_nb.transport.aws import EventStreamParser, sign
from mmsp_nb.transport.wire import Headers, WireRequest

KEY = "AKIDEXAMPLE,wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def message(payload=b"", **headers):
    """One event-stream message; ``event_type="x"`` becomes the header ``:event-type``. Bytes are taken as encoded."""
    head = b""
    for name, value in headers.items():
        encoded = f":{name.replace('_', '-')}".encode()
        text = value if isinstance(value, bytes) else value.encode()
        data = text if isinstance(value, bytes) else b"\x07" + struct.pack(">H", len(text)) + text
        head += bytes([len(encoded)]) + encoded + data
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def parse(*chunks, limit=1 << 20):
    parser = EventStreamParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


CHUNK = message(b'{"bytes":"e30="}', message_type="event", event_type="chunk", content_type="application/json")


# messages


def test_an_event_has_its_type_as_name():
    assert parse(CHUNK) == [("chunk", b'{"bytes":"e30="}')]


def test_an_exception_has_its_type_as_name():
    raised = message(b'{"message":"slow down"}', message_type="exception", exception_type="throttlingException")
    assert parse(raised) == [("throttlingException", b'{"message":"slow down"}')]


@pytest.mark.parametrize(("code", "name"), [("Internal", "InternalException"), ("fooException", "fooException")])
def test_an_error_without_a_payload_reads_like_an_exception(code, name):
    [(given, data)] = parse(message(message_type="error", error_code=code, error_message="oh"))
    assert (given, json.loads(data)) == (name, {"message": "oh"})


def test_a_message_without_payload_is_passed_over():
    assert parse(message(event_type="initial-response")) == []


def test_headers_of_every_type_are_skipped_or_read():
    odd = {
        "a": b"\x00",
        "b": b"\x01",
        "c": b"\x02x",
        "d": b"\x03xx",
        "e": b"\x04xxxx",
        "f": b"\x05xxxxxxxx",
        "g": b"\x06\x00\x03abc",
        "h": b"\x08xxxxxxxx",
        "i": b"\x09" + b"x" * 16,
    }
    assert parse(message(b"{}", **odd, event_type="näme")) == [("näme", b"{}")]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 3 * len(CHUNK)), max_size=8))
def test_however_the_bytes_are_cut(cuts):
    text = CHUNK * 3
    edges = [0, *sorted(cuts), len(text)]
    assert parse(*(text[a:b] for a, b in itertools.pairwise(edges))) == [("chunk", b'{"bytes":"e30="}')] * 3


@pytest.mark.parametrize("at", [0, 5, 9, 14, 40, len(CHUNK) - 6, len(CHUNK) - 1])
def test_damage_is_noticed(at):
    damaged = bytearray(CHUNK)
    damaged[at] ^= 1
    with pytest.raises(ResponseFormatError):
        parse(bytes(damaged))


def test_headers_that_make_no_sense_are_refused():
    with pytest.raises(ResponseFormatError, match="headers"):
        parse(message(b"{}", a=b"\x63"))


def test_a_stream_that_ends_inside_a_message_was_cut():
    parser = EventStreamParser()
    assert parser.feed(CHUNK + CHUNK[:20]) == [("chunk", b'{"bytes":"e30="}')]
    with pytest.raises(ConnectionCutError):
        parser.finish()


def test_a_message_beyond_the_limit_is_refused_by_its_head():
    big = message(b"x" * 1000, event_type="chunk")
    with pytest.raises(ResponseTooLargeError) as caught:
        parse(big[:12], limit=500)
    assert caught.value.limit == 500


async def test_messages_over_http(provider, transport):
    provider.add(Reply([CHUNK + CHUNK[:7], CHUNK[7:]]), Reply([CHUNK, CHUNK[:9]]))
    assert await read(transport, post(provider.url(), framing="aws")) == [("chunk", b'{"bytes":"e30="}')] * 2
    with pytest.raises(ConnectionCutError) as caught:
        await read(transport, post(provider.url("/x"), framing="aws"))
    assert (caught.value.client, caught.value.url) == ("TestClient", provider.url("/x"))


# signatures: the values are those of AWS's published examples and of its own library


def test_the_published_example():
    request = WireRequest("GET", "https://example.amazonaws.com/", Headers())
    sign(request, KEY, region="us-east-1", service="service", now=datetime(2015, 8, 30, 12, 36, tzinfo=UTC))
    assert request.headers == {
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        ),
    }


def test_a_path_with_encoded_characters_and_a_body():
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.vendor.model-1%3A0/invoke-with-response-stream"
    request = WireRequest("POST", url, Headers({"authorization": "old"}), b'{"a":1}')
    sign(request, KEY, region="eu-west-1", now=datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC))
    assert request.headers["Authorization"].endswith(
        "Signature=ed04588d44ae4211af83e2d8cc571617bd21d9a1d83ba15df215a197a5c7ba41"
    )
    assert "authorization" not in request.headers
    assert "wJalr" not in str(dict(request.headers))
