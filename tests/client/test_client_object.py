import asyncio
import base64
import copy
import json
import pickle

import pytest
from talk import collect, user

from mmsp_nb import (
    AbortError,
    AbortSignal,
    ApiKeyRequiredError,
    AuthenticationError,
    AutoLLMClient,
    IncompleteStreamError,
    InvalidMessageError,
    PromptCaching,
    RoutingError,
    Transport,
    UnsupportedContentError,
    UnsupportedParameterError,
    UpstreamError,
)
from mmsp_nb.testing import Gate, Reply, streams
from mmsp_nb.testing.wire import chat, embeddings, messages
from mmsp_nb.transport.cassette import record

PNG_URL = f"data:image/png;base64,{base64.b64encode(streams.PNG).decode()}"
KEY = "sk-test-0123456789"


def with_image(*urls):
    return {"role": "user", "content_items": [{"type": "image_url.done", "image_url": url} for url in urls]}


# what it shows


def test_attributes_say_where_it_goes(client, provider):
    assert (client.model, client.client_type, client.base_url) == ("some-model", "openai-chat", provider.url("/v1"))
    assert client.vendor.client == "OpenaiChatClient"


def test_the_key_is_shown_nowhere(make_client):
    client = make_client(default_headers={"X-Api-Key": KEY})
    assert repr(client) == f"AutoLLMClient('some-model', client_type='openai-chat', base_url={client.base_url!r})"
    shown = [repr(client), str(client), repr(vars(client)), repr(vars(client._endpoint)), repr(client._endpoint.route)]
    assert KEY not in "".join(shown)


def test_a_base_url_with_a_password_is_shown_without(make_client, provider):
    client = AutoLLMClient("m", KEY, "http://me:pass@127.0.0.1:9/v1?token=t", "openai-chat")
    assert "pass" not in repr(client)
    assert "token" not in repr(client)


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_not_pickled_or_copied(client, way):
    with pytest.raises(TypeError, match="get_history"):
        way(client)


async def test_errors_show_no_key(client, provider):
    provider.add(Reply.json({"error": {"message": f"the key {KEY} is wrong", "code": "c"}}, 401))
    with pytest.raises(AuthenticationError) as caught:
        await collect(client.streaming_response([user("hi")]))
    error = caught.value
    assert KEY not in f"{error} {error!r} {vars(error)}"
    assert "OPENAI_API_KEY" in str(error)


def test_construction_errors():
    with pytest.raises(RoutingError):
        AutoLLMClient("who-knows")
    with pytest.raises(ApiKeyRequiredError):
        AutoLLMClient("gpt-5.5")


async def test_default_headers_go_along_and_win(make_client, provider):
    provider.add(streams.reply("text", "chat"))
    client = make_client(default_headers={"authorization": "Bearer other-key", "X-Team": "tides"})
    await collect(client.streaming_response([user("hi")]))
    headers = provider.last.headers
    assert headers["authorization"] == "Bearer other-key"
    assert headers["x-team"] == "tides"


async def test_the_request_as_it_leaves(client, provider):
    provider.add(streams.reply("text", "chat"))
    await collect(client.streaming_response([user("hé")], {"max_tokens": 5, "extra_headers": {"x-a": "b"}}))
    request = provider.last
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body["max_completion_tokens"] == 5
    assert request.body["messages"][0]["content"] == [{"type": "text", "text": "hé"}]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-a"] == "b"


async def test_config_none_and_enum_members(client, provider):
    provider.add(streams.reply("text", "chat"))
    await collect(
        client.streaming_response([user("hi")], {"temperature": None, "prompt_caching": PromptCaching.ENABLE})
    )
    assert "temperature" not in provider.last.body


async def test_a_misspelt_config_key_is_refused_with_a_suggestion(client, provider):
    with pytest.raises(UnsupportedParameterError, match="temperature") as caught:
        await collect(client.streaming_response([user("hi")], {"temprature": 1}))
    assert caught.value.client == "OpenaiChatClient"


# listings


async def test_list_models_returns_the_whole_list_when_the_client_type_was_named(client, provider):
    provider.add(Reply.json(chat.models(["gpt-1", "claude-2", "x"])))
    assert await client.list_models() == ["gpt-1", "claude-2", "x"]
    assert (provider.last.method, provider.last.path) == ("GET", "/v1/models")
    assert provider.last.headers["authorization"] == f"Bearer {KEY}"


async def test_and_only_the_family_when_it_was_deduced(provider):
    provider.add(Reply.json(chat.models(["gpt-1", "claude-2", "GPT-3", "text-embedding-4", "x"])))
    client = AutoLLMClient("gpt-5.5", KEY, provider.url("/v1"))
    assert await client.list_models() == ["gpt-1", "GPT-3", "text-embedding-4"]


async def test_listings_are_followed_to_their_last_page(make_client, provider):
    provider.add(
        Reply.json({**messages.models(["claude-1"]), "has_more": True, "last_id": "claude-1"}),
        Reply.json({**messages.models(["claude-2"]), "has_more": False}),
    )
    client = make_client("ant-messages", path="")
    assert await client.list_models() == ["claude-1", "claude-2"]
    assert [request.query for request in provider.requests] == [{}, {"after_id": "claude-1"}]


async def test_a_listing_that_leads_in_circles_ends(make_client, provider):
    page = {**messages.models(["claude-1"]), "has_more": True, "last_id": "claude-1"}
    provider.when("/v1/models", Reply.json(page))
    assert await make_client("ant-messages", path="").list_models() == ["claude-1"] * 2


async def test_a_listing_that_is_refused(make_client, provider):
    provider.add(Reply.json(chat.refusal(401, "no", "bad_key"), 401))
    with pytest.raises(AuthenticationError):
        await make_client().list_models()


# images


async def test_remote_images_are_fetched_once_and_inlined(client, provider):
    provider.when("/a.png", Reply.data(streams.PNG, "image/png"))
    provider.when("/chat/completions", streams.reply("text", "chat"))
    url = provider.url("/a.png")
    message = with_image(url, PNG_URL)
    await collect(client.streaming_response_stateful(message))
    await collect(client.streaming_response_stateful(user("and now?")))
    sent = [request for request in provider.requests if request.path != "/a.png"]
    assert len(provider.requests) - len(sent) == 1
    for request in sent:
        urls = [part["image_url"]["url"] for part in request.body["messages"][0]["content"]]
        assert urls == [PNG_URL, PNG_URL]
    # the history keeps the address
    assert client.get_history()[0]["content_items"] == message["content_items"]
    assert message["content_items"][0]["image_url"] == url


async def test_images_of_tool_results_are_inlined_too(make_client, provider):
    provider.when("/a.png", Reply.data(streams.PNG, "image/png"))
    provider.when("/interactions", streams.reply("text", "interactions"))
    history = [
        user("x"),
        {
            "role": "assistant",
            "content_items": [{"type": "tool_call.done", "name": "f", "arguments": {}, "tool_call_id": "c1"}],
        },
        {
            "role": "user",
            "content_items": [
                {"type": "tool_result.done", "text": "r", "tool_call_id": "c1", "images": [provider.url("/a.png")]}
            ],
        },
    ]
    await collect(make_client("google-official", path="").streaming_response(history))
    assert base64.b64encode(streams.PNG).decode() in json.dumps(provider.last.body)


async def test_where_addresses_are_taken_nothing_is_fetched(make_client, provider):
    provider.add(streams.reply("text", "responses"))
    await collect(make_client("openai-responses").streaming_response([with_image("http://127.0.0.1:9/a.png")]))
    assert provider.last.body["input"][0]["content"][0]["image_url"] == "http://127.0.0.1:9/a.png"


async def test_an_image_that_cannot_be_had_is_an_invalid_message(client, provider):
    provider.when("/a.png", Reply(status=404))
    with pytest.raises(InvalidMessageError, match="status 404") as caught:
        await collect(client.streaming_response([with_image(provider.url("/a.png"))]))
    assert caught.value.item_type == "image_url"


async def test_what_is_rejected_is_rejected_ahead_of_any_download(make_client, provider):
    client = make_client("moonshot-official")
    with pytest.raises(UnsupportedParameterError):
        await collect(client.streaming_response([with_image(provider.url("/a.png"))], {"temperature": 0.5}))
    zai = make_client("zai-official", model="glm-5.3")
    with pytest.raises(UnsupportedContentError):
        await collect(zai.streaming_response([with_image(provider.url("/a.png"))]))
    assert provider.requests == []


async def test_an_abort_ends_the_download(client, provider):
    gate, signal = Gate(), AbortSignal()
    provider.when("/a.png", Reply([b"x", gate]))
    task = asyncio.ensure_future(
        collect(client.streaming_response([with_image(provider.url("/a.png"))], signal=signal))
    )
    await gate.wait_arrived()
    signal.abort()
    with pytest.raises(AbortError):
        await task
    await asyncio.to_thread(provider.wait_until_idle)


# one JSON document as an answer


async def test_embeddings(make_client, provider):
    provider.add(Reply.json(embeddings.openai([[0.5, 1.0], [2.0, 3.0]])))
    client = make_client("openai-embedding")
    events = await collect(client.streaming_response([user("a"), user("b")]))
    items = [item for event in events for item in event["content_items"] if item["type"] == "embedding.done"]
    assert [item["embedding"] for item in items] == [[0.5, 1.0], [2.0, 3.0]]
    assert events[-1]["finish_reason"] == "stop"


# an MMSP server


async def test_an_mmsp_server_gets_everything_unchecked(make_client, provider):
    provider.add(streams.reply("text", "mmsp"))
    client = make_client("mmsp")
    odd = {"role": "user", "content_items": [{"type": "weird.done", "data": b"\x00\xff"}], "note": 1}
    await collect(client.streaming_response([odd, {"role": "x", "content_items": []}], {"unknown": {"a": 1}}))
    body = provider.last.body
    assert body["messages"][0]["content_items"] == [{"type": "weird.done", "data": "AP8="}]
    assert body["messages"][0]["note"] == 1
    assert body["config"] == {"unknown": {"a": 1}}
    assert all(message["created_at"] for message in body["messages"])


async def test_an_mmsp_answer_is_recorded_ahead_of_its_stop(make_client, provider):
    provider.add(streams.reply("tools", "mmsp"))
    client = make_client("mmsp")
    async for event in client.streaming_response_stateful(user("hi")):
        if event["event_type"] == "stop":
            break
        for item in event["content_items"]:
            item.clear()
    kinds = [item["type"] for item in client.get_history()[1]["content_items"]]
    assert kinds == ["thinking.done", "tool_call.done", "tool_call.done"]


async def test_several_stops_of_an_mmsp_server_pass(make_client, provider):
    frames = streams.frames("text", "mmsp")
    content = [frame for frame in frames if getattr(frame, "data", "") != "[DONE]"]
    provider.add(Reply.stream([*content, *content]))
    events = await collect(make_client("mmsp").streaming_response_stateful(user("hi")))
    assert [event["event_type"] for event in events].count("stop") == 2
    assert events[-1]["event_type"] == "stop"


@pytest.mark.parametrize("status", [201, 307, 400, 503])
async def test_any_other_status_of_an_mmsp_server_is_its_error(make_client, provider, status):
    body = {"error": {"type": "Odd", "message": "no tides"}}
    provider.add(Reply.json(body, status))
    with pytest.raises(UpstreamError) as caught:
        await collect(make_client("mmsp", transport=Transport(retries=0)).streaming_response([user("hi")]))
    assert caught.value.status == status
    if status >= 400:
        assert caught.value.error == body["error"]
        assert caught.value.error_type == "Odd"


async def test_an_mmsp_stream_without_a_stop_is_incomplete(make_client, provider):
    provider.add(Reply.stream(streams.frames("text", "mmsp")[:2]))
    with pytest.raises(IncompleteStreamError) as caught:
        await collect(make_client("mmsp").streaming_response_stateful(user("hi")))
    assert caught.value.missing == ("usage_metadata", "finish_reason")


def test_a_handler_in_the_place_of_a_transport_is_told_where_it_goes(tmp_path) -> None:
    handler = record(tmp_path / "tape.jsonl")
    with pytest.raises(TypeError, match=r"transport must be a Transport, not Cassette; write Transport\(handler=...\)"):
        AutoLLMClient("gpt-5.5", "k", transport=handler)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"transport must be a Transport, not str$"):
        AutoLLMClient("gpt-5.5", "k", transport="http")  # type: ignore[arg-type]
