import asyncio
import gc
import threading
import weakref

import pytest
from exchange import post, read

from mmsp_nb.protocol.errors import ConnectionFailedError
from mmsp_nb.testing import Gate, Reply
from mmsp_nb.transport import clients
from mmsp_nb.transport.clients import _tls_context, close_clients, http_client
from mmsp_nb.transport.http import Transport

pytestmark = pytest.mark.mmsp_allow_requests  # some take loopback for a remote host

ONE = Reply([b"data: 1\n\n"])
EVENTS = [(None, b"1")]


@pytest.fixture
def remote(monkeypatch):
    """Treats the loopback server like one far away: kept connections, proxies."""
    monkeypatch.setattr(clients, "is_loopback", lambda url: False)


async def test_one_client_serves_a_loop_for_its_whole_life():
    assert await http_client("http://127.0.0.1:1/a") is await http_client("http://localhost:2/b")
    assert await http_client("https://a.example") is await http_client("http://b.example")
    assert await http_client("https://a.example") is not await http_client("http://127.0.0.1:1")


def test_clients_share_one_tls_context():
    async def context():
        transport = (await http_client("https://a.example"))._transport
        return transport._pool._ssl_context

    assert asyncio.run(context()) is asyncio.run(context())


def test_two_loops_one_after_the_other(provider, remote):
    transport = Transport()
    provider.add(ONE, ONE)
    assert asyncio.run(read(transport, post(provider.url()))) == EVENTS
    provider.wait_until_idle()  # the first loop's kept connection went with it
    assert asyncio.run(read(transport, post(provider.url()))) == EVENTS
    provider.wait_until_idle()


def test_two_loops_at_the_same_time(provider):
    transport, gates, results = Transport(), [Gate(), Gate()], []
    for gate in gates:
        provider.add(Reply([b"data: 1\n\n", gate, b"data: 2\n\n"]))
    threads = [
        threading.Thread(target=lambda: results.append(asyncio.run(read(transport, post(provider.url())))))
        for _ in gates
    ]
    for thread in threads:
        thread.start()
    for gate in gates:
        gate.arrived()
    for gate in gates:
        gate.open()
    for thread in threads:
        thread.join()
    assert results == [[(None, b"1"), (None, b"2")]] * 2


@pytest.mark.parametrize("orderly", [True, False], ids=["asyncio.run", "loop just dropped"])
def test_a_loop_takes_its_clients_along(provider, remote, orderly):
    provider.add(ONE)

    async def use():
        await read(Transport(), post(provider.url()))
        return weakref.ref(asyncio.get_running_loop()), weakref.ref(await http_client(provider.url()))

    if orderly:
        loop, client = asyncio.run(use())
    else:
        runner = asyncio.new_event_loop()
        loop, client = runner.run_until_complete(use())
        runner.close()
        del runner
    gc.collect()
    assert loop() is None
    assert client() is None
    provider.wait_until_idle()


def test_clients_closed_with_the_loops_generators_are_replaced(provider, remote):
    provider.add(ONE, ONE)
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(read(Transport(), post(provider.url()))) == EVENTS
        loop.run_until_complete(loop.shutdown_asyncgens())
        provider.wait_until_idle()
        with pytest.warns(ResourceWarning):  # asyncio's own, for generators after the shutdown
            assert loop.run_until_complete(read(Transport(), post(provider.url()))) == EVENTS
    finally:
        loop.close()


async def test_close_clients_closes_kept_connections(provider, remote):
    provider.add(ONE, ONE)
    await read(Transport(), post(provider.url()))
    assert provider.open_connections == 1
    await close_clients()
    await asyncio.to_thread(provider.wait_until_idle)
    assert await read(Transport(), post(provider.url())) == EVENTS
    await close_clients()
    await close_clients()


async def test_a_connection_is_used_again_after_done(provider, remote):
    provider.add(*[Reply([b"data: 1\n\ndata: [DONE]\n\n"])] * 3)
    for _ in range(3):
        assert await read(Transport(), post(provider.url())) == EVENTS
    assert provider.accepted_connections == 1


async def test_a_connection_is_used_again_after_a_refusal(provider, remote):
    provider.add(Reply.json({}, 400), ONE)
    with pytest.raises(ValueError):
        await read(Transport(), post(provider.url()))
    assert await read(Transport(), post(provider.url())) == EVENTS
    assert provider.accepted_connections == 1


async def test_a_kept_connection_that_the_server_dropped_is_replaced(provider, remote):
    provider.add(Reply([b"data: 1\n\n"], drop_after=True), ONE)
    assert await read(Transport(retries=0), post(provider.url())) == EVENTS
    assert await read(Transport(retries=0), post(provider.url())) == EVENTS


async def test_loopback_connections_are_not_kept(provider):
    provider.add(ONE, ONE)
    for _ in range(2):
        await read(Transport(), post(provider.url()))
        assert provider.last.headers["connection"] == "close"
    assert provider.accepted_connections == 2
    await asyncio.to_thread(provider.wait_until_idle)


async def test_fifty_streams_at_once(provider):
    gate = Gate()
    provider.add(*[Reply([b"data: %d\n\n" % n, gate, b"data: end\n\n"]) for n in range(50)])
    tasks = [asyncio.ensure_future(read(Transport(), post(provider.url()))) for _ in range(50)]
    await asyncio.to_thread(provider.wait_for_requests, 50)
    gate.open()
    results = await asyncio.gather(*tasks)
    assert sorted(int(events[0][1]) for events in results) == list(range(50))
    assert all(events[1] == (None, b"end") for events in results)
    await asyncio.to_thread(provider.wait_until_idle)


def test_loopback_goes_past_the_proxy(provider, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    provider.add(ONE)
    assert asyncio.run(read(Transport(), post(provider.url()))) == EVENTS


def test_others_go_through_the_proxy(provider, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", provider.url())
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    provider.add(ONE)
    assert asyncio.run(read(Transport(), post("http://llm.example/v1/x"))) == EVENTS
    assert provider.last.headers["host"] == "llm.example"


@pytest.mark.parametrize(
    ("proxy", "hint"),
    [
        ("socks5://127.0.0.1:9", r"httpx\[socks\]"),
        ("nonsense://pass@word", "must begin with"),
        ("http://[::1", "must begin with"),
        ("localhost:abc", "its port be a number"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_an_error_that_names_the_variables(monkeypatch, proxy, hint):
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ConnectionFailedError, match=f"HTTPS_PROXY.*{hint}") as caught:
        asyncio.run(read(Transport(), post("http://llm.example/v1/x")))
    assert caught.value.client == "TestClient"
    assert "pass@word" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://user:pass@127.0.0.1:1", "nowhere.invalid"])
def test_a_proxy_that_does_not_answer_is_named_by_its_variable(monkeypatch, address):
    monkeypatch.setenv("HTTP_PROXY", address)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConnectionFailedError, match="the proxy that HTTP_PROXY names") as caught:
        asyncio.run(read(Transport(retries=0), post("http://llm.example/v1/x")))
    assert "pass" not in str(caught.value)
    monkeypatch.setenv("NO_PROXY", "llm.invalid")
    with pytest.raises(ConnectionFailedError) as caught:
        asyncio.run(read(Transport(retries=0), post("http://llm.invalid/v1/x")))
    assert "proxy" not in str(caught.value)


def test_certificates_that_cannot_be_read_are_named_by_their_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    _tls_context.cache_clear()
    with pytest.raises(ConnectionFailedError, match="certificates that SSL_CERT_FILE names cannot be read: No such"):
        asyncio.run(read(Transport(), post("https://llm.invalid/v1/x")))


async def test_cookies_are_not_kept(provider, remote):
    provider.add(Reply([b"data: 1\n\n"], headers={"set-cookie": "a=b; Path=/"}), ONE)
    await read(Transport(), post(provider.url()))
    await read(Transport(), post(provider.url()))
    assert "cookie" not in provider.last.headers
