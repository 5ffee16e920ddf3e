import asyncio
import json
import time

import pytest
from exchange import read

from mmsp_nb import AutoLLMClient, Conversation
from mmsp_nb.protocol.errors import CassetteMissError, ConnectionCutError, HTTPStatusError
from mmsp_nb.testing import Frame, Gate, Reply, streams
from mmsp_nb.transport.cassette import Cassette, record, replay
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.tape import Exchange, write_exchange
from mmsp_nb.transport.wire import WireRequest

KEY = "sk-secret-0123456789"


def ask(provider, body=b'{"q": 1}', path="/v1/x"):
    return WireRequest("POST", provider.url(path), {"Authorization": f"Bearer {KEY}"}, body)


async def pieces(handler, request):
    async with handler(request) as (_, _, body):
        return [piece async for piece in body]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tides.jsonl"


async def test_a_recorded_stream_comes_back_piece_by_piece(provider, file):
    sent = [b"data: \xc3", b"\xa4\n\n", b"data: 2\n\n"]
    gates = [Gate(), Gate()]
    provider.add(Reply([sent[0], gates[0], sent[1], gates[1], sent[2]]))
    got = []
    async with record(file)(ask(provider)) as (status, _, body):
        async for piece in body:
            got.append(piece)
            if gates:
                gates.pop(0).open()
    assert status == 200
    assert got == sent
    provider.close()
    assert await pieces(replay(file), ask(provider)) == sent


async def test_no_key_is_written(provider, file):
    provider.add(
        Reply([f"data: your key is {KEY}\n\n".encode()], headers={"set-cookie": f"a={KEY}", "x-request-id": "r"})
    )
    await read(Transport(handler=record(file)), ask(provider, path=f"/v1/x?key={KEY}&alt=sse"))
    text = file.read_text()
    assert KEY not in text
    assert "cookie" not in text
    assert "your key is ***" in text
    assert '"x-request-id": "r"' in text
    assert '"alt"' in text


async def test_requests_are_told_apart_by_what_they_ask(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n})]) for n in range(4)])
    transport = Transport(handler=record(file))
    for request in (ask(provider), ask(provider, b'{"q": 2}'), ask(provider), ask(provider, path="/v1/y")):
        await read(transport, request)
    again = Transport(handler=replay(file))
    same_but_for_the_order_of_keys = ask(provider, b'{ "q":2 }')
    answers = [
        await read(again, request)
        for request in (
            same_but_for_the_order_of_keys,
            ask(provider, path="/v1/y"),
            ask(provider),
            ask(provider),
            ask(provider),
        )
    ]
    assert [json.loads(events[0][1])["n"] for events in answers] == [1, 3, 0, 2, 0]


async def test_created_at_does_not_tell_requests_apart(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    body = b'{"messages": [{"role": "user", "created_at": %d}]}'
    await read(Transport(handler=record(file)), ask(provider, body % 1))
    assert await read(Transport(handler=replay(file)), ask(provider, body % 2)) == [(None, b'{"n":1}')]


async def test_an_unknown_request_fails_loudly(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    await read(Transport(handler=record(file)), ask(provider))
    with pytest.raises(
        CassetteMissError, match=r"holds no answer .*POST /v1/x.* with another q: recorded 1, now 9"
    ) as caught:
        await read(Transport(handler=replay(file)), ask(provider, b'{"q": 9}'))
    assert caught.value.client == "TestClient"
    assert caught.value.differences == ("q: recorded 1, now 9",)
    assert len(provider.requests) == 1


async def test_refusals_and_cuts_are_recorded_too(provider, file):
    provider.add(Reply.json({"error": {"message": "no"}}, 400), Reply([b"data: 1\n\n", b"data: 2\n\n"]).cut(9))
    for make in (record, replay):
        transport = Transport(handler=make(file))
        with pytest.raises(HTTPStatusError, match="no"):
            await read(transport, ask(provider))
        with pytest.raises(ConnectionCutError):
            await read(transport, ask(provider, b"2"))


async def test_a_recording_that_was_left_early_ends_as_a_cut(provider, file):
    provider.add(Reply([b"data: 1\n\n"]).endless(b": ping\n\n"))
    async with await Transport(handler=record(file)).send(ask(provider), client="C") as response:
        await response.batch()
    with pytest.raises(ConnectionCutError, match="recording ends here"):
        await read(Transport(handler=replay(file)), ask(provider))


async def test_the_rhythm_is_kept_on_demand(file):
    request = {"method": "POST", "url": "http://h/v1/x", "body": {"q": 1}}
    exchange = Exchange(request, 200, {}, [(0.0, b"data: 1\n\n"), (0.4, b"data: 2\n\n")], "end")
    write_exchange(file, exchange, {"mmsp_cassette": 1})
    request = WireRequest("POST", "http://other/v1/x", {}, b'{"q":1}')
    started = time.monotonic()
    assert len(await pieces(replay(file, speed=10), request)) == 2
    assert time.monotonic() - started >= 0.039


async def test_without_a_speed_nothing_is_waited_for(file):
    request = {"method": "POST", "url": "http://h/v1/x", "body": {"q": 1}}
    exchange = Exchange(request, 200, {}, [(0.0, b"data: 1\n\n"), (30, b"data: 2\n\n")], "end")
    write_exchange(file, exchange, {"mmsp_cassette": 1})
    started = time.monotonic()
    assert len(await pieces(replay(file), WireRequest("POST", "http://other/v1/x", {}, b'{"q":1}'))) == 2
    assert time.monotonic() - started < 15


async def test_exchanges_at_the_same_time_do_not_mix(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n}), Frame({"n": n})]) for n in range(8)])
    transport = Transport(handler=record(file))
    await asyncio.gather(*[read(transport, ask(provider, b"%d" % n)) for n in range(8)])
    again = Transport(handler=replay(file))
    for n in range(8):
        first, second = await read(again, ask(provider, b"%d" % n))
        assert first == second


@pytest.mark.parametrize("text", ["", "nonsense", '{"t": 1}\n', '{"mmsp_cassette": 1}\n{"request": {}}\n', "[]\n"])
def test_a_file_that_is_no_recording_is_refused_at_once(file, text):
    file.write_text(text)
    with pytest.raises(ValueError, match="this is no recording"):
        replay(file)


def test_a_file_that_is_missing(file):
    with pytest.raises(FileNotFoundError):
        replay(file)


# integrity


async def recorded(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    await read(Transport(handler=record(file)), ask(provider))
    return file.read_text()


async def test_a_changed_recording_is_refused(provider, file):
    text = await recorded(provider, file)
    file.write_text(text.replace('\\"n\\":1', '\\"n\\":2'))
    with pytest.raises(ValueError, match="line 5: the checksum does not match"):
        replay(file)


async def test_wherever_a_recording_is_cut_off_the_answers_before_are_there(provider, file):
    await recorded(provider, file)
    first = file.stat().st_size
    provider.add(Reply.stream([Frame({"n": 2})]), Reply.stream([Frame({"n": 3})]))
    await read(Transport(handler=Cassette(file, "new")), ask(provider, b'{"q": 2}'))
    whole = file.read_bytes()
    for size, answers in ((first, 1), (len(whole) - 1, 2)):  # between two answers; without the last line end
        file.write_bytes(whole[:size])
        assert len(replay(file)) == answers
    for size in range(first + 1, len(whole) - 1, 7):
        file.write_bytes(whole[:size])
        with pytest.warns(RuntimeWarning, match=r"tides\.jsonl, line \d+: the last answer was not written to its end"):
            assert len(replay(file)) == 1
    with pytest.warns(RuntimeWarning):
        cassette = Cassette(file, "new")
    assert await numbers(cassette, provider, b'{"q": 1}', b'{"q": 2}') == [1, 3]
    assert await numbers(replay(file), provider, b'{"q": 2}', b'{"q": 1}') == [3, 1], "the remains were taken away"


async def test_other_line_ends_do_no_harm(provider, file):
    file.write_bytes((await recorded(provider, file)).encode().replace(b"\n", b"\r\n"))
    assert len(replay(file)) == 1


async def test_a_newer_version_is_named(provider, file):
    file.write_text((await recorded(provider, file)).replace('"mmsp_cassette": 1', '"mmsp_cassette": 9'))
    with pytest.raises(ValueError, match="of version 9, and this mmsp_nb reads up to 1"):
        replay(file)


# modes


async def numbers(cassette, provider, *bodies):
    transport = Transport(handler=cassette)
    return [json.loads((await read(transport, ask(provider, body)))[0][1])["n"] for body in bodies]


async def test_once_records_the_first_time_and_replays_afterwards(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    first = Cassette(file, "once")
    assert (first.replays, first.records) == (False, True)
    assert await numbers(first, provider, b"1") == [1]
    second = Cassette(file, "once")
    assert (second.replays, second.records) == (True, False)
    assert await numbers(second, provider, b"1") == [1]
    with pytest.raises(CassetteMissError):
        await numbers(second, provider, b"2")
    assert len(provider.requests) == 1


async def test_new_replays_what_is_there_and_records_the_rest(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n})]) for n in (1, 2)])
    assert await numbers(Cassette(file, "new"), provider, b"1") == [1]
    assert await numbers(Cassette(file, "new"), provider, b"1", b"2") == [1, 2]
    assert await numbers(Cassette(file, "none"), provider, b"2", b"1") == [2, 1]
    assert len(provider.requests) == 2


async def test_all_records_anew_but_keeps_the_file_until_something_came(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n})]) for n in (1, 2)])
    await numbers(Cassette(file, "all"), provider, b"1")
    again = Cassette(file, "all")
    assert len(replay(file)) == 1
    await numbers(again, provider, b"2")
    assert len(replay(file)) == 1
    assert await numbers(replay(file), provider, b"2") == [2]


async def test_what_was_not_asked_for_is_listed(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n})]) for n in (1, 2)])
    await numbers(record(file), provider, b'{"input": "first"}', b'{"input": "second"}')
    cassette = replay(file)
    await numbers(cassette, provider, b'{"input": "first"}')
    assert cassette.unused == ["POST /v1/x 'second'"]


def test_an_unknown_mode(file):
    with pytest.raises(ValueError, match="no cassette mode 'non'; did you mean 'none'"):
        Cassette(file, "non")


def test_the_environment_names_the_mode(file, monkeypatch):
    monkeypatch.setenv("MMSP_CASSETTE_MODE", "none")
    with pytest.raises(FileNotFoundError, match="%mmsp record"):
        Cassette(file)


async def test_refusals_are_replayed_without_waiting(provider, file):
    provider.add(Reply.json({"error": {"message": "slow down"}}, 429).with_status(429, retry_after="0"))
    provider.add(Reply.stream([Frame({"n": 1})]))
    await read(Transport(handler=record(file)), ask(provider))
    text = file.read_text().replace('"retry-after": "0"', '"retry-after": "30"')
    lines = [json.loads(line) for line in text.splitlines()]
    exchange = Exchange(lines[1]["request"], 429, {"retry-after": "30"}, [], "end")
    write_exchange(file, exchange, {"mmsp_cassette": 1})
    write_exchange(file, Exchange(exchange.request, 200, {}, [(0, b"data: 1\n\n")], "end"), None)
    started = time.monotonic()
    assert await read(Transport(handler=replay(file)), ask(provider)) == [(None, b"1")]
    assert time.monotonic() - started < 5


# secrets


async def test_secrets_are_taken_out_wherever_they_are(provider, file, monkeypatch):
    monkeypatch.setenv("TIDES_API_KEY", "an-odd-value-of-a-key")
    shaped = "sk-proj-abcdef0123456789ABCD"
    halves = [f'data: {{"delta": "{shaped[:12]}"}}\n\n', f'data: {{"delta": "{shaped[12:]}, see?"}}\n\n']
    said = [
        f'data: {{"delta": "key: {KEY[:9]}',
        f'{KEY[9:]}, yes"}}\n\n',
        'data: {"delta": "an-odd-value-of-a-key"}\n\n',
    ]
    provider.add(Reply([part.encode() for part in (*halves, *said)]))
    body = {
        "input": f"use {shaped}",
        "tool": {"password": "correct horse"},
        "image": "https://h/a.png?sig=0123456789&w=1",
    }
    request = ask(provider, json.dumps(body).encode(), path="/v1/x?key=in-the-address-1")
    await read(Transport(handler=record(file)), request)
    text = file.read_text()
    for secret in (
        KEY,
        KEY[:9],
        shaped[3:12],
        shaped[12:],
        "an-odd-value",
        "correct horse",
        "0123456789",
        "in-the-address-1",
    ):
        assert secret not in text
    events = await read(Transport(handler=replay(file)), request)
    assert [json.loads(data)["delta"] for _, data in events] == ["sk-proj-***", "***, see?", "key: ***, yes", "***"]


async def test_pictures_and_signatures_are_no_keys(provider, file):
    picture = "AAAA/eyJ" + "hbGciOiJIUzI1NiJ9" * 30
    provider.add(Reply([f'data: {{"image": "{picture}"}}\n\n'.encode()]))
    await read(Transport(handler=record(file)), ask(provider))
    events = await read(Transport(handler=replay(file)), ask(provider))
    assert json.loads(events[0][1])["image"] == picture


async def test_long_strings_of_a_request_are_kept_as_a_hash(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 500
    await numbers(record(file), provider, json.dumps({"image": picture}).encode())
    assert len(file.read_text()) < 1000
    assert await numbers(replay(file), provider, json.dumps({"image": picture}).encode()) == [1]
    with pytest.raises(CassetteMissError, match=r"image\.sha256"):
        await numbers(replay(file), provider, json.dumps({"image": picture[:-1] + "x"}).encode())


async def test_a_recording_that_cannot_be_written_is_a_warning_and_the_answer_is_whole(provider, tmp_path):
    provider.add(Reply([b"data: 1\n\n"]))
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(RuntimeWarning, match=r"tides\.jsonl: this was not recorded: "):
        events = await read(Transport(handler=Cassette(tmp_path / "file" / "tides.jsonl")), ask(provider))
    assert [data for _, data in events] == [b"1"]


@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b"\x89PNG\r\n\x1a\n", b""])
def test_a_file_that_is_no_text_is_no_recording(file, content):
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"tides\.jsonl, line 1: ") as caught:
        Cassette(file)
    assert type(caught.value) is ValueError


async def test_half_a_character_is_recorded_too(provider, file):
    body = b'{"q": "half \\ud83d"}'
    provider.add(Reply([b"data: 1\n\n"]))
    await read(Transport(handler=record(file)), ask(provider, body))
    assert [data for _, data in await read(Transport(handler=replay(file)), ask(provider, body))] == [b"1"]


# one file, used several times in one process


def ask_with(file, provider, prompt, **options):
    chat = Conversation(
        "m", client_type="openai-chat", api_key="k", base_url=provider.url("/v1"), cassette=file, **options
    )
    return chat.ask(prompt).text


def test_what_was_recorded_answers_whoever_opens_the_file_next(provider, file):
    provider.add(streams.reply("text", "chat"), streams.reply("thinking", "chat"), streams.reply("text", "chat"))
    first = ask_with(file, provider, "one")
    recorded = file.read_bytes()
    assert ask_with(file, provider, "one") == first
    assert (len(provider.requests), file.read_bytes()) == (1, recorded)
    other = ask_with(file, provider, "two")
    assert file.read_bytes().startswith(recorded) and other != first, "the first run may still ask for more"
    assert [ask_with(file, provider, prompt) for prompt in ("two", "one")] == [other, first]
    assert len(provider.requests) == 2
    assert len(Cassette(file, "none")) == 2


def test_one_conversation_that_asks_the_same_again_is_recorded_as_it_was(provider, file):
    provider.add(streams.reply("text", "chat"), streams.reply("thinking", "chat"))
    cassette = Cassette(file, "once")
    clients = [AutoLLMClient("m", "k", provider.url("/v1"), "openai-chat", transport=Transport(handler=cassette))] * 2
    answers = [Conversation(client=client.sibling()).ask("same").text for client in clients]
    assert answers[0] != answers[1] and len(provider.requests) == 2
    assert [ask_with(file, provider, "same") for _ in range(3)] == [*answers, answers[0]]


def test_a_process_that_records_by_a_variable_records_all_of_it(provider, file, monkeypatch):
    monkeypatch.setenv("MMSP_CASSETTE", str(file))
    provider.add(streams.reply("text", "chat"), streams.reply("thinking", "chat"))
    chats = [Conversation("m", client_type="openai-chat", api_key="k", base_url=provider.url("/v1")) for _ in "ab"]
    assert chats[0].ask("same").text != chats[1].ask("same").text
    assert len(provider.requests) == 2


def test_a_recording_that_was_deleted_is_made_anew(provider, file):
    provider.add(streams.reply("text", "chat"), streams.reply("thinking", "chat"))
    first = ask_with(file, provider, "one")
    file.unlink()
    assert ask_with(file, provider, "one") != first
    assert len(Cassette(file, "none")) == 1 and len(provider.requests) == 2


def test_all_replaces_and_never_answers(provider, file, monkeypatch):
    monkeypatch.setenv("MMSP_CASSETTE_MODE", "all")
    provider.add(*[streams.reply("text", "chat")] * 2)
    assert ask_with(file, provider, "one") == ask_with(file, provider, "one")
    assert len(provider.requests) == 2
