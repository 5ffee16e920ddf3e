"""OpenTelemetry: which spans and metrics there are, how they hang together, and what they never hold or cost."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import warnings

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from mmsp_nb import AbortSignal, Agent, AutoLLMClient, Conversation, Transport, telemetry, tool
from mmsp_nb.protocol.errors import (
    AbortError,
    AuthenticationError,
    ConnectionCutError,
    ConnectionFailedError,
    HTTPStatusError,
    InvalidMessageError,
)
from mmsp_nb.providers import observed
from mmsp_nb.providers.vendors import VENDORS, bedrock, vertex
from mmsp_nb.testing import Gate, Reply, streams

KEY = "own-key-of-no-known-shape-0"
TYPES = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "ant-messages": "messages",
    "google-official": "interactions",
    "google-genai": "generate_content",
    "mmsp": "mmsp",
}
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def options(provider, client_type="openai-chat"):
    suffix = "" if client_type.startswith(("ant", "google")) else "/v1"
    transport = Transport(retries=0)
    return {
        "client_type": client_type,
        "api_key": KEY,
        "base_url": provider.url(suffix),
        "transport": transport,
    }


def chat_with(provider, client_type="openai-chat", **more):
    return Conversation("some-model", **options(provider, client_type), **more)


def named(spans, name):
    return [span for span in spans if span.name == name]


def parent(span):
    return None if span.parent is None else span.parent.span_id


@tool
def tide_table(port: str, days: int = 1) -> str:
    """When is high tide?"""
    with trace.get_tracer("user").start_as_current_span(f"lookup {port}"):
        return f"noon in {port}"


# what is there


@pytest.mark.parametrize("client_type", TYPES)
def test_a_question_with_tools_is_an_agent_its_requests_and_its_calls(fake_provider, spans, client_type):
    dialect = TYPES[client_type]
    fake_provider.add(streams.reply("tools", dialect), streams.reply("text", dialect))
    chat = chat_with(fake_provider, client_type, tools=[tide_table], name="tides", config={"max_tokens": 99})
    with trace.get_tracer("user").start_as_current_span("cell"):
        chat.ask("When?")
    found = spans()
    [cell], [agent] = named(found, "cell"), named(found, "invoke_agent tides")
    requests, calls = named(found, "chat some-model"), named(found, "execute_tool tide_table")
    assert (len(requests), len(calls)) == (2, 2)
    assert parent(agent) == cell.context.span_id
    assert {parent(span) for span in (*requests, *calls)} == {agent.context.span_id}
    lookups = [span for span in found if span.name.startswith("lookup")]
    assert {parent(span) for span in lookups} == {span.context.span_id for span in calls}
    assert len({span.context.trace_id for span in found}) == 1
    assert all(span.status.status_code is StatusCode.UNSET for span in found)
    assert {requests[0].kind, calls[0].kind, agent.kind} == {SpanKind.CLIENT, SpanKind.INTERNAL}

    first = dict(requests[0].attributes)
    assert first["gen_ai.operation.name"] == "chat"
    assert (
        first["gen_ai.provider.name"]
        == first["gen_ai.system"]
        == observed.provider_name(VENDORS[client_type], fake_provider.url(""))
    )
    assert first["gen_ai.request.model"] == "some-model"
    assert first["gen_ai.request.max_tokens"] == 99
    assert first["server.address"] == "127.0.0.1" and first["server.port"] == fake_provider.port
    assert first["gen_ai.response.finish_reasons"] == (chat.turns[0].messages[1]["finish_reason"],)
    assert first["gen_ai.response.time_to_first_chunk"] > 0
    usage = chat.turns[0].messages[1]["usage_metadata"]
    assert first["gen_ai.usage.input_tokens"] == usage["prompt_tokens"] + usage["cached_tokens"]
    assert first["gen_ai.usage.output_tokens"] == usage["response_tokens"] + (usage["thoughts_tokens"] or 0)
    assert first["gen_ai.usage.cache_read.input_tokens"] == usage["cached_tokens"]
    assert {span.attributes["gen_ai.conversation.id"] for span in (agent, *requests, *calls)} == {chat.turns[0].id}

    assert {span.attributes["gen_ai.tool.call.id"] for span in calls} == {
        outcome.call["tool_call_id"] for outcome in chat.turns[0].outcomes
    }
    assert calls[0].attributes["gen_ai.tool.name"] == "tide_table"
    assert calls[0].attributes["gen_ai.tool.description"].startswith("When is high tide?")
    assert agent.attributes["gen_ai.agent.name"] == "tides"
    assert agent.attributes["gen_ai.usage.output_tokens"] == 2 * first["gen_ai.usage.output_tokens"]
    assert agent.attributes["mmsp_nb.end_reason"] == "answer"
    assert not [key for span in found for key in span.attributes if "messages" in key or "arguments" in key]


@pytest.mark.parametrize(
    ("client_type", "dialect"), [(name, dialect) for name, dialect in TYPES.items() if name != "mmsp"]
)
def test_who_answered_is_read_off_the_first_events(fake_provider, spans, client_type, dialect):
    fake_provider.add(streams.reply("text", dialect))
    chat_with(fake_provider, client_type).ask("hello")
    [span] = named(spans(), "chat some-model")
    assert span.attributes["gen_ai.response.id"]
    assert span.attributes["gen_ai.response.model"]


def test_the_settings_of_a_request_are_attributes(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat"))
    chat = chat_with(fake_provider, config={"temperature": 0.25, "max_tokens": 7})
    chat.ask("hello", config={"response_format": {"type": "json_object"}})
    [span] = named(spans(), "chat some-model")
    assert span.attributes["gen_ai.request.temperature"] == 0.25
    assert span.attributes["gen_ai.output.type"] == "json"
    assert "gen_ai.conversation.id" in span.attributes


def test_embeddings_are_their_own_operation(fake_provider, spans):
    data = {"data": [{"index": 0, "embedding": [0.5]}], "model": "emb-1", "usage": {"prompt_tokens": 3}}
    fake_provider.add(Reply.json(data))
    chat_with(fake_provider, "openai-embedding").ask("hello")
    [span] = named(spans(), "embeddings some-model")
    assert span.attributes["gen_ai.operation.name"] == "embeddings"
    assert span.attributes["gen_ai.usage.input_tokens"] == 3


def test_tokens_and_durations_are_measured(fake_provider, measured):
    fake_provider.add(streams.reply("text", "chat"), Reply.json({"error": {"message": "no"}}, 401))
    chat = Conversation("measured-model", **options(fake_provider))
    chat.ask("hello")
    with pytest.raises(AuthenticationError):
        chat.ask("again")
    found = measured()
    mine = {
        name: [point for point in points if point.attributes["gen_ai.request.model"] == "measured-model"]
        for name, points in found.items()
    }
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in mine["gen_ai.client.token.usage"]}
    usage = chat.turns[0].usage
    assert tokens == {
        "input": usage["prompt_tokens"] + usage["cached_tokens"],
        "output": usage["response_tokens"] + usage["thoughts_tokens"],
    }
    durations = mine["gen_ai.client.operation.duration"]
    assert sorted(point.attributes.get("error.type", "") for point in durations) == ["", "AuthenticationError"]
    assert durations[0].explicit_bounds[:3] == (0.01, 0.02, 0.04)


# how they hang together


async def test_tools_that_run_together_have_their_own_spans_and_one_parent(fake_provider, spans):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    both = asyncio.Barrier(2)

    @tool(name="tide_table")
    async def together(port: str, days: int = 1) -> str:
        """When?"""
        await both.wait()
        with trace.get_tracer("user").start_as_current_span(f"lookup {port}"):
            await both.wait()
        return port

    await chat_with(fake_provider, tools=[together]).ask_async("When?")
    found = spans()
    calls = {span.attributes["gen_ai.tool.call.id"]: span for span in named(found, "execute_tool tide_table")}
    [agent] = named(found, "invoke_agent")
    assert {parent(span) for span in calls.values()} == {agent.context.span_id}
    lookups = {span.name.split()[1]: parent(span) for span in found if span.name.startswith("lookup")}
    assert lookups == {"Brest": calls["call_1"].context.span_id, "Saint-Malo": calls["call_2"].context.span_id}


def test_a_tool_in_a_thread_of_its_own_is_a_part_of_its_call(fake_provider, spans):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    threads = set()

    @tool(name="tide_table", thread=True)
    def there(port: str, days: int = 1) -> str:
        """When?"""
        threads.add(threading.get_ident())
        with trace.get_tracer("user").start_as_current_span("lookup"):
            return port

    chat_with(fake_provider, tools=[there]).ask("When?")
    calls = {span.context.span_id for span in named(spans(), "execute_tool tide_table")}
    assert {parent(span) for span in named(spans(), "lookup")} == calls and len(calls) == 2
    assert threading.get_ident() not in threads


async def test_conversations_at_the_same_time_do_not_mix(fake_provider, spans):
    gates = [Gate(), Gate()]
    text = streams.reply("text", "chat")
    fake_provider.add(*(text.hold(gate, 10) for gate in gates))
    chats = [chat_with(fake_provider, name=name) for name in ("one", "two")]

    async def ask(chat):
        with trace.get_tracer("user").start_as_current_span(f"task {chat.name}"):
            await chat.ask_async("hello")

    tasks = [asyncio.ensure_future(ask(chat)) for chat in chats]
    for gate in gates:
        await gate.wait_arrived()
    for gate in gates:
        gate.open()
    await asyncio.gather(*tasks)
    found = spans()
    for chat in chats:
        [outer], [agent] = named(found, f"task {chat.name}"), named(found, f"invoke_agent {chat.name}")
        assert parent(agent) == outer.context.span_id
        [request] = [span for span in named(found, "chat some-model") if parent(span) == agent.context.span_id]
        assert request.attributes["gen_ai.conversation.id"] == chat.turns[0].id


async def test_no_span_stays_current_between_events_or_after_them(fake_provider, spans):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    before = otel_context.get_current()
    async for _ in chat_with(fake_provider, tools=[tide_table]).stream("When?"):
        assert otel_context.get_current() == before
    assert otel_context.get_current() == before


# how they end


def test_a_refusal_ends_the_spans_with_its_type(fake_provider, spans):
    fake_provider.add(Reply.json({"error": {"message": f"bad key {KEY}"}}, 401))
    with pytest.raises(AuthenticationError):
        chat_with(fake_provider).ask("hello")
    for name in ("chat some-model", "invoke_agent"):
        [span] = named(spans(), name)
        assert span.attributes["error.type"] == "AuthenticationError"
        assert span.status.status_code is StatusCode.ERROR
        assert KEY not in span.to_json()


def test_a_cut_connection_ends_the_spans(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat").cut(200))
    with pytest.raises(ConnectionCutError):
        chat_with(fake_provider).ask("hello")
    assert [span.attributes["error.type"] for span in spans()] == ["ConnectionCutError"] * 2


async def test_an_abort_ends_the_spans(fake_provider, spans):
    signal, gate = AbortSignal(), Gate()
    fake_provider.add(streams.reply("text", "chat").hold(gate, 100))
    asking = asyncio.ensure_future(chat_with(fake_provider).ask_async("hello", signal=signal))
    await gate.wait_arrived()
    signal.abort()
    with pytest.raises(AbortError):
        await asking
    gate.open()
    assert [span.attributes["error.type"] for span in spans()] == ["AbortError"] * 2


async def test_a_cancelled_task_ends_the_spans_and_those_of_its_tools(fake_provider, spans):
    fake_provider.add(streams.reply("tools", "chat"))
    started = asyncio.Event()

    @tool(name="tide_table")
    async def endless(port: str, days: int = 1) -> str:
        """When?"""
        started.set()
        await asyncio.Event().wait()

    asking = asyncio.ensure_future(chat_with(fake_provider, tools=[endless]).ask_async("When?"))
    await started.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    ended = {span.name: span.attributes.get("error.type") for span in spans()}
    assert ended == {
        "chat some-model": None,
        "execute_tool tide_table": "CancelledError",
        "invoke_agent": "CancelledError",
    }


def test_an_interrupted_tool_ends_the_spans(fake_provider, spans):
    fake_provider.add(streams.reply("tools", "chat"))

    @tool(name="tide_table")
    def stopped(port: str, days: int = 1) -> str:
        """When?"""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chat_with(fake_provider, tools=[stopped]).ask("When?")
    assert {span.name for span in spans()} == {"chat some-model", "execute_tool tide_table", "invoke_agent"}
    assert all(span.end_time for span in spans())


async def test_a_stream_that_is_dropped_ends_its_spans(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat"))
    stream = chat_with(fake_provider).stream("hello")
    async for event in stream:
        if event["type"] == "event":
            break
    await stream.aclose()
    assert [span.attributes["error.type"] for span in spans()] == ["GeneratorExit"] * 2


async def test_whoever_stops_reading_at_the_stop_has_a_whole_answer(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat"))
    client = AutoLLMClient("some-model", **options(fake_provider))
    message = {"role": "user", "content_items": [{"type": "text.done", "text": "hello"}]}
    async for event in client.streaming_response([message]):
        if event["event_type"] == "stop":
            break
    [span] = spans()
    assert "error.type" not in span.attributes and span.attributes["gen_ai.usage.output_tokens"]


@pytest.mark.parametrize(("parameters", "kind"), [("port, days=1", "ZeroDivisionError"), ("port", "invalid")])
def test_failed_and_refused_calls_say_so_and_no_more(fake_provider, spans, parameters, kind):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    made = {}
    exec(f"def tide_table({parameters}):\n  'When?'\n  raise ZeroDivisionError('a secret matter')", made)
    answer = chat_with(fake_provider, tools=[made["tide_table"]]).ask("When?")
    assert kind == "invalid" or "a secret matter" in answer.calls[0].text
    calls = named(spans(), "execute_tool tide_table")
    assert [span.attributes["error.type"] for span in calls] == [kind] * 2
    assert not any("a secret matter" in span.to_json() for span in spans())


def test_what_is_wrong_in_form_was_no_request(fake_provider, spans):
    with pytest.raises(InvalidMessageError):
        chat_with(fake_provider).ask("  ")
    assert named(spans(), "chat some-model") == []


# what they hold


def test_what_was_said_is_there_when_it_is_asked_for_and_without_keys(fake_provider, spans, monkeypatch):
    monkeypatch.setenv(CAPTURE, "true")
    monkeypatch.setenv("SOME_API_KEY", "hunter2-of-the-environment")
    shaped = "sk-proj-aB3dE5gH7jK9mN1pQ3s"
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))

    @tool(name="tide_table")
    def leaky(port: str, days: int = 1) -> str:
        """When?"""
        return f"{port} {KEY} hunter2-of-the-environment {shaped}"

    picture = {"type": "image_url.done", "image_url": "data:image/png;base64," + "A" * 5000}
    chat = chat_with(fake_provider, tools=[leaky], system=f"Be brief, {shaped}.")
    chat.ask([f"When? {KEY}", picture])
    found = spans()
    everything = "".join(span.to_json() for span in found)
    assert not [secret for secret in (KEY, shaped, "hunter2", "A" * 50) if secret in everything]
    first, second = named(found, "chat some-model")
    said = json.loads(first.attributes["gen_ai.input.messages"])
    assert said == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "When? ***"},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 5022},
            ],
        }
    ]
    [answer] = json.loads(first.attributes["gen_ai.output.messages"])
    assert answer["role"] == "assistant" and answer["finish_reason"]
    assert [part["type"] for part in answer["parts"]] == ["reasoning", "tool_call", "tool_call"]
    assert answer["parts"][1]["arguments"] == {"port": "Brest", "days": 1}
    assert json.loads(second.attributes["gen_ai.input.messages"])[-1]["role"] == "tool"
    assert "Be brief" in first.attributes["gen_ai.system_instructions"]
    assert json.loads(first.attributes["gen_ai.tool.definitions"])[0]["name"] == "tide_table"
    call = named(found, "execute_tool tide_table")[0]
    assert json.loads(call.attributes["gen_ai.tool.call.arguments"])["port"]
    assert "***" in call.attributes["gen_ai.tool.call.result"]
    assert json.loads(call.attributes["gen_ai.tool.call.result"])


@pytest.mark.parametrize("value", ["", "false", "0", "no_content", "event_only"])
def test_otherwise_nothing_of_it_is(fake_provider, spans, monkeypatch, value):
    monkeypatch.setenv(CAPTURE, value)
    fake_provider.add(streams.reply("text", "chat"))
    chat_with(fake_provider).ask("a secret matter")
    assert not any("secret matter" in span.to_json() for span in spans()) and spans()


@pytest.mark.parametrize("value", ["0", "false", "OFF"])
def test_a_variable_turns_it_off(fake_provider, spans, monkeypatch, value):
    monkeypatch.setenv("MMSP_NB_OTEL", value)
    fake_provider.add(streams.reply("text", "chat"))
    chat_with(fake_provider).ask("hello")
    assert spans() == []


@pytest.mark.parametrize(
    ("vendor", "base_url", "name"),
    [
        (VENDORS["openai-official"], "http://127.0.0.1:1/v1", "openai"),
        (VENDORS["openai-chat"], "https://api.groq.com/openai/v1", "groq"),
        (VENDORS["openai-chat"], "https://mine.openai.azure.com/openai", "azure.ai.openai"),
        (VENDORS["openai-chat"], "https://notapi.groq.com.example", "openai-chat"),
        (VENDORS["openai-chat"], "http://127.0.0.1:8000/v1", "openai-chat"),
        (VENDORS["google-genai"], "https://generativelanguage.googleapis.com", "gcp.gemini"),
        (VENDORS["moonshot-official"], "https://api.moonshot.cn/v1", "moonshot_ai"),
        (bedrock("eu-west-1"), "https://bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
        (vertex("p"), "https://aiplatform.googleapis.com", "gcp.vertex_ai"),
    ],
)
def test_the_names_of_providers_are_those_of_the_conventions(vendor, base_url, name):
    assert observed.provider_name(vendor, base_url) == name


@pytest.mark.parametrize("payload", [None, [], "x", {"id": "item_1"}, {"response": 3}, {"id": 4, "model": 5}])
def test_an_event_that_says_nothing_of_who_answered(payload):
    assert observed.answered_by(payload) == (None, None)


# what they cost


class Broken:
    """Fails at whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(f"broken exporter, {KEY}")


@pytest.mark.parametrize("where", ["start", "end"])
def test_a_failing_exporter_costs_no_answer(_providers, fake_provider, monkeypatch, where, spans):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    monkeypatch.setattr(telemetry, "_complained", False)
    provider = trace.get_tracer_provider()
    processor = provider._active_span_processor
    monkeypatch.setattr(processor, f"on_{where}", lambda *args, **kwargs: 1 / 0)
    with pytest.warns(RuntimeWarning, match="answers go on without it: ZeroDivisionError") as warned:
        answer = chat_with(fake_provider, tools=[tide_table_quiet]).ask("When?")
    assert answer.text and len(answer.calls) == 2
    assert len([one for one in warned if "OpenTelemetry" in str(one.message)]) == 1, "it is said once"


@tool(name="tide_table")
def tide_table_quiet(port: str, days: int = 1) -> str:
    """When?"""
    return port


def test_failing_metrics_cost_no_answer(fake_provider, spans, monkeypatch):
    fake_provider.add(streams.reply("text", "chat"))
    monkeypatch.setattr(telemetry, "_complained", True)
    monkeypatch.setattr(telemetry, "_instruments", lambda provider: (Broken(), Broken()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chat_with(fake_provider).ask("hello").text
    assert len(spans()) == 2


ELSEWHERE = """
import sys
{before}
from mmsp_nb import Conversation
chat = Conversation("demo")
print(chat.ask("hello").text != "", sorted(name for name in sys.modules if name.startswith("opentelemetry"))[:1])
"""


@pytest.mark.parametrize(
    ("before", "loaded"),
    [
        ("", "[]"),
        ("sys.modules['opentelemetry'] = None", "['opentelemetry']"),
        ("import opentelemetry.trace", "['opentelemetry']"),
    ],
    ids=["never imported", "not installed", "no provider"],
)
def test_without_a_provider_nothing_is_loaded_and_nothing_fails(before, loaded):
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", ELSEWHERE.format(before=before)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == f"True {loaded}", done.stderr


def test_an_agent_alone_has_its_name(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat"))
    agent = Agent(AutoLLMClient("some-model", **options(fake_provider)), name="pilot", conversation="c-1")

    async def run():
        async for _ in agent.run("hello"):
            pass

    asyncio.run(run())
    assert [span.attributes["gen_ai.conversation.id"] for span in spans()] == ["c-1", "c-1"]
    assert named(spans(), "invoke_agent pilot")


def test_what_a_provider_says_of_a_refusal_is_in_no_span_unless_content_is_asked_for(fake_provider, spans, monkeypatch):
    refusal = Reply.json({"error": {"message": "the prompt 'my diagnosis' is not allowed"}}, 400)
    fake_provider.add(refusal, refusal)
    with pytest.raises(HTTPStatusError, match="my diagnosis"):
        chat_with(fake_provider).ask("my diagnosis")
    assert len(spans()) == 2
    for span in spans():
        assert "diagnosis" not in span.to_json()
        assert span.status.description == "HTTPStatusError: status 400"
    monkeypatch.setenv(CAPTURE, "true")
    with pytest.raises(HTTPStatusError):
        chat_with(fake_provider).ask("my diagnosis")
    assert all("my diagnosis" in span.status.description for span in spans()[2:])


def test_a_connection_that_fails_says_in_its_span_where_to(spans):
    chat = Conversation(
        "m", client_type="openai-chat", api_key="k", base_url="http://127.0.0.1:1/v1", transport=Transport(retries=0)
    )
    with pytest.raises(ConnectionFailedError):
        chat.ask("hello")
    assert all("127.0.0.1:1" in span.status.description for span in spans())


def test_the_name_of_a_conversation_brings_no_key_into_a_span(fake_provider, spans):
    fake_provider.add(streams.reply("text", "chat"))
    chat_with(fake_provider, name="mine sk-proj-aB3dE6gH9kL2mN5pQ8rS").ask("hello")
    assert "invoke_agent mine sk-proj-***" in [span.name for span in spans()]
    assert not any("aB3dE6" in span.to_json() for span in spans())
