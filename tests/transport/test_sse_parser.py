import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmsp_nb.protocol.errors import ResponseTooLargeError
from mmsp_nb.transport.sse import SSEParser, aiter_events, is_done


def parse(*chunks, limit=1 << 20):
    parser = SSEParser(limit)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'data: {"a":1}\n\n', [(None, b'{"a":1}')]),
        (b"data:x\n\n", [(None, b"x")]),
        (b"data:  x\n\n", [(None, b" x")]),
        (b"event: ping\ndata: {}\n\n", [("ping", b"{}")]),
        (b"event:ping\ndata:{}\n\n", [("ping", b"{}")]),
        (b"data: {}\nevent: late\n\n", [("late", b"{}")]),
        (b"event: a\n\ndata: x\n\n", [(None, b"x")]),
        (b"event: a\nevent\ndata: x\n\n", [(None, b"x")]),
        (b"event: a\ndata: 1\n\ndata: 2\n\n", [("a", b"1"), (None, b"2")]),
        (b"data: one\ndata: two\n\n", [(None, b"one\ntwo")]),
        (b"data: one\ndata\ndata: two\n\n", [(None, b"one\n\ntwo")]),
        (b": keep-alive\n\ndata: x\n\n", [(None, b"x")]),
        (b"data: x\n: in between\ndata: y\n\n", [(None, b"x\ny")]),
        (b"id: 7\nretry: 3\nunknown: z\ndata: x\n\n", [(None, b"x")]),
        (b"database: no\nevents: no\ndata: x\n\n", [(None, b"x")]),
        (b"data: \n\ndata:\n\ndata\n\nevent: only\n\n", []),
        (b"\n\n\n\ndata: x\n\n\n\n\ndata: y\n\n", [(None, b"x"), (None, b"y")]),
        (b"\xef\xbb\xbfdata: x\n\n", [(None, b"x")]),
        (b"data: \xef\xbb\xbfx\n\n", [(None, b"\xef\xbb\xbfx")]),
        (b"data: [DONE]", [(None, b"[DONE]")]),
        (b"data: x\n", [(None, b"x")]),
        (b"event: e\ndata: x", [("e", b"x")]),
        (b"data: x\r\n\r\ndata: y\r\n\r\n", [(None, b"x"), (None, b"y")]),
        (b"data: x\r\rdata: y\r\r", [(None, b"x"), (None, b"y")]),
        (b"data: x\r\n\n\r\ndata: y\n\r\n", [(None, b"x"), (None, b"y")]),
        ("data: a\u2028b\u0085c\x0bd\x0ce\x1cf\n\n".encode(), [(None, "a\u2028b\u0085c\x0bd\x0ce\x1cf".encode())]),
        ("event: näh\ndata: ü\n\n".encode(), [("näh", "ü".encode())]),
        (b"", []),
    ],
)
def test_reads_the_forms_servers_send(text, expected):
    assert parse(text) == expected
    assert parse(*(text[i : i + 1] for i in range(len(text)))) == expected


def reference(text: bytes):
    """The format's definition, written the slow way."""
    events, data, name = [], [], None
    text = text.removeprefix(b"\xef\xbb\xbf")
    for line in re.split(rb"\r\n|\r|\n", text + b"\n\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if joined := b"\n".join(data):
                events.append((name, joined))
            data, name = [], None
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace") or None
    return events


PIECES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: ",
        b"event",
        b": ",
        b":",
        b"x",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
        "ü".encode(),
    ]
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(PIECES, max_size=30).map(b"".join), st.lists(st.integers(0, 80), max_size=6))
def test_equals_the_definition_however_the_bytes_are_cut(text, cuts):
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert parse(*chunks) == reference(text)


def test_an_event_goes_out_with_the_chunk_that_completes_it():
    parser = SSEParser()
    assert parser.feed(b"data: x\n") == []
    assert parser.feed(b"\n") == [(None, b"x")]
    assert parser.feed(b"data: y\r") == []
    assert parser.feed(b"\r") == [(None, b"y")]
    assert parser.feed(b"\ndata: z\r\n\r") == [(None, b"z")]
    assert parser.feed(b"\n") == []
    assert parser.finish() == []


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 200 + b"\n\n"],
        [b"data: "] + [b"x" * 30] * 10,
        [b"data: xxxxxxxxxxxxxxxxxxxx\n"] * 10,
        [b":" + b"x" * 200],
        [b"data\n"] * 200,
        [b"data:\n"] * 200,
    ],
    ids=["whole frame", "endless line", "endless event", "endless comment", "endless empty lines", "and with colons"],
)
def test_a_line_or_event_beyond_the_limit_is_refused(chunks):
    with pytest.raises(ResponseTooLargeError) as caught:
        parse(*chunks, limit=100)
    assert caught.value.limit == 100


def test_the_limit_counts_one_event_and_not_the_stream():
    assert len(parse(*[b"data: " + b"x" * 50 + b"\n\n"] * 100, limit=100)) == 100
    assert len(parse(b"event: e\ndata: x\n\n" * 100, limit=100)) == 100


@pytest.mark.parametrize(
    ("text", "truncated"), [(b"data: {", True), (b"data: {}\n", False), (b"data: {}\n\n", False), (b"", False)]
)
def test_tells_whether_the_last_line_was_cut(text, truncated):
    parser = SSEParser()
    parser.feed(text)
    parser.finish()
    assert parser.truncated is truncated


def test_done_marker():
    assert is_done(b"[DONE]") and is_done("[DONE]") and is_done(b"[DONE] bye")
    assert not is_done(b"{}") and not is_done(b"") and not is_done("DONE")


async def test_async_wrapper_ends_with_the_bytes():
    async def chunks():
        for piece in (b"data: a\n", b"\ndata", b": b"):
            yield piece

    assert [event async for event in aiter_events(chunks())] == [(None, b"a"), (None, b"b")]
