"""What people give and change without reading: wrong forms get one line that says the fix, and nothing is lost."""

from __future__ import annotations

import pytest

from mmsp_nb.client import AutoLLMClient
from mmsp_nb.conversation import Conversation
from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedParameterError
from mmsp_nb.testing import FakeProvider, streams
from mmsp_nb.tools import ToolDefinitionError


def _text(text):
    return {"type": "text.done", "text": text}


PROMPTS = {
    "another protocol's message": ({"role": "user", "content": "hi"}, "no 'content_items'; write"),
    "such messages in a list": ([{"role": "user", "content": "hi"}], "no 'content_items'; write"),
    "an answer": ({"role": "assistant", "content_items": [_text("b")]}, "not a message of the assistant"),
    "a system prompt": ({"role": "system", "content_items": [_text("b")]}, "'system_prompt'"),
    "an item without a type": ({"text": "hi"}, "'type' is missing"),
    "an item of no kind": ({"type": "txt.done", "text": "hi"}, "did you mean 'text.done'"),
    "an item without its text": ([{"type": "text.done", "txt": "hi"}], "'text' is missing"),
    "a number": (3, "a prompt is a text, or a list of texts and pictures; int is no image"),
    "nothing in a list": ([None], "a prompt is a text"),
}


@pytest.mark.parametrize(("prompt", "said"), PROMPTS.values(), ids=PROMPTS)
def test_a_prompt_of_a_wrong_form_is_refused_and_leaves_no_trace(prompt, said):
    chat = Conversation("demo")
    chat.ask("hello")
    with pytest.raises(InvalidMessageError, match=said) as caught:
        chat.ask(prompt)
    assert "\n" not in str(caught.value)
    assert len(chat) == 1 and "hello" in repr(chat)
    assert chat.ask("hello").text, "it can go on"


def test_messages_of_a_dialogue_are_no_prompt():
    dialogue = [{"role": role, "content_items": [_text(role)]} for role in ("user", "assistant", "user")]
    with pytest.raises(InvalidMessageError, match=r"set_history"):
        Conversation("demo").ask(dialogue)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"config": [1]}, "config must be a dict"),
        ({"config": "x"}, "config must be a dict"),
        ({"policy": "ask"}, "policy must be a Policy"),
        ({"tools": 3}, "tools must be a function or a list of functions, not 3"),
        ({"temperature": 0.5}, r"'temperature' belongs into the config: config=\{'temperature': ...\}"),
        ({"max_tokens": 5}, "'max_tokens' belongs into the config"),
    ],
)
def test_an_option_of_a_wrong_form_is_named_with_its_right_form(options, said):
    with pytest.raises(TypeError, match=said):
        Conversation("demo", **options)
    if not options.keys() & {"temperature", "max_tokens"}:
        with pytest.raises(TypeError, match=said):
            Conversation("demo").ask("hi", **options)


@pytest.mark.parametrize("client", ["demo", AutoLLMClient, object()])
def test_what_is_no_client_is_refused(client):
    with pytest.raises(TypeError, match="client must be an AutoLLMClient"):
        Conversation(client=client)


CHANGES = {
    "popped": (lambda chat: chat.turns.pop(), ["one", "three"]),
    "cleared": (lambda chat: chat.turns.clear(), ["three"]),
    "deleted": (lambda chat: chat.turns.__delitem__(0), ["two", "three"]),
    "replaced": (lambda chat: setattr(chat, "turns", chat.turns[:1]), ["one", "three"]),
    "reordered": (lambda chat: chat.turns.reverse(), ["two", "one", "three"]),
    "hidden": (lambda chat: setattr(chat.turns[0], "hidden", True), ["two", "three"]),
}


@pytest.mark.parametrize(("change", "asked"), CHANGES.values(), ids=CHANGES)
def test_turns_changed_by_hand_are_what_is_sent(change, asked):
    with FakeProvider().when("/completions", streams.reply("text", "chat")) as provider:
        chat = Conversation("m", api_key="k", base_url=provider.url("/v1"), client_type="openai-chat")
        chat.ask("one")
        chat.ask("two")
        change(chat)
        chat.ask("three")
        sent = [m["content"][0]["text"] for m in provider.last.body["messages"] if m["role"] == "user"]
    assert sent == asked
    assert [m["content_items"][0]["text"] for m in chat.messages if m["role"] == "user"] == asked
    assert chat.branches[chat.branch] == chat.turns


FOREIGN = {
    "appended": lambda chat: chat.turns.append("x"),
    "inserted": lambda chat: chat.turns.insert(0, None),
    "extended": lambda chat: chat.turns.extend([*chat.turns, {}]),
    "added": lambda chat: setattr(chat, "turns", [*chat.turns, 5]),
    "added in place": lambda chat: chat.turns.__iadd__(["x"]),
    "set": lambda chat: chat.turns.__setitem__(0, "x"),
    "sliced": lambda chat: chat.turns.__setitem__(slice(0, 1), ["x"]),
    "nothing": lambda chat: setattr(chat, "turns", None),
    "text": lambda chat: setattr(chat, "turns", "abc"),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_turn_does_not_get_among_the_turns(change):
    chat = Conversation("demo")
    chat.ask("one")
    before = list(chat.turns)
    with pytest.raises(TypeError, match=r"^turns .* Turn"):
        change(chat)
    assert chat.turns == before and chat.ask("two").text


def test_turns_of_any_sequence_can_be_gone_on_from():
    chat = Conversation("demo")
    chat.ask("one")
    chat.turns = tuple(chat.turns)
    chat.ask("two")
    chat.turns += [chat.turns.pop().copy()]
    assert [turn.prompt for turn in chat.turns] == ["one", "two"]
    chat.turns.clear()
    assert chat.messages == [] and chat.ask("three").text


def test_an_open_file_is_a_picture_by_itself(tmp_path):
    path = tmp_path / "pixel.png"
    path.write_bytes(streams.PNG)
    with FakeProvider(streams.reply("text", "chat")) as provider:
        chat = Conversation("m", api_key="k", base_url=provider.url("/v1"), client_type="openai-chat")
        with path.open("rb") as file:
            chat.ask("What is it?", images=file)
        picture, asked = provider.last.body["messages"][0]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,") and asked["text"] == "What is it?"


def test_tools_of_the_conversation_can_be_named_in_a_question():
    def own_of_this_chat(city: str) -> str:
        """The weather."""
        return "rain"

    chat = Conversation("demo", tools=[own_of_this_chat, len_of])
    assert [call.name for call in chat.ask("What's own_of_this_chat in London?", tools="own_of_this_chat").calls] == [
        "own_of_this_chat"
    ]
    assert chat.turns[-1].tools == ["own_of_this_chat"]
    with pytest.raises(ToolDefinitionError, match="is called 'own_of_this_cat'; did you mean 'own_of_this_chat'"):
        chat.ask("x", tools=["own_of_this_cat"])


def len_of(text: str) -> int:
    """How long it is."""
    return len(text)


@pytest.mark.parametrize("options", [{}, {"tools": [len_of]}, {"type": int}])
def test_a_system_prompt_that_is_no_text_is_refused_with_tools_and_types_too(options):
    chat = Conversation("demo")
    chat.system = 5
    with pytest.raises(UnsupportedParameterError, match=r"config\['system_prompt'\] must be a string, not 5"):
        chat.ask("x", **options)
    assert chat.turns == []
