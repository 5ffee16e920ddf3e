"""How each item of a message reaches the wire of each dialect, and which items are refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from provider_helpers import PNG, assistant, attributes, body, call, image, inline, result, text, thinking, user

from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedContentError
from mmsp_nb.providers.vendors import VENDORS

Q = user(text("q"))
WEB = "https://example.com/tide.png?x=1"


def chat(*messages: Any, client_type: str = "openai-chat", model: str | None = None) -> list[dict]:
    """The wire messages of the last universal message."""
    before = len(body(client_type, model, list(messages[:-1]))["messages"])
    return body(client_type, model, list(messages))["messages"][before:]


def entries(*messages: Any, client_type: str = "openai-responses", model: str | None = None) -> list[dict]:
    before = len(body(client_type, model, list(messages[:-1]))["input"])
    return body(client_type, model, list(messages))["input"][before:]


def blocks(
    *items: Any, role: str = "assistant", client_type: str = "anthropic-official", model: str | None = None
) -> Any:
    message = {"role": role, "content_items": list(items)}
    return body(client_type, model, [Q, message])["messages"][-1]["content"]


# Chat Completions ---------------------------------------------------------------------------------------


def test_chat_puts_tool_messages_before_the_message_of_the_role() -> None:
    message = user(text("a"), result("r1", "t1"), image(), result("r2", "t2", PNG), text("b"))
    assert chat(message) == [
        {"role": "tool", "tool_call_id": "t1", "content": "r1"},
        {"role": "tool", "tool_call_id": "t2", "content": "r2"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "text", "text": "b"},
            ],
        },
    ]
    assert chat(user(result("r", "t1"))) == [{"role": "tool", "tool_call_id": "t1", "content": "r"}]


def test_chat_call_has_no_content_and_readable_arguments() -> None:
    assert chat(Q, assistant(call("tide", "t-1", {"port": "Brést", "n": [1, None]}))) == [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "t-1",
                    "type": "function",
                    "function": {"name": "tide", "arguments": '{"port": "Brést", "n": [1, null]}'},
                }
            ],
        }
    ]


CONTENT, REASONING = "reasoning_content", "reasoning"


@pytest.mark.parametrize(
    ("items", "fields"),
    [
        ([thinking("t")], {CONTENT: "t", REASONING: "t"}),
        ([thinking("t", reasoning_field=CONTENT)], {CONTENT: "t"}),
        ([thinking("t", reasoning_field=REASONING), thinking("u", reasoning_field=REASONING)], {REASONING: "tu"}),
        (
            [thinking("t", reasoning_field=REASONING), thinking("u", reasoning_field=CONTENT)],
            {CONTENT: "tu", REASONING: "tu"},
        ),
        ([thinking("t", reasoning_field=CONTENT), thinking("u")], {CONTENT: "tu", REASONING: "tu"}),
        ([thinking("", reasoning_field=CONTENT)], {}),
    ],
)
def test_chat_thinking_goes_back_into_the_field_it_came_from(items: list, fields: dict) -> None:
    (message,) = chat(Q, assistant(*items, text("x")))
    assert {key: message[key] for key in message if key in (CONTENT, REASONING)} == fields


@pytest.mark.parametrize(
    ("client_type", "model"), [("openai-chat", "m"), ("zai-official", "glm-5.3"), ("moonshot-official", "k3")]
)
def test_chat_call_without_thinking_replays_an_empty_field_once_one_was_seen(client_type: str, model: str) -> None:
    seen = assistant(thinking("t", reasoning_field=CONTENT), text("x"))
    (message,) = chat(Q, seen, Q, assistant(call("f", "c1")), client_type=client_type, model=model)
    assert (CONTENT in message, REASONING in message) == (client_type == "openai-chat", False)
    assert message.get(CONTENT, "") == ""
    (first,) = chat(Q, assistant(call("f", "c1")), client_type=client_type, model=model)
    assert CONTENT not in first
    (spoken,) = chat(Q, seen, Q, assistant(text("y")), client_type=client_type, model=model)
    assert CONTENT not in spoken


def test_chat_replays_encrypted_reasoning_as_details() -> None:
    items = [
        thinking("", encrypted_content="ENC", format="F", reasoning_id="r1"),
        thinking("y", reasoning_details=[{"type": "old"}]),
        thinking("z", encrypted_content="ENC"),
        text("x"),
    ]
    (message,) = chat(Q, assistant(*items))
    block = {"type": "reasoning.encrypted", "data": "ENC", "format": "F", "id": "r1"}
    assert message["reasoning_details"] == [block, {"type": "old"}]
    (plain,) = chat(Q, assistant(*items), client_type="zai-official")
    assert "reasoning_details" not in plain


def test_zai_reads_images_with_its_flash_model_only() -> None:
    (message,) = chat(user(image(WEB), text("?")), client_type="zai-official", model="zai-org/GLM-5.3-Flash")
    assert message["content"][0] == {"type": "image_url", "image_url": {"url": WEB}}
    for item, kind in ((image(), "image_url"), (result("r", "t1", PNG), "tool_result")):
        with pytest.raises(UnsupportedContentError) as caught:
            body("zai-official", "glm-5.3", [user(item)])
        assert attributes(caught.value) == {"client": "ZAIOfficialClient", "item_type": kind}
    body("zai-official", "glm-5.3", [user({**result("r", "t1"), "images": []})])


# Responses ----------------------------------------------------------------------------------------------


def test_responses_gathers_content_and_keeps_the_order() -> None:
    message = user(text("a"), image(WEB), result("r", "t1"), text("b"), result("s", "t2", PNG))
    assert entries(message) == [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": WEB}],
        },
        {"type": "function_call_output", "call_id": "t1", "output": "r"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "b"}]},
        {
            "type": "function_call_output",
            "call_id": "t2",
            "output": [{"type": "input_text", "text": "s"}, {"type": "input_image", "image_url": PNG}],
        },
    ]
    arguments = '{"port": "Brést"}'
    assert entries(Q, assistant(text("a"), call("tide", "t-1", {"port": "Brést"}))) == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "t-1", "name": "tide", "arguments": arguments},
    ]


def test_responses_splits_the_assistants_message_by_phase() -> None:
    message = assistant(text("0"), text("1", phase="commentary"), text("2"), text("3", phase="final"), text("4"))

    def found(client_type: str) -> list:
        return [
            ("".join(part["text"] for part in entry["content"]), entry.get("phase"))
            for entry in entries(Q, message, client_type=client_type)
        ]

    split = [("0", None), ("12", "commentary"), ("34", "final")]
    assert found("openai-official") == found("openai-responses") == split
    assert found("deepseek-official") == [("01234", None)]
    assert "phase" not in entries(Q, user(text("x", phase="final")), client_type="openai-official")[0]


def summary(value: str) -> list:
    return [{"type": "summary_text", "text": value}]


def content(value: str) -> list:
    return [{"type": "reasoning_text", "text": value}]


ENC = {"encrypted_content": "E", "format": "F"}


@pytest.mark.parametrize(
    ("client_type", "item", "entry"),
    [
        ("openai-official", thinking("t", channel="summary", **ENC), {"summary": summary("t"), **ENC}),
        ("openai-official", thinking("t", **ENC), {"summary": summary("t"), **ENC}),
        ("openai-official", thinking("t", channel="content", **ENC), {"summary": [], "content": content("t"), **ENC}),
        ("openai-official", thinking("t"), {"summary": [], "content": content("t")}),
        ("openai-official", thinking("", **ENC, signature="S"), {"summary": [], **ENC, "signature": "S"}),
        ("openai-responses", thinking("t", channel="summary", **ENC), {"summary": summary("t"), **ENC}),
        ("openai-responses", thinking("t", **ENC), {"summary": [], "content": content("t"), **ENC}),
        ("deepseek-official", thinking("t", channel="summary", **ENC), {"summary": [], "content": content("t")}),
        ("deepseek-official", thinking("", **ENC), {"summary": []}),
        ("minimax-official", thinking("t", channel="summary", **ENC), {"content": content("t")}),
        ("minimax-official", thinking(""), {"content": []}),
    ],
)
def test_responses_replays_reasoning(client_type: str, item: Any, entry: dict) -> None:
    assert entries(Q, assistant(item, text("x")), client_type=client_type)[0] == {"type": "reasoning", **entry}


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        ("deepseek-flash", True),
        ("deepseek-v4-flash", False),
        ("x/DeepSeek-V4-Pro-1017", False),
        ("deepseek-v4-pro-10175", True),
        ("deepseek-v4-flash-vision-exp", True),
    ],
)
def test_deepseeks_text_models_refuse_images(model: str, reads: bool) -> None:
    items = {"image_url": image(), "tool_result": {**result("r", "t1"), "images": []}}
    for kind, item in items.items():
        if reads:
            body("deepseek-official", model, [user(item)])
        else:
            with pytest.raises(UnsupportedContentError) as caught:
                body("deepseek-official", model, [user(item)])
            assert caught.value.item_type == kind
    body("deepseek-official", model, [user({**result("r", "t1"), "images": None})])


# Messages -----------------------------------------------------------------------------------------------


def test_messages_blocks_keep_the_order_of_the_items() -> None:
    data = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    web = {"type": "url", "url": WEB}
    found = blocks(text(""), image(), image(WEB), result("r", "t1", PNG, WEB), role="user")
    assert found == [
        {"type": "text", "text": ""},
        {"type": "image", "source": data},
        {"type": "image", "source": web},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [
                {"type": "text", "text": "r"},
                {"type": "image", "source": data},
                {"type": "image", "source": web},
            ],
        },
    ]
    assert blocks(call("tide", "t-1", {"a": 1})) == [
        {"type": "tool_use", "id": "t-1", "name": "tide", "input": {"a": 1}}
    ]


def test_messages_replays_signed_thinking_and_drops_what_would_be_refused() -> None:
    signed = thinking("t", signature="c2ln")
    hidden = thinking("_REDACTED_THINKING", signature="UkVE")
    expected = [
        {"type": "thinking", "thinking": "t", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "UkVE"},
        {"type": "text", "text": "x"},
    ]
    unsigned = [thinking("u"), thinking("_REDACTED_THINKING")]
    assert blocks(signed, hidden, *unsigned, text("x")) == expected
    assert blocks(signed, hidden, *unsigned, text("x"), client_type="ant-messages") == [
        *expected[:2],
        {"type": "thinking", "thinking": "u"},
        expected[2],
    ]


# What is refused ----------------------------------------------------------------------------------------

ITEMS = {
    "inline_data": inline(),
    "inline_thinking": inline("inline_thinking"),
    "embedding": {"type": "embedding.done", "embedding": [1.0]},
    "weird.done": {"type": "weird.done"},
    "text.delta": {"type": "text.delta", "text": "x"},
    "None": {"text": "x"},
}
CHAT_TYPES = [name for name in VENDORS if name not in ("openai-embedding", "mmsp")]
GOOGLE = ("google-official", "google-genai")


@pytest.mark.parametrize("client_type", CHAT_TYPES)
@pytest.mark.parametrize("kind", ITEMS)
def test_items_that_a_dialect_cannot_send_are_refused_by_type(client_type: str, kind: str) -> None:
    if client_type in GOOGLE and kind.startswith("inline"):
        return
    with pytest.raises(InvalidMessageError) as caught:
        body(client_type, None, [user(text("a"), ITEMS[kind])])
    assert attributes(caught.value) == {"client": VENDORS[client_type].client, "item_type": kind}


@pytest.mark.parametrize("client_type", CHAT_TYPES)
def test_tool_result_without_an_id_is_refused(client_type: str) -> None:
    item = {"type": "tool_result.done", "text": "r"}
    with pytest.raises(InvalidMessageError) as caught:
        body(client_type, None, [user(item)])
    assert caught.value.item_type == "tool_result"


NOTHING: dict[str, list] = {
    "openai-official": [[thinking("t", **ENC)]],
    "deepseek-official": [[thinking("t")]],
    "openai-chat": [[thinking("t")]],
    "anthropic-official": [[thinking("t", signature="c2ln")], [thinking("unsigned")]],
    "ant-messages": [[thinking("t")]],
    "google-official": [[thinking("t", signature="c2ln")], [thinking("")], [text("")]],
    "google-genai": [[thinking("t")], [thinking("")]],
}


@pytest.mark.parametrize(("client_type", "items"), [(name, items) for name, rows in NOTHING.items() for items in rows])
def test_message_with_nothing_but_thinking_is_refused_by_its_index(client_type: str, items: list) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        body(client_type, None, [Q, assistant(*items)])
    assert attributes(caught.value) == {"client": VENDORS[client_type].client, "message_index": 1}


@pytest.mark.parametrize("client_type", ["anthropic-official", "ant-messages", *GOOGLE])
@pytest.mark.parametrize(
    "url", ["data:image/png;base64,", "data:image/png,xx", "data:;base64,AAAA", "nonsense", "data:image/png;base64, \n"]
)
def test_malformed_data_urls_are_refused_where_they_are_parsed(client_type: str, url: str) -> None:
    for item in (image(url), result("r", "t1", url)):
        with pytest.raises(InvalidMessageError) as caught:
            body(client_type, None, [user(item)])
        assert caught.value.item_type == "image_url"


def test_line_breaks_in_a_data_url_do_not_cut_it() -> None:
    wrapped = image("data:image/png;base64,iVBO\r\nRw0K\nGgo=")
    assert blocks(wrapped, role="user") == blocks(image(), role="user")
    for client_type in GOOGLE:
        assert body(client_type, None, [user(wrapped)]) == body(client_type, None, [user(image())])


def test_data_that_is_no_base64_is_refused_where_it_is_decoded() -> None:
    for client_type in GOOGLE:
        with pytest.raises(InvalidMessageError) as caught:
            body(client_type, None, [user(image("data:image/png;base64,%%%%"))])
        assert caught.value.item_type == "image_url"


def test_what_is_given_is_never_changed() -> None:
    message = [
        Q,
        assistant(thinking("t", signature="c2ln"), text("a", phase="p"), call("f", "c1", {"a": {"b": 1}})),
        user(result("r", "c1", PNG), text("b")),
    ]
    config = {
        "tools": [{"name": "f", "description": "d"}],
        "extra_body": {"a": {"b": 1}},
        "response_format": {"type": "text"},
    }
    before = copy.deepcopy((message, config))
    for client_type in CHAT_TYPES:
        messages = message[:-1] if client_type == "zai-official" else message
        without = {"response_format": None} if "messages" in VENDORS[client_type].dialect else {}
        body(client_type, None, messages, **{**config, **without})
    assert (message, config) == before
