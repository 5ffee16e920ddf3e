"""Secrets planted in every place that takes one are looked for in everything that is written, raised or shown."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import planted
import pytest
from IPython.core.interactiveshell import InteractiveShell
from planted import everything_about, found, make, screen

from mmsp_nb import ApiKeyRequiredError, AutoLLMClient, Cassette, Conversation, MMSPError
from mmsp_nb.providers.vendors import VENDORS
from mmsp_nb.testing import FakeProvider, RecordedRequest, Reply, parts, streams

TYPES = {
    "openai-chat": "chat",
    "openai-official": "responses",
    "anthropic-official": "messages",
    "google-official": "interactions",
    "google-genai": "generate_content",
    "mmsp": "mmsp",
}


def echoing(status: int) -> Callable[[RecordedRequest], Reply]:
    """A server that tells every secret it was sent, in the error's message and in its headers."""

    def reply(request: RecordedRequest) -> Reply:
        told = f"Incorrect key: {dict(request.headers)} {request.path} {planted.CLIENT} {planted.HEADER}"
        return Reply.json({"error": {"message": told, "type": "bad", "code": "bad"}}, status)

    return reply


async def read(client: AutoLLMClient) -> None:
    message: Any = {"role": "user", "content_items": [{"type": "text.done", "text": "hello"}]}
    async for _ in client.streaming_response([message], {}):
        pass


def leaky(port: str) -> str:
    """The height of the tide.

    Args:
        port: Where.
    """
    if port == "Brest":
        return f"6.4 m ({planted.RESULT})"
    raise ValueError(f"no such port with {planted.ERROR}")


def script(provider: FakeProvider) -> None:
    """One call that succeeds and one that fails, then an answer; again and again."""
    calls = [parts.call("leaky", '{"port": "Brest"}', id="c1"), parts.call("leaky", '{"port": "Rome"}', id="c2")]

    def reply(request: RecordedRequest) -> Reply:
        last = request.body["messages"][-1]
        said = [parts.text("Fine, ", "6.4 m.")] if last["role"] == "tool" else calls
        return Reply.stream(streams.DIALECTS["chat"].frames(said))

    provider.when("/chat/completions", reply)
    provider.when(lambda request: True, reply)


# in memory


async def test_logs_show_no_key_at_any_level(
    provider: FakeProvider, client: AutoLLMClient, caplog: pytest.LogCaptureFixture
) -> None:
    provider.when(lambda request: True, streams.reply("text", "chat"))
    with caplog.at_level("DEBUG"):
        await read(client)
    assert "POST" in caplog.text
    assert found(caplog.text) == []


def test_nothing_that_has_a_repr_shows_a_key(client: AutoLLMClient) -> None:
    endpoint = client._endpoint
    for thing in (client, endpoint.route, vars(endpoint), vars(client), endpoint.transport, client.sibling()):
        assert found(repr(thing)) == [], type(thing)


def test_clients_cannot_be_pickled(client: AutoLLMClient) -> None:
    with pytest.raises(TypeError) as caught:
        pickle.dumps(client)
    assert found(everything_about(caught.value)) == []


# errors


@pytest.mark.parametrize("client_type", TYPES)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_no_refusal_shows_a_key(provider: FakeProvider, client_type: str, status: int) -> None:
    provider.when(lambda request: True, echoing(status))
    with pytest.raises(MMSPError) as caught:
        await read(make(provider, client_type))
    assert len(provider.requests) == 1
    assert found(everything_about(caught.value)) == []


FAULTS = {
    "no stream": Reply([b"<html>"]),
    "no JSON": Reply.stream([b"data: {oops\n\n"]),
    "cut": streams.reply("text", "chat").cut(120),
    "nothing": Reply.stream([b": nothing\n\n"]),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_fault_of_a_stream_shows_a_key(provider: FakeProvider, client: AutoLLMClient, fault: str) -> None:
    provider.when(lambda request: True, FAULTS[fault])
    with pytest.raises(MMSPError) as caught:
        await read(client)
    assert found(everything_about(caught.value)) == []


async def test_no_failed_connection_shows_a_key(provider: FakeProvider, client: AutoLLMClient) -> None:
    provider.close()
    with pytest.raises(MMSPError) as caught:
        await read(client)
    assert found(everything_about(caught.value)) == []


async def test_an_error_in_mid_stream_shows_no_key(provider: FakeProvider, client: AutoLLMClient) -> None:
    said = json.dumps({"error": {"message": f"bad key {planted.CLIENT} {planted.HEADER}"}}).encode()
    provider.when(lambda request: True, Reply.stream([b"data: " + said + b"\n\n"]))
    with pytest.raises(MMSPError, match="bad key") as caught:
        await read(client)
    error = caught.value
    assert found(f"{error} {error!r} {vars(error)}") == found(pickle.dumps(error)) == []


@pytest.mark.parametrize("client_type", TYPES)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_carries_no_key(
    provider: FakeProvider, status: int, client_type: str
) -> None:
    with FakeProvider(streams.reply("text", TYPES[client_type])) as elsewhere:
        away = Reply([b""], status=status, headers={"location": elsewhere.url("/v1/chat/completions")})
        provider.when(lambda request: True, away)
        with pytest.raises(MMSPError, match="redirects") as caught:
            await read(make(provider, client_type))
        assert len(provider.requests) == 1
        assert elsewhere.requests == [] and elsewhere.accepted_connections == 0
    assert found(everything_about(caught.value)) == []


@pytest.mark.parametrize("client_type", VENDORS)
@pytest.mark.parametrize("tried", [{}, {"default_headers": {"X-Team": "ours"}}])
async def test_a_key_of_the_environment_goes_to_no_address_it_was_not_given_for(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, client_type: str, tried: dict[str, Any]
) -> None:
    for vendor in VENDORS.values():
        monkeypatch.setenv(vendor.api_key_env, planted.ENVIRONMENT)
    provider.when(lambda request: True, Reply.json({"error": {"message": "no"}}, 400))
    try:
        client = AutoLLMClient("a-model", base_url=provider.url("/v1"), client_type=client_type, **tried)
    except ApiKeyRequiredError as error:
        assert found(everything_about(error)) == []
        assert not VENDORS[client_type].open_server
        return
    with pytest.raises(MMSPError):  # servers of one's own need no key, and get none
        await read(client)
    assert VENDORS[client_type].open_server and provider.requests
    for request in provider.requests:
        assert found(f"{dict(request.headers)} {request.path} {request.query} {request.body}") == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"client_type": "no-such-type"},
        {"base_url": f"ftp://x:{planted.USER}@127.0.0.1/?key={planted.QUERY}", "api_key": None},
        {"base_url": f"ftp://x:{planted.USER}@127.0.0.1/?key={planted.QUERY}"},
        {"default_headers": {"X-Team": planted.HEADER, 7: "x"}},
        {"default_headers": [planted.HEADER]},
        {"default_headers": planted.HEADER},
    ],
)
def test_bad_arguments_show_no_key(arguments: dict[str, Any]) -> None:
    with pytest.raises((MMSPError, TypeError)) as caught:
        AutoLLMClient("gpt-5.5", **{"api_key": planted.CLIENT, **arguments})
    error = caught.value
    assert found(f"{error} {error!r} {vars(error)}") == []


# files


@pytest.fixture
def talk(provider: FakeProvider, client: AutoLLMClient) -> Conversation:
    """A conversation in which every secret was used or said, since it was told to send them."""
    script(provider)
    chat = Conversation(client=client, tools=[leaky], mask_keys=False)
    chat.ask(f"My key is {planted.PROMPT}. How high is the tide in Brest and in Rome?")
    sent = json.dumps([request.body for request in provider.requests])
    assert all(secret in sent for secret in (planted.PROMPT, planted.RESULT))
    return chat


def test_a_saved_conversation_holds_no_key(talk: Conversation, tmp_path: Path) -> None:
    assert found(talk.save(tmp_path / "talk.jsonl").read_bytes()) == []


@pytest.mark.parametrize("kind", ["md", "py", "ipynb", "html"])
def test_an_exported_conversation_holds_no_key(talk: Conversation, tmp_path: Path, kind: str) -> None:
    target = tmp_path / f"talk.{kind}"
    talk.export(target)
    assert "How high is the tide" in target.read_text(encoding="utf-8")
    assert found(target.read_bytes()) == []


def test_a_cassette_holds_no_key(provider: FakeProvider, tmp_path: Path) -> None:
    script(provider)
    tape = tmp_path / "tape.jsonl"
    client = make(provider, "openai-chat", Cassette(tape, "all"))
    Conversation(client=client, tools=[leaky], mask_keys=False).ask(f"My key is {planted.PROMPT}.")
    assert provider.requests and tape.stat().st_size
    assert found(tape.read_bytes()) == []


async def test_a_cassette_of_a_refusal_holds_no_key(provider: FakeProvider, tmp_path: Path) -> None:
    provider.when(lambda request: True, echoing(401))
    tape = tmp_path / "tape.jsonl"
    with pytest.raises(MMSPError):
        await read(make(provider, "openai-chat", Cassette(tape, "all")))
    assert found(tape.read_bytes()) == []


def test_trace_files_hold_no_key(
    provider: FakeProvider, client: AutoLLMClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    script(provider)
    chat = Conversation(client=client, tools=[leaky], config={"trace_id": "talk"}, mask_keys=False)
    chat.ask(f"My key is {planted.PROMPT}.")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert found(path.read_bytes()) == [], path.name


# the screen


def test_reprs_of_conversations_show_no_key(talk: Conversation) -> None:
    for shown in (repr(talk), talk._repr_html_(), str(talk)):
        assert found(shown) == []


CELLS = (
    "%%mmsp\nHow high is the tide in Brest and in Rome?",
    "chat",
    "answer = chat.ask('once more'); answer",
    "%mmsp history",
    "%mmsp status",
    "%mmsp why",
    "client",
    "%xmode Verbose\n%mmsp model",
)


def test_cells_show_no_key(shell: InteractiveShell, provider: FakeProvider, client: AutoLLMClient) -> None:
    script(provider)
    shell.user_ns.update(chat=Conversation(client=client, tools=[leaky]), client=client)
    shell.run_line_magic("mmsp", "use chat")
    shown = {cell: screen(shell, cell) for cell in CELLS}
    assert "6.4 m" in shown[CELLS[0]] and len(provider.requests) >= 4
    assert {cell: found(text) for cell, text in shown.items()} == {cell: [] for cell in CELLS}


@pytest.mark.parametrize("mode", ["Plain", "Context", "Verbose"])
def test_errors_in_cells_show_no_key(
    shell: InteractiveShell, provider: FakeProvider, client: AutoLLMClient, mode: str
) -> None:
    provider.when(lambda request: True, echoing(401))
    shell.user_ns.update(chat=Conversation(client=client))
    shell.run_line_magic("mmsp", "use chat")
    shell.run_line_magic("xmode", mode)
    shown = screen(shell, "%%mmsp\nhello") + screen(shell, "chat.ask('hello')")
    shell.run_line_magic("xmode", "Context")
    assert "401" in shown
    assert found(shown) == []


def test_the_search_would_find_each_of_them() -> None:
    assert found(" ".join(planted.ALL.values())) == list(planted.ALL)
