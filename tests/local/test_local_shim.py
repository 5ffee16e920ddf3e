"""What stands between a caller and llama.cpp's server, with a scripted server in its place."""

import json
import re
import threading

import pytest
from local_helpers import WEATHER, ask, frames, payloads, post, raw_connection, raw_request, request

from mmsp_nb.local.child import LocalMind
from mmsp_nb.local.front import Answer, Front
from mmsp_nb.local.service import Service
from mmsp_nb.local.shim import capped, grounded, narrowed, plain, true_to
from mmsp_nb.local.upstream import Upstream
from mmsp_nb.local.wire import chat, messages
from mmsp_nb.local.wire.neutral import Ask, Text, Turn

BOTH = "What's the weather in London and in Paris?"


class Llama:
    """A server in place of llama.cpp's: ``say`` makes the text of an answer from a request's body."""

    def __init__(self):
        self.bodies, self.paths = [], []
        self.say = lambda body: "Hello there."
        self.answer = None
        self.front = Front(self).start()

    def __call__(self, exchange):
        body = json.loads(exchange.body)
        self.bodies.append(body)
        self.paths.append((exchange.path, exchange.headers.get("authorization"), exchange.headers.get("connection")))
        if self.answer:
            return self.answer(exchange, body)
        text = self.say(body)
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
        if not body.get("stream"):
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return Answer.json({"choices": [choice], "usage": usage})
        chunks = [{"choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]}]
        chunks += [
            {"choices": [{"delta": {"content": word}, "finish_reason": None}]} for word in re.findall(r"\s*\S+", text)
        ]
        chunks += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        return Answer.events([b": ping\n\n", *lines, b"data: [DONE]\n\n"])


@pytest.fixture
def llama():
    server = Llama()
    yield server
    server.front.close()


@pytest.fixture
def served(llama):
    host, port = llama.front.base_url[7:].split(":")
    mind = LocalMind(Upstream((host, int(port)), "inner"), "tiny", 4096, 512)
    with Front(Service(mind)) as front:
        yield front.base_url


@pytest.mark.parametrize("wire", ["chat", "responses", "messages"])
def test_plain_requests_pass_byte_for_byte(llama, served, wire):
    raw = b'data: {"odd": [1,  2]}\r\n\r\n: comment\n\n'
    llama.answer = lambda exchange, body: Answer.events([raw], {"X-Odd": "1"})
    path, body = request(wire, "Hi", max_tokens=20)
    status, headers, content = post(served, path, body)
    assert (status, content, headers["x-odd"]) == (200, raw, "1")
    assert "x-mmsp-local" not in headers
    assert headers["connection"] == "close"
    assert llama.bodies == [body]
    assert llama.paths == [(path, "Bearer inner", "close")]


def test_refusals_of_the_server_pass_too(llama, served):
    llama.answer = lambda exchange, body: Answer.json(
        {"error": {"code": 400, "type": "exceed_context_size_error"}}, 400
    )
    status, _, content = post(served, *request("chat", "Hi"))
    assert (status, json.loads(content)["error"]["type"]) == (400, "exceed_context_size_error")


def test_leaving_gives_up_the_server_at_once(llama, served):
    """Also while the server has not said a word: that is when a long prompt is read."""
    busy, given_up = threading.Event(), threading.Event()

    def slow(exchange, body):
        busy.set()
        try:
            exchange.wait(30)
        finally:
            given_up.set()

    llama.answer = slow
    connection = raw_connection(served)
    connection.sendall(raw_request(*request("chat", "Hi")))
    assert busy.wait(5)
    connection.close()
    assert given_up.wait(5)


def test_leaving_gives_up_the_server_behind_the_shim(llama, served):
    begun, given_up = threading.Event(), threading.Event()

    def slow(exchange, body):
        def lines():
            yield b'data: {"choices": [{"delta": {"content": "One"}}]}\n\n'
            begun.set()
            try:
                exchange.wait(30)
            finally:
                given_up.set()

        return Answer.events(lines())

    llama.answer = slow
    connection = raw_connection(served)
    connection.sendall(raw_request(*request("interactions", "Hi")))
    received = b""
    while b"One" not in received:
        received += connection.recv(4096)
    assert begun.wait(5)
    connection.close()
    assert given_up.wait(5)


@pytest.mark.parametrize("wire", ["interactions", "generate", "mmsp"])
def test_foreign_formats_are_translated_and_labelled(llama, served, wire):
    status, headers, content = post(served, *request(wire, "Hi", model="local"))
    assert (status, headers["x-mmsp-local"]) == (200, "shim")
    assert b"Hello" in content
    assert llama.bodies[0]["messages"] == [{"role": "user", "content": "Hi"}]
    assert llama.bodies[0]["max_tokens"] == 512


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "interactions", "generate"])
def test_tools_are_called_in_every_format(llama, served, wire):
    def arguments(body):
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps({name: entry["const"] for name, entry in schema["properties"].items()})

    llama.say = arguments
    status, headers, content = post(served, *request(wire, BOTH, tools=[WEATHER], stream=False))
    assert (status, headers["x-mmsp-local"]) == (200, "shim")
    text = content.decode().replace("\\", "")
    assert text.index('"city": "London"') < text.index('"city": "Paris"')
    assert [body["temperature"] for body in llama.bodies] == [0, 0]
    assert all("get_weather" in body["messages"][0]["content"] for body in llama.bodies)
    streamed = ask(served, wire, BOTH, tools=[WEATHER])
    assert b"get_weather" in streamed


def test_arguments_that_are_no_json_are_taken_from_the_prompt(llama, served):
    llama.say = lambda body: '{"city": "Lon'
    _, _, content = post(served, *request("chat", "weather in London", tools=[WEATHER], stream=False))
    call = json.loads(content)["choices"][0]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"city": "London"}


def test_a_missing_parameter_is_asked_for_by_the_model(llama, served):
    llama.say = lambda body: "Which city?"
    _, _, content = post(served, *request("chat", "What is the weather?", tools=[WEATHER], stream=False))
    assert json.loads(content)["choices"][0]["message"]["content"] == "Which city?"
    assert "city" in llama.bodies[0]["messages"][0]["content"]


def test_no_tool_is_called_without_need(llama, served):
    _, headers, content = post(served, *request("chat", "Write a poem", tools=[WEATHER], stream=False))
    assert json.loads(content)["choices"][0]["message"]["content"] == "Hello there."
    assert headers["x-mmsp-local"] == "shim"


def results(*texts):
    calls = [
        {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        for at, (city, _) in enumerate(texts)
    ]
    told = [{"role": "tool", "tool_call_id": f"c{at}", "content": text} for at, (_, text) in enumerate(texts)]
    said = [{"role": "user", "content": BOTH}, {"role": "assistant", "tool_calls": calls}, *told]
    return {"model": "local", "messages": said, "tools": [{"type": "function", "function": WEATHER}]}


def test_results_are_told_by_the_model_if_it_tells_the_truth(llama, served):
    body = results(("London", "15 degrees, rain"), ("Paris", "19 degrees, sunny"))
    llama.say = lambda body: "London has 15 degrees and rain, Paris has 19 degrees and is sunny."
    _, _, content = post(served, "/v1/chat/completions", body)
    assert json.loads(content)["choices"][0]["message"]["content"].startswith("London has 15 degrees and rain")
    assert "tools" not in llama.bodies[0]
    llama.say = lambda body: "London has 19 degrees and Paris 23."
    _, _, content = post(served, "/v1/chat/completions", body)
    assert "- **London**: 15 degrees, rain" in json.loads(content)["choices"][0]["message"]["content"]


def test_failed_results_are_not_left_to_the_model(llama, served):
    _, _, content = post(served, "/v1/chat/completions", results(("London", "Error: no such city")))
    assert "did not work: no such city" in json.loads(content)["choices"][0]["message"]["content"]
    assert llama.bodies == []


def test_json_answers_are_asked_for_without_a_repeat_penalty(llama, served):
    llama.say = lambda body: '{"age": 36}'
    path, body = request("responses", "Ada is 36", stream=False)
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    body["text"] = {"format": {"type": "json_schema", "name": "p", "schema": schema}}
    _, headers, content = post(served, path, body)
    assert json.loads(content)["output"][0]["content"][0]["text"] == '{"age": 36}'
    assert headers["x-mmsp-local"] == "shim"
    assert llama.bodies[0]["repeat_penalty"] == 1.0
    assert llama.bodies[0]["response_format"]["json_schema"]["schema"] == schema


def test_an_error_after_200_is_passed_on_in_the_callers_form(llama, served):
    lines = [
        b'data: {"choices": [{"delta": {"content": "One"}}]}\n\n',
        b'data: {"error": {"code": 500, "message": "out of slots", "type": "server_error"}}\n\n',
    ]
    llama.answer = lambda exchange, body: Answer.events(lines)
    content = ask(served, "generate", "Hi", model="local")
    assert payloads(content)[-1] == {"error": {"code": 500, "message": "out of slots", "status": "INTERNAL"}}
    content = ask(served, "interactions", "Hi", model="local")
    assert frames(content)[-1][0] == "error"


def test_a_refusal_before_the_stream_keeps_its_status(llama, served):
    error = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}
    llama.answer = lambda exchange, body: Answer.json(error, 400)
    status, _, content = post(served, *request("generate", "Hi", model="local"))
    assert (status, json.loads(content)["error"]["message"]) == (400, "too long")


def test_images_and_embeddings_are_refused_clearly(served):
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    body = {"model": "local", "messages": [{"role": "user", "content": parts}]}
    status, _, content = post(served, "/v1/chat/completions", body)
    assert (status, "text only" in content.decode()) == (400, True)
    status, _, content = post(served, "/v1/embeddings", {"model": "local", "input": "x"})
    assert (status, "embeddings" in content.decode()) == (501, True)


def test_budgets_beyond_the_context_are_cut():
    turns = (Turn("user", (Text("hi"),)),)
    small, large = Ask("m", turns, max_tokens=100), Ask("m", turns, max_tokens=64_000)
    body = b'{"max_tokens":64000,  "model":"m"}'
    assert capped(body, small, 4096, 512) is body
    assert json.loads(capped(body, large, 4096, 512)) == {"max_tokens": 512, "model": "m"}
    assert capped(b'{"model":"m"}', Ask("m", turns), 4096, 512) == b'{"model":"m"}'


def test_the_model_fills_only_what_is_asked_for():
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["c", "f"]},
            "days": {"type": "integer"},
            "note": {"type": "string"},
        },
        "required": ["city"],
    }
    made = narrowed(schema, {"city": "Rome", "days": 3}, "")
    assert made["properties"] == {"city": {"type": "string"}, "days": {"const": 3}}
    assert narrowed(schema, {"city": "Rome"}, "city")["properties"] == {"city": {"const": "Rome"}}
    assert narrowed(schema, {"city": "Rome", "unit": "f"}, "")["properties"]["unit"] == {"const": "f"}


def test_made_up_texts_give_way_to_those_of_the_prompt():
    wanted = {"city": "Atlantis", "days": 3}
    assert grounded({"city": "Alderwood"}, wanted, "And in Atlantis?") == {"city": "Atlantis"}
    assert grounded({"city": "atlantis city"}, wanted, "In Atlantis City?") == {"city": "atlantis city"}
    assert grounded({"city": "Rome"}, {}, "And there?") == {"city": "Rome"}


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("London has 15 degrees and rain.", True),
        ("London has 15 degrees and fog.", False),
        ("London has 15 degrees, up from 12, and rain.", False),
        ("It has 15 degrees and rain.", False),
        ("London has rain.", False),
    ],
)
def test_what_counts_as_true(text, true):
    assert true_to(text, "London: 15 degrees, rain", ["London"]) is true


def test_thinking_in_the_history_needs_the_shim():
    body = {"model": "m", "messages": [{"role": "assistant", "content": "x", "reasoning_content": "y"}]}
    assert not plain(chat.read(body), chat)
    spoken = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    assert plain(messages.read(spoken), messages)
