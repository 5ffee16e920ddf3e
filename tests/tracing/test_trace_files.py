import json
from datetime import datetime

import pytest

from mmsp_nb import AutoLLMClient, Conversation, Transport, UnsupportedParameterError, tracing
from mmsp_nb.testing import FakeProvider, Gate, Reply, streams

NOW = datetime(2026, 9, 21, 11, 6, 41, 417000)

HISTORY = [
    {
        "role": "user",
        "content_items": [{"type": "text.done", "text": "Ebb or flood at Brest?"}],
        "created_at": 1790000000000,
    },
    {
        "role": "assistant",
        "content_items": [
            {"type": "thinking.done", "thinking": "Check table.", "fidelity": {"signature": "c2ln"}},
            {"type": "text.done", "text": "Ebb until 14:20."},
        ],
        "usage_metadata": {"cached_tokens": None, "prompt_tokens": 31, "thoughts_tokens": 4, "response_tokens": 8},
        "finish_reason": "stop",
        "created_at": 1790000001417,
    },
]
CONFIG = {"system_prompt": "Be brief.", "trace_id": "tides/42"}


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path / "traces"))
    return tmp_path / "traces"


def save(trace_id="t", messages=HISTORY, config=CONFIG):
    return tracing.save(trace_id, messages, config, "some-model", now=NOW)


def test_the_json_file(directory):
    path, _ = save("tides/42")
    assert path == directory / "tides" / "42.json"
    text = path.read_text(encoding="utf-8")
    record = json.loads(text)
    assert record == {
        "history": HISTORY,
        "config": {**CONFIG, "model": "some-model"},
        "timestamp": "2026-09-21T11:06:41.417000",
    }
    assert list(record) == ["history", "config", "timestamp"]
    assert list(record["config"])[-1] == "model"
    assert text.startswith('{\n  "history": [\n')


def test_the_text_file():
    _, path = save("tides/42")
    bar, line = "=" * 80, "-" * 80
    assert (
        path.read_text(encoding="utf-8")
        == f"""{bar}
Conversation History - 2026-09-21 11:06:41
{bar}

Configuration:
  system_prompt: Be brief.
  model: some-model

[1] USER:
{line}
Text: Ebb or flood at Brest?

[2] ASSISTANT:
{line}
Thinking: Check table.
Text: Ebb until 14:20.

Usage Metadata:
  Prompt Tokens: 31
  Thoughts Tokens: 4
  Response Tokens: 8
  Total Tokens: 43

Finish Reason: stop
"""
    )


def test_every_kind_of_item_has_its_line():
    items = [
        {"type": "image_url.done", "image_url": "https://h/a.png"},
        {"type": "inline_data.done", "data": b"x" * 1536, "mime_type": "image/png"},
        {"type": "inline_thinking.done", "data": b"x" * 2**20, "mime_type": "audio/l16"},
        {"type": "inline_data.done", "data": b"", "mime_type": "application/pdf"},
        {"type": "embedding.done", "embedding": [0.5, 1, 2, 3, 4, 5]},
        {"type": "tool_call.done", "name": "tide", "arguments": {"port": "Brést"}, "tool_call_id": "c1"},
        {"type": "tool_result.done", "text": "6.4 m", "tool_call_id": "c1", "images": ["https://h/b.png"]},
        {"type": "weird.done"},
    ]
    tools = [{"name": "tide", "description": "Tidé"}]
    _, path = save(messages=[{"role": "user", "content_items": items}], config={"tools": tools})
    text = path.read_text(encoding="utf-8")
    assert (
        text.partition("-" * 80)[2]
        == """
Image URL: https://h/a.png
Inline Image: image/png (1.50 KB)
Thinking Inline Audio: audio/l16 (1.00 MB)
Inline Data: application/pdf (0.00 KB)
Embedding: [0.5, 1, 2, 3, 4]
Tool Call: tide
  Arguments: {
  "port": "Brést"
}
  Tool Call ID: c1
Tool Result (ID: c1): 6.4 m
  Image 1: https://h/b.png
"""
    )
    assert '  tools:\n    [\n  {\n    "name": "tide",\n    "description": "Tidé"\n  }\n]\n' in text


def test_a_trace_can_be_loaded_and_continued():
    media = [
        {"role": "assistant", "content_items": [{"type": "inline_data.done", "data": b"\xff", "mime_type": "a/b"}]}
    ]
    path, _ = save(messages=[*HISTORY, *media])
    assert '"/w=="' in path.read_text()
    assert tracing.load(path) == [*HISTORY, *media]


@pytest.mark.parametrize("text", ["", "[]", '{"history": 3}', '{"history": [{}]}', '{"config": {}}'])
def test_a_file_that_is_no_trace(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no trace file"):
        tracing.load(path)


@pytest.mark.parametrize(
    ("trace_id", "name"), [("a.b", "a.b.json"), ("a.c", "a.c.json"), ("x.json", "x.json"), ("x.txt", "x.json")]
)
def test_names_are_never_cut_at_a_dot(directory, trace_id, name):
    save(trace_id)
    assert (directory / name).exists()


@pytest.mark.parametrize("trace_id", ["../up", "/abs", "a/../b", ".", "a//b", "a\0b", "con", "a\\b"])
def test_an_id_that_would_leave_the_directory_is_refused(directory, trace_id):
    with pytest.raises(UnsupportedParameterError) as caught:
        save(trace_id)
    assert caught.value.parameter == "trace_id"
    assert not directory.exists()


def test_a_link_out_of_the_directory_is_not_followed(directory, tmp_path):
    directory.mkdir()
    (directory / "out").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(OSError, match="outside"):
        save("out/x")
    assert not (tmp_path / "x.json").exists()


def test_the_last_call_wins_and_leaves_no_other_files(directory):
    save()
    save(messages=HISTORY[:1])
    assert len(json.loads((directory / "t.json").read_text())["history"]) == 1
    assert sorted(path.name for path in directory.iterdir()) == ["t.json", "t.txt"]


@pytest.mark.parametrize("value", [None, ""])
def test_the_default_directory_is_below_the_working_directory(monkeypatch, tmp_path, value):
    monkeypatch.chdir(tmp_path)
    if value is None:
        monkeypatch.delenv("MMSP_CACHE_DIR")
    else:
        monkeypatch.setenv("MMSP_CACHE_DIR", value)
    assert tracing.trace_directory() == tmp_path / "cache"


# what the client writes


@pytest.fixture
def provider():
    with FakeProvider() as server:
        yield server


@pytest.fixture
def client(provider):
    return AutoLLMClient("some-model", "sk-key", provider.url("/v1"), "openai-chat", transport=Transport(retries=0))


def user(text):
    return {"role": "user", "content_items": [{"type": "text.done", "text": text}]}


async def test_at_the_stop_the_files_exist_and_hold_the_whole_history(client, provider, directory):
    provider.add(streams.reply("text", "chat"), streams.reply("text", "chat"))
    for text in ("one", "two"):
        async for event in client.streaming_response_stateful(user(text), {"trace_id": "a/b", "max_tokens": 9}):
            if event["event_type"] == "stop":
                break
    record = json.loads((directory / "a" / "b.json").read_text())
    assert record["history"] == client.get_history()
    assert len(record["history"]) == 4
    assert record["config"] == {"trace_id": "a/b", "max_tokens": 9, "model": "some-model"}
    assert "sk-key" not in (directory / "a" / "b.json").read_text()


async def test_stateless_calls_are_traced_too(client, provider, directory):
    provider.add(streams.reply("text", "chat"))
    messages = [user("one")]
    events = [event async for event in client.streaming_response(messages, {"trace_id": "x"})]
    assert tracing.load(directory / "x.json") == [*messages, client.concat_uni_events_to_uni_message(events)]


@pytest.mark.parametrize("config", [{}, {"trace_id": None}, {"trace_id": ""}])
async def test_without_an_id_nothing_is_written(client, provider, directory, config):
    provider.add(streams.reply("text", "chat"))
    async for _ in client.streaming_response([user("one")], config):
        pass
    assert not directory.exists()


async def test_a_failed_or_abandoned_call_leaves_an_earlier_trace_as_it_was(client, provider, directory):
    text = streams.reply("text", "chat")
    provider.add(text, Reply.json({}, 400), Reply([*text.body[:2], Gate()]))
    config = {"trace_id": "x"}
    async for _ in client.streaming_response_stateful(user("one"), config):
        pass
    before = (directory / "x.json").read_text()
    with pytest.raises(ValueError):
        await anext(client.streaming_response_stateful(user("two"), config))
    async for _ in client.streaming_response_stateful(user("three"), config):
        break
    assert (directory / "x.json").read_text() == before


async def test_a_trace_that_cannot_be_written_is_a_warning_and_the_turn_is_kept(client, provider, directory):
    provider.add(streams.reply("text", "chat"))
    directory.write_text("a file is in the way")
    with pytest.warns(RuntimeWarning, match="trace was not written"):
        events = [event async for event in client.streaming_response_stateful(user("one"), {"trace_id": "x"})]
    assert events[-1]["event_type"] == "stop"
    assert len(client.get_history()) == 2


async def test_a_bad_id_is_refused_before_anything_is_sent(client, provider):
    with pytest.raises(UnsupportedParameterError) as caught:
        await anext(client.streaming_response([user("one")], {"trace_id": "../x"}))
    assert caught.value.parameter == "trace_id"
    assert provider.requests == []


async def test_an_mmsp_server_writes_its_own_traces(provider, directory):
    provider.add(streams.reply("text", "mmsp"))
    client = AutoLLMClient("m", None, provider.url("/v1"), "mmsp")
    async for _ in client.streaming_response_stateful(user("one"), {"trace_id": "x"}):
        pass
    assert provider.last.body["config"] == {"trace_id": "x"}
    assert not directory.exists()


async def test_no_key_gets_into_a_trace(client, provider, directory, monkeypatch):
    shaped, named, own = "sk-proj-aB3dE5gH7jK9mN1pQ3s", "hunter2-of-the-environment", "a-key-of-no-known-shape"
    monkeypatch.setenv("SOME_API_KEY", named)
    code = 'api_key = os.environ["SOME_API_KEY"]  # token = tokenizer'
    client = AutoLLMClient("some-model", own, provider.url("/v1"), "openai-chat", transport=Transport(retries=0))
    provider.add(streams.reply("text", "chat"))
    config = {"trace_id": "x", "system_prompt": named, "extra_headers": {"X-Secret": "open sesame"}}
    async for _ in client.streaming_response_stateful(user(f"{shaped} {named} {own} {code}"), config):
        pass
    for name in ("x.json", "x.txt"):
        text = (directory / name).read_text()
        assert not [secret for secret in (shaped, named, own, "open sesame") if secret in text], name
    assert tracing.load(directory / "x.json")[0]["content_items"][0]["text"] == f"sk-proj-*** *** *** {code}"
    assert client.get_history()[0]["content_items"][0]["text"] == f"{shaped} {named} {own} {code}"


def test_each_round_of_tools_is_written_before_the_tools_run(provider, directory):
    provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    seen = []

    def tide_table(port: str, days: int = 1) -> str:
        """When?"""
        seen.append(len(tracing.load(directory / "run" / "7.json")))
        return port

    where = {"client_type": "openai-chat", "api_key": "k", "base_url": provider.url("/v1")}
    chat = Conversation("some-model", tools=[tide_table], config={"trace_id": "run/7"}, **where)
    chat.ask("When?")
    assert seen == [2, 2] and len(tracing.load(directory / "run" / "7.json")) == 4
    assert [path.name for path in (directory / "run").iterdir() if path.name.startswith(".")] == []
