"""What a message may hold, and the one line that says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.protocol.history import normalize_legacy_messages
from mmsp_nb.protocol.items import Role
from mmsp_nb.protocol.validation import check_messages

ITEMS: dict[str, dict[str, Any]] = {
    "text": {"text": "Hi", "fidelity": {"phase": "x"}},
    "thinking": {"thinking": "Hm", "fidelity": None},
    "inline_data": {"data": b"x", "mime_type": "image/png"},
    "inline_thinking": {"data": b"", "mime_type": "image/png"},
    "tool_call": {"name": "f", "arguments": {"a": [1]}, "tool_call_id": "c"},
    "tool_result": {"text": "", "tool_call_id": "c", "images": ["https://x/y.png", "data:image/png;base64,AA=="]},
    "image_url": {"image_url": "DATA:image/png;BASE64,AA=="},
    "embedding": {"embedding": [1.0, 2]},
}


def item(kind: str, **changes: Any) -> dict[str, Any]:
    made = {"type": f"{kind}.done", **ITEMS[kind], **changes}
    return {key: value for key, value in made.items() if value is not ...}


def user(*items: Any) -> dict[str, Any]:
    return {"role": "user", "content_items": list(items)}


def refusal(*messages: Any, first: int = 0) -> InvalidMessageError:
    with pytest.raises(InvalidMessageError) as caught:
        check_messages(messages, client="TestClient", first=first)
    assert caught.value.client == "TestClient"
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("role", ["user", "assistant", Role.USER, Role.ASSISTANT])
def test_every_kind_of_item_may_stand_in_every_role(kind: str, role: str) -> None:
    check_messages([{"role": role, "content_items": [item(kind)]}])


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,AAAA",
        "data:image/svg+xml;charset=utf-8;base64,AAA=",
        "data:image/png;base64,AA\r\n  A=",
        "data:audio/l16; rate=24000;base64,AAAA",
        "data:application/pdf;base64,AA==",
        "HTTPS://h/x.png",
    ],
)
def test_urls_of_pictures_and_the_like_pass(url: str) -> None:
    check_messages([user(item("image_url", image_url=url), item("tool_result", images=[url]))])


@pytest.mark.parametrize("kind", ["image/png", "audio/l16;rate=24000", "audio/L16; codec=pcm; rate=24000", "a/b+c"])
def test_media_types_pass(kind: str) -> None:
    check_messages([user(item("inline_data", mime_type=kind))])


def test_a_media_type_that_a_model_sent_goes_back_as_it_came() -> None:
    check_messages([{"role": "assistant", "content_items": [item("inline_data", mime_type="")]}])


def test_extra_keys_pass() -> None:
    message = {**user(item("text", note=1), item("tool_result", images=None)), "created_at": 5, "mine": object()}
    check_messages([message])


def test_an_empty_list_of_messages_passes() -> None:
    check_messages([])


def test_legacy_names_pass_once_they_are_normalised(recwarn: pytest.WarningsRecorder) -> None:
    old = [user({"type": "text", "text": "old"})]
    assert refusal(*old).item_type == "text"
    check_messages(normalize_legacy_messages(old))


@pytest.mark.parametrize(
    ("bad", "item_type", "words"),
    [
        ({"type": "weird.done"}, "weird.done", "no such item type; there are text.done, thinking.done"),
        ({"type": "txt.done"}, "txt.done", "did you mean 'text.done'?"),
        ({"type": "image.done"}, "image.done", "did you mean 'image_url.done'?"),
        ({"type": "text", "text": "x"}, "text", "did you mean 'text.done'?"),
        ({"type": "text.delta", "text": "x"}, "text.delta", "a delta is only a fragment"),
        ({"type": 5}, "5", "no such item type"),
        ({"text": "x"}, None, "'type' is missing"),
        ("Hi", None, "must be a dict with a 'type', not 'Hi'"),
        (None, None, "must be a dict with a 'type', not None"),
        (item("text", text=5), "text", "'text' must be a string, not 5"),
        (item("text", text=...), "text", "'text' is missing"),
        (item("text", fidelity=[1]), "text", "'fidelity' must be a dict or None, not a list"),
        (item("thinking", thinking=None), "thinking", "'thinking' must be a string, not None"),
        (item("inline_data", data="AA=="), "inline_data", "decode base64 text first"),
        (item("inline_data", mime_type=...), "inline_data", "'mime_type' is missing"),
        (item("tool_call", arguments='{"a": 1}'), "tool_call", "json.loads"),
        (item("tool_call", name=""), "tool_call", "'name' must not be empty"),
        (item("tool_call", tool_call_id=""), "tool_call", "'tool_call_id' must not be empty"),
        (item("tool_result", tool_call_id=...), "tool_result", "'tool_call_id' is missing"),
        (item("tool_result", tool_call_id=""), "tool_result", "repeat that of the call"),
        (item("tool_result", images="x"), "tool_result", "'images' must be a list of image URLs"),
        (item("tool_result", images=["http://x", 5]), "tool_result", "not 5 at position 1"),
        (item("tool_result", images=["plot.png"]), "tool_result", "in 'images' must be an http(s) or data: URL"),
        (item("tool_result", images=["data:image/png;base64,A"]), "tool_result", "in 'images' holds no whole base64"),
        (item("image_url", image_url="data:image/png,plain"), "image_url", "must be data:<mime type>;base64,<data>"),
        (item("image_url", image_url="data:;base64,AA=="), "image_url", "needs a media type such as image/png"),
        (item("image_url", image_url="data:text/html;base64,AA=="), "image_url", "must be a picture"),
        (item("image_url", image_url="data:image/png;base64,"), "image_url", "holds no data"),
        (item("image_url", image_url="data:image/png;base64,AA*A"), "image_url", "there is '*' in it"),
        (item("image_url", image_url="data:image/png;base64,AA-A"), "image_url", "not the URL-safe way"),
        (item("image_url", image_url="data:image/png;base64,AAé="), "image_url", "there is 'é' in it"),
        (item("image_url", image_url="data:image/png;base64,AA"), "image_url", "2 characters, cut off or not padded"),
        (item("image_url", image_url="data:image/png;base64,A=AA"), "image_url", "holds no whole base64"),
        (item("image_url", image_url="data:image/png;base64,A==="), "image_url", "holds no whole base64"),
        (item("inline_data", mime_type="png"), "inline_data", "needs a media type such as image/png, not 'png'"),
        (item("inline_data", mime_type=""), "inline_data", "needs a media type"),
        (item("image_url", image_url="plot.png"), "image_url", "an http(s) or data: URL, not 'plot.png'"),
        (item("image_url", image_url=b"x"), "image_url", "an http(s) or data: URL, not a bytes"),
        (item("embedding", embedding=["a"]), "embedding", "a list of numbers, not 'a' at position 0"),
    ],
)
def test_a_bad_item_is_refused_by_place_and_kind(bad: Any, item_type: str | None, words: str) -> None:
    error = refusal(user(item("text")), user(item("text"), bad))
    assert error.item_type == item_type
    assert error.message_index is None
    assert str(error).startswith("message 1, item 1")
    assert words in str(error)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (user(), "is empty"),
        ({"role": "user"}, "has no 'content_items'"),
        ({"role": "user", "content": "Hi"}, "has no 'content_items'"),
        ({"role": "user", "content_items": "Hi"}, "must be a list of items, not 'Hi'"),
        ({"role": "user", "content_items": None}, "must be a list of items, not None"),
        ("Hi", 'must be a dict like {"role": "user"'),
        ({**user(item("text")), "role": "system"}, "put it into the config as 'system_prompt'"),
        ({**user(item("text")), "role": "tool"}, "as tool_result.done items"),
        ({**user(item("text")), "role": "asistant"}, "did you mean 'assistant'?"),
        ({**user(item("text")), "role": None}, "'role' must be 'user' or 'assistant', not None"),
        ({"content_items": [item("text")]}, "'role' is missing"),
    ],
)
def test_a_message_that_is_none_is_refused_by_its_index(bad: Any, words: str) -> None:
    error = refusal(user(item("text")), bad, first=4)
    assert error.message_index == 5
    assert error.item_type is None
    assert str(error).startswith("message 5")
    assert words in str(error)


def test_an_empty_message_is_found_before_a_bad_item() -> None:
    assert refusal(user({"type": "weird"}), user()).message_index == 1


@pytest.mark.parametrize("messages", ["Hi", {"role": "user"}, 5])
def test_messages_are_a_list(messages: Any) -> None:
    with pytest.raises(InvalidMessageError, match="messages must be a list of messages"):
        check_messages(messages)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", {"a": [object()]}])
def test_arguments_of_a_call_that_are_no_json_are_found_before_a_request_is_made(value: Any) -> None:
    item = {"type": "tool_call.done", "name": "f", "arguments": {"x": value}, "tool_call_id": "c"}
    with pytest.raises(InvalidMessageError, match=r"message 0, item 0 \(tool_call\): 'arguments' must be JSON"):
        check_messages([{"role": "assistant", "content_items": [item]}])
