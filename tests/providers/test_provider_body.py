"""What earlier requests have made of a history is used again, and the bytes are those of a request made anew."""

import itertools
import json

import pytest
from provider_helpers import MODELS, PNG, assistant, call, dialect, image, inline, result, route, text, thinking, user

from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.providers.body import Encoded, Past, encode

CHATS = sorted(set(MODELS) - {"openai-embedding"})
SIGNED = {"signature": "c2lnbmVk", "reasoning_field": "reasoning", "encrypted_content": "abc", "format": "f"}


def history(client_type):
    """A talk with all that this dialect can send."""
    pictures = [] if client_type in ("deepseek-official", "zai-official") else [image()]
    made = [inline(data="iVBORw0KGgo=")] if client_type.startswith("google") else []
    shown = [PNG] if pictures and client_type != "minimax-official" else []
    return [
        user(text("When is high tide?"), *pictures),
        assistant(thinking("Let me look.", **SIGNED), call("tides", "c1", {"port": "Brest"}), call("moon", "c2")),
        user(result("06:12", "c1", *shown), result("full", "c2")),
        assistant(thinking("Both.", **SIGNED), text("At 06:12."), *made),
        user(text("And tomorrow? \u00e9\u2028\U0001f30a")),
        assistant(call("tides", "c3", {"port": "Brest", "days": [1, 2.5, None, True]})),
        user(result("07:01", "c3")),
        assistant(text("At 07:01.")),
        user(text("Thanks")),
    ]


class Sender:
    """Builds requests as a client does, with a past and without."""

    def __init__(self, client_type):
        self.route = route(client_type)
        self.build = dialect(self.route.vendor).build
        self.past = Past()

    def known_and_bytes(self, messages, **config):
        known = self.past.follow(messages)
        [request] = self.build(self.route.vendor, self.route.model, messages[known:], config, self.past)
        return known, encode(request.body)

    def anew(self, messages, **config):
        [request] = self.build(self.route.vendor, self.route.model, messages, config)
        assert not any(isinstance(value, Encoded) for value in request.body.values())
        return encode(request.body)


@pytest.mark.parametrize("client_type", CHATS)
def test_a_growing_history_goes_out_as_if_made_anew_each_time(client_type):
    sender, messages = Sender(client_type), history(client_type)
    for count in range(1, len(messages) + 1):
        sent = messages[:count]
        assert sender.known_and_bytes(sent) == (max(count - 2, 0), sender.anew(sent))


@pytest.mark.parametrize("client_type", CHATS)
def test_any_list_after_any_other_goes_out_right(client_type):
    sender, messages = Sender(client_type), history(client_type)
    lists = [messages[:count] for count in range(1, len(messages) + 1)] + [messages[4:], messages[2:3] + messages[4:5]]
    for first, second in itertools.product(lists, repeat=2):
        sender.known_and_bytes(first)
        assert sender.known_and_bytes(second)[1] == sender.anew(second)


@pytest.mark.parametrize("client_type", CHATS)
def test_the_config_may_change_from_request_to_request(client_type):
    sender, messages = Sender(client_type), history(client_type)
    configs = [{}, {"system_prompt": "Be brief."}, {"extra_body": {"user": "u"}}, {"prompt_caching": "enable"}]
    for config in configs:
        assert sender.known_and_bytes(messages, **config)[1] == sender.anew(messages, **config)


def test_a_body_of_ones_own_replaces_the_messages():
    sender = Sender("openai-chat")
    _, sent = sender.known_and_bytes(history("openai-chat"), extra_body={"messages": [], "n": 2})
    assert json.loads(sent)["messages"] == [] and json.loads(sent)["n"] == 2


def test_equal_messages_that_are_other_objects_are_not_known():
    sender = Sender("openai-chat")
    sender.known_and_bytes(history("openai-chat"))
    assert sender.known_and_bytes(history("openai-chat"))[0] == 0


def test_the_last_message_of_a_request_is_not_kept():
    """Its request may fail; then another one takes its place."""
    sender, messages = Sender("openai-chat"), history("openai-chat")
    sender.known_and_bytes(messages[:5])
    other = [*messages[:4], user(text("Something else"))]
    known, sent = sender.known_and_bytes(other)
    assert known == 4 and sent == sender.anew(other)


def test_what_a_refused_message_brought_is_not_remembered():
    """The reasoning fields of a conversation decide what goes back; those of a message that was not sent do not."""
    sender = Sender("openai-chat-vllm-adapter")
    first = [user(text("a")), assistant(call("f", "c1")), user(result("r", "c1"))]
    sender.known_and_bytes(first)
    refused = [*first, assistant(thinking("b", reasoning_field="reasoning"), text("b")), user(), user(text("c"))]
    with pytest.raises(InvalidMessageError, match="message 4 holds nothing"):
        sender.known_and_bytes(refused)
    good = [*first, assistant(call("f", "c2")), user(result("r", "c2"))]
    known, sent = sender.known_and_bytes(good)
    assert known == 2 and sent == sender.anew(good)


@pytest.mark.parametrize("client_type", sorted({*CHATS} - {"mmsp"}))  # an MMSP server judges messages itself
def test_the_index_of_a_refused_message_counts_from_the_first(client_type):
    sender, messages = Sender(client_type), history(client_type)
    sender.known_and_bytes(messages)
    with pytest.raises(InvalidMessageError, match="message 9 holds nothing"):
        sender.known_and_bytes([*messages, user()])


def test_half_an_emoji_is_escaped_where_it_stands():
    sender = Sender("openai-chat")
    messages = [user(text("half \ud83c")), assistant(text("whole \U0001f30a")), user(text("c"))]
    for count in (1, 2, 3):
        _, sent = sender.known_and_bytes(messages[:count])
        assert json.loads(sent) == json.loads(sender.anew(messages[:count]))
    assert b'"half \\ud83c"' in sent and "\U0001f30a".encode() in sent


def test_forgetting_lets_go_of_the_messages():
    sender, messages = Sender("openai-chat"), history("openai-chat")
    sender.known_and_bytes(messages)
    sender.past.forget()
    assert sender.past.count == 0 and sender.known_and_bytes(messages)[0] == 0
