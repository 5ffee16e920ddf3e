"""The fake provider, seen from the other end of its sockets."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import socket
import threading

import httpx
import pytest

from mmsp_nb.testing import Cut, FakeProvider, Gate, Reply
from mmsp_nb.testing.connection import Connection


@pytest.fixture
def provider():
    with FakeProvider() as running:
        yield running


def post(provider: FakeProvider, path: str = "/v1/chat/completions", **options) -> httpx.Response:
    return httpx.post(provider.url(path), timeout=10, **options)


def raw(provider: FakeProvider, request: bytes = b"GET / HTTP/1.1\r\n\r\n") -> bytes:
    """Everything the server sends on one connection, byte for byte."""
    with socket.create_connection(("127.0.0.1", provider.port), timeout=10) as sock:
        sock.sendall(request)
        received = bytearray()
        while data := sock.recv(65536):
            received += data
        return bytes(received)


def test_replies_of_the_queue_are_given_in_order(provider):
    provider.add(Reply.json({"n": 1}), Reply.json({"n": 2}, 503))
    first, second = post(provider), post(provider)
    assert (first.status_code, first.json()) == (200, {"n": 1})
    assert (second.status_code, second.json()) == (503, {"n": 2})
    assert provider.remaining == 0


def test_without_a_reply_left_the_answer_says_so(provider):
    answer = post(provider, "/v1/responses")
    assert answer.status_code == 400
    assert "no reply left for POST /v1/responses" in answer.json()["error"]["message"]


def test_rules_win_over_the_queue_and_end_after_their_times(provider):
    provider.add(Reply.json("queue"), Reply.json("queue again"))
    provider.when("/models", Reply.json("models"), times=1)
    provider.when(lambda request: request.body == {"a": 1}, lambda request: Reply.json(request.body))
    assert post(provider, "/v1/models").json() == "models"
    assert post(provider, "/v1/models").json() == "queue"
    assert post(provider, json={"a": 1}).json() == {"a": 1}
    assert post(provider, json={"a": 2}).json() == "queue again"


def test_a_script_that_fails_is_reported_as_an_answer(provider):
    provider.when("/x", lambda request: request.body["missing"])
    answer = post(provider, "/x", json={})
    assert answer.status_code == 500
    assert "KeyError" in answer.text


def test_requests_are_recorded_with_their_parts(provider):
    provider.add(Reply.json({}), Reply.json({}), Reply.json({}))
    post(provider, "/v1/x?alt=sse&a=%20b", json={"ü": [1]}, headers={"Authorization": "Bearer k", "X-Twice": "1"})
    post(provider, content=b"\xff\x00")
    httpx.get(provider.url("/models/a%2Fb"))
    first, second, third = provider.requests
    assert (first.method, first.path, first.query) == ("POST", "/v1/x", {"alt": "sse", "a": " b"})
    assert first.body == {"ü": [1]}
    assert first.headers["authorization"] == "Bearer k"
    assert first.auth == ["authorization"]
    assert second.body == b"\xff\x00"
    assert second.auth == []
    assert (third.method, third.path, third.body) == ("GET", "/models/a/b", None)
    assert provider.last is third


def test_a_recorded_request_shows_no_key_in_its_repr(provider):
    provider.add(Reply.json({}))
    post(provider, headers={"x-api-key": "sk-secret"})
    assert "secret" not in repr(provider.last)
    assert "secret" not in repr(provider)


def test_a_chunked_request_body_is_read(provider):
    provider.add(Reply.json({}))

    def pieces():
        yield b'{"a"'
        yield b": 1}"

    post(provider, content=pieces())
    assert provider.last.body == {"a": 1}


def test_a_connection_serves_several_requests(provider):
    provider.add(Reply.json(1), Reply([b"x", b"y"]), Reply.json(2))
    with httpx.Client() as client:
        answers = [client.get(provider.url("/")).text for _ in range(3)]
    assert answers == ["1", "xy", "2"]
    assert provider.accepted_connections == 1
    provider.wait_until_idle()


def test_a_dropped_connection_promised_keep_alive(provider):
    provider.add(Reply([b"x"], drop_after=True), Reply([b"y"]))
    received = raw(provider)
    assert b"connection: keep-alive" in received
    assert received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_every_framing_delivers_the_body(provider, framing):
    provider.add(Reply([b"ab", b"", b"c" * 1000], framing=framing))
    answer = httpx.get(provider.url("/"))
    assert answer.content == b"ab" + b"c" * 1000
    assert ("content-length" in answer.headers) == (framing == "length")


def test_bytewise_chunks_arrive_as_chunks_of_one_byte(provider):
    provider.add(Reply(["wave 🌊".encode()], drop_after=True).bytewise())
    _, _, body = raw(provider).partition(b"\r\n\r\n")
    assert body == b"".join(b"1\r\n%c\r\n" % byte for byte in "wave 🌊".encode()) + b"0\r\n\r\n"


def test_re_chunking_keeps_the_bytes():
    reply = Reply([b"abc", b"defgh", b"i"])
    assert list(reply.split(4).body) == [b"abcd", b"efgh", b"i"]
    assert list(reply.bytewise().body) == [bytes([c]) for c in b"abcdefghi"]
    assert list(reply.joined().body) == [b"abcdefghi"]
    assert reply.shuffled(7).content == b"abcdefghi"
    assert list(reply.shuffled(7, 3).body) == list(reply.shuffled(7, 3).body)
    assert len({tuple(reply.shuffled(seed, 3).body) for seed in range(20)}) > 5


@pytest.mark.parametrize("at", range(10))
def test_cuts_and_ends_keep_exactly_so_many_bytes(at):
    reply = Reply([b"abc", b"defgh", b"i"])
    parts = list(reply.cut(at).body)
    assert b"".join(parts[:-1]) == b"abcdefghi"[:at]
    assert parts[-1] == Cut("reset")
    assert reply.end(at).content == b"abcdefghi"[:at]
    gate = Gate()
    held = list(reply.hold(gate, at).body)
    assert b"".join(held[: held.index(gate)]) == b"abcdefghi"[:at]
    assert reply.hold(gate, at).content == b"abcdefghi"


def test_a_polite_cut_ends_in_the_middle_of_the_body(provider):
    provider.add(Reply([b"abcdef"]).cut(3, "fin"))
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"), httpx.stream("GET", provider.url("/")) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == b"abc"
        next(chunks)


def test_a_torn_connection_is_a_reset(provider):
    provider.add(Reply([b"abcdef"]).cut(3, "reset"))
    with pytest.raises(httpx.ReadError), httpx.stream("GET", provider.url("/")) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == b"abc"
        next(chunks)


@pytest.mark.parametrize("how", ["fin", "reset"])
def test_no_answer_closes_before_the_first_byte(provider, how):
    provider.add(Reply.no_answer(how))
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        post(provider)
    assert len(provider.requests) == 1


def test_a_gate_holds_the_answer_until_it_is_opened(provider):
    gate = Gate()
    provider.add(Reply([b"ab"]).hold(gate, 1))
    with httpx.stream("GET", provider.url("/")) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == b"a"
        gate.arrived()
        assert not gate.is_open
        gate.open()
        assert next(chunks) == b"b"


def test_a_gate_before_the_headers_holds_even_those(provider):
    gate = Gate()
    provider.add(Reply([b"a"], before=gate))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(provider.url("/"), timeout=0.05)
    gate.arrived()
    provider.wait_until_idle()


async def test_a_gate_works_from_async_code():
    gate = Gate()
    async with FakeProvider(Reply([b"ab"]).hold(gate, 1)) as provider, httpx.AsyncClient() as client:
        asking = asyncio.create_task(client.get(provider.url("/")))
        await gate.wait_arrived()
        assert not asking.done()
        gate.open()
        assert (await asking).content == b"ab"


def test_a_gate_that_nobody_comes_to_times_out():
    with pytest.raises(TimeoutError, match="did not come to this gate"):
        Gate().arrived(0.01)


@pytest.mark.parametrize("where", ["gate", "endless"])
def test_a_client_that_leaves_is_noticed(provider, where):
    reply = Reply([b"x"]).hold(Gate(), 1) if where == "gate" else Reply([b"x"]).endless(b"y" * 1000)
    provider.add(reply)
    with httpx.stream("GET", provider.url("/")) as answer:
        assert next(answer.iter_raw()).startswith(b"x")
    request = provider.last
    assert request.done.wait(10)
    assert request.left.is_set()
    assert request.sent >= 1
    provider.wait_until_idle()


def test_an_answer_read_to_its_end_is_not_one_the_client_left(provider):
    provider.add(Reply([b"x"]))
    httpx.get(provider.url("/"))
    assert provider.last.done.wait(10)
    assert not provider.last.left.is_set()


def test_closing_the_provider_ends_answers_that_wait_at_a_gate():
    gate = Gate()
    provider = FakeProvider(Reply([b"ab"]).hold(gate, 1)).start()
    failures = []

    def ask():
        try:
            httpx.get(provider.url("/"), timeout=10)
        except httpx.HTTPError as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    gate.arrived()
    provider.close()
    provider.close()
    asking.join(10)
    assert len(failures) == 1
    with pytest.raises(httpx.ConnectError):
        httpx.get(provider.url("/"))


def test_a_provider_starts_once():
    with FakeProvider() as provider, pytest.raises(RuntimeError, match="started already"):
        provider.start()


def test_waiting_for_requests_that_do_not_come_times_out(provider):
    with pytest.raises(TimeoutError, match="2 requests"):
        provider.wait_for_requests(2, timeout=0.01)


def test_a_connection_left_open_is_found(provider):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port)
    connection.connect()
    provider._wait(lambda: provider.open_connections == 1, 10, "connection")
    with pytest.raises(TimeoutError, match="1 connections open"):
        provider.wait_until_idle(timeout=0.01)
    connection.close()
    provider.wait_until_idle()


def test_many_requests_at_once(provider):
    provider.when("/", lambda request: Reply.json(request.body))

    async def ask_all():
        async with httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.post(provider.url("/"), json=n) for n in range(50)))
        return [answer.json() for answer in answers]

    assert asyncio.run(ask_all()) == list(range(50))


def test_reset_forgets_script_and_requests(provider):
    provider.add(Reply.json(1)).when("/x", Reply.json(2))
    post(provider, "/x")
    provider.reset()
    assert provider.requests == []
    assert post(provider, "/x").status_code == 400
    with pytest.raises(LookupError):
        provider.reset()
        _ = provider.last


def test_statuses_and_headers_are_sent_as_given(provider):
    provider.add(Reply.json({}, 529).with_status(529, retry_after="2"), Reply((), 204))
    refused, empty = post(provider), post(provider)
    assert (refused.status_code, refused.headers["retry-after"]) == (529, "2")
    assert (empty.status_code, empty.content) == (204, b"")


def test_a_reply_serves_many_requests_when_its_body_can_be_read_again(provider):
    reply = Reply(itertools.repeat(b"x", 3)).endless(b"y")
    provider.when("/", Reply([b"ab"]).cut(1, "fin").end(1))
    assert [httpx.get(provider.url("/")).content for _ in range(2)] == [b"a", b"a"]
    assert next(iter(reply.body)) == b"x"


def test_json_keeps_characters_as_they_are():
    assert json.loads(Reply.json({"a": "ü"}).content) == {"a": "ü"}
    assert "ü".encode() in Reply.json({"a": "ü"}).content


async def test_a_connection_that_is_closing_when_the_provider_closes_is_no_fault():
    """Python reports a connection's task that ends as cancelled, on stderr, in the middle of somebody's tests."""

    class Writer:
        waits = asyncio.Event()

        def close(self) -> None: ...

        async def wait_closed(self) -> None:
            self.waits.set()
            await asyncio.Event().wait()

    closing = asyncio.create_task(Connection(asyncio.StreamReader(), Writer()).close())
    await Writer.waits.wait()
    closing.cancel()
    await asyncio.wait([closing])
    assert not closing.cancelled()
