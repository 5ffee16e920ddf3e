"""The loopback server: connections, clients that leave, odd requests."""

import http.client
import os
import select
import socket
import threading

import pytest
from local_helpers import get, post, raw_connection

from mmsp_nb.local.front import MAX_BODY, Answer, Cut, Exchange, Front, Gone, left


@pytest.fixture
def serve():
    """Start a front for an app; all of them end with the test."""
    fronts = []

    def start(app):
        front = Front(app).start()
        fronts.append(front)
        return front

    yield start
    for front in fronts:
        front.close()


def echo(exchange):
    return Answer.json({"path": exchange.path, "query": exchange.query, "size": len(exchange.body)})


def test_requests_share_a_connection(serve):
    url = serve(echo).base_url
    connection = http.client.HTTPConnection(url[7:], timeout=5)
    used = set()
    for _ in range(3):
        connection.request("POST", "/a?b=c%20d", b"xyz")
        response = connection.getresponse()
        assert response.read() == b'{"path": "/a", "query": {"b": "c d"}, "size": 3}'
        used.add(connection.sock)
    assert len(used) == 1
    connection.close()


def test_a_stream_is_sent_piece_by_piece(serve):
    """The second piece is made only after the first has been received: nothing is held back."""
    received = threading.Event()

    def app(exchange):
        def pieces():
            yield b"first"
            assert received.wait(5)
            yield b"second"

        return Answer.events(pieces())

    with raw_connection(serve(app).base_url) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        content = b""
        while b"first" not in content:
            content += connection.recv(4096)
        assert b"second" not in content
        received.set()
        while not content.endswith(b"0\r\n\r\n"):
            content += connection.recv(4096)
    assert b"6\r\nsecond\r\n" in content


def test_a_client_that_leaves_ends_the_answer(serve):
    closed, streaming = threading.Event(), threading.Event()

    def app(exchange):
        def pieces():
            try:
                yield b"one"
                streaming.set()
                exchange.wait(30)
                yield b"two"
            finally:
                closed.set()

        return Answer.events(pieces())

    connection = raw_connection(serve(app).base_url)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert streaming.wait(5)
    connection.close()
    assert closed.wait(5)


def test_a_cut_leaves_the_answer_without_its_end(serve):
    def app(exchange):
        def pieces():
            yield b"half"
            raise Cut

        return Answer.events(pieces())

    with pytest.raises(http.client.IncompleteRead):
        post(serve(app).base_url, "/", b"")


def test_raw_bytes_pass_untouched(serve):
    raw = [b"HTTP/1.1 203 Odd\r\nX-A: 1\r\n", b"Connection: close\r\n\r\n", b"body"]
    url = serve(lambda exchange: Answer(iter(raw), raw=True)).base_url
    with raw_connection(url) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        content = b""
        while block := connection.recv(4096):
            content += block
    assert content == b"".join(raw)


def test_a_fault_of_the_app_is_an_answer(serve):
    def app(exchange):
        raise ZeroDivisionError("oops")

    status, _, content = post(serve(app).base_url, "/", b"")
    assert status == 500
    assert b"ZeroDivisionError: oops" in content


def test_chunked_requests_are_read(serve):
    url = serve(echo).base_url
    with raw_connection(url) as connection:
        connection.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: 1\r\n\r\n"
        )
        content = b""
        while block := connection.recv(4096):
            content += block
    assert content.endswith(b'"size": 7}')


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"Content-Length: {MAX_BODY + 1}", b"413"),
        ("Content-Length: many", b"400"),
        ("Transfer-Encoding: chunked", b"400"),
    ],
)
def test_impossible_bodies_are_refused(serve, head, status):
    with raw_connection(serve(echo).base_url) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\nnonsense\r\n".encode())
        content = b""
        while block := connection.recv(4096):
            content += block
    assert content.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in content


def test_closing_ends_open_connections(serve):
    front = serve(echo)
    connection = raw_connection(front.base_url)
    connection.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
    received = b""
    while not received.endswith(b"}"):
        received += connection.recv(4096)
    listener = front._server.socket
    front.close()
    front.close()
    try:
        assert connection.recv(4096) == b""
    except ConnectionResetError:  # ended as well
        pass
    connection.close()
    assert listener.fileno() == -1  # to connect would tell less: others may have taken the port by now
    with pytest.raises(RuntimeError, match="not running"):
        _ = front.base_url


def test_it_listens_on_loopback_only(serve):
    assert serve(echo).base_url.startswith("http://127.0.0.1:")


def test_a_taken_port_is_an_error(serve):
    port = int(serve(echo).base_url.rpartition(":")[2])
    with pytest.raises(OSError):
        Front(echo, port=port).start()


def test_health_and_home(demo):
    assert get(demo, "/health") == (200, {"status": "ok"})
    status, page = get(demo, "/")
    assert status == 200
    assert "/v1/chat/completions" in page
    assert "demo: fail 401" in page


def test_many_at_once(demo):
    from local_helpers import ask

    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(demo, "chat", "write 50 words"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 12
    assert len(set(answers)) == 1


def test_left_tells_a_closed_from_an_idle_client():
    ours, theirs = socket.socketpair()
    assert left(ours) is False
    theirs.send(b"more")
    assert left(ours) is False
    ours.recv(10)
    theirs.close()
    assert left(ours, 5) is True
    exchange = Exchange("GET", "/", {}, {}, b"", ours)
    with pytest.raises(Gone):
        exchange.wait(5)
    ours.close()
    assert left(ours) is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_lets_go_of_the_port(serve):
    """While a forked child lives on, the parent can close its server and the port is free."""
    front = serve(echo)
    url = front.base_url
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            front.abandon()
            os.write(writing, b"abandoned")
            select.select([], [], [], 30)
        finally:
            os._exit(0)
    try:
        assert os.read(reading, 20) == b"abandoned"
        assert get(url, "/still-there")[0] == 200
        front.close()
        with pytest.raises(ConnectionRefusedError):
            raw_connection(url)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
