"""Answers that are objects: by the wire's mode or by a tool, corrected, followed, cut off."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from typing import Any, Literal, TypedDict

import pytest
from agent_scripted import ScriptedClient, call, text
from pydantic import BaseModel, Field

from mmsp_nb.conversation import Conversation
from mmsp_nb.protocol.errors import ConnectionCutError
from mmsp_nb.tools import Policy
from mmsp_nb.typed import TypedAnswer, TypedAnswerError


class Line(BaseModel):
    item: str
    price: float = Field(ge=0)


class Invoice(BaseModel):
    vendor: str
    date: datetime.date | None = None
    lines: list[Line] = []
    paid: bool = False


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Row(TypedDict):
    key: str


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


GOOD = {"vendor": "Acme", "date": "2026-03-01", "lines": [{"item": "saw", "price": 2}], "paid": None}
INVOICE = Invoice(vendor="Acme", date=datetime.date(2026, 3, 1), lines=[Line(item="saw", price=2)])


def chat(*scripts: Any, **options: Any) -> Conversation:
    return Conversation(client=ScriptedClient(*scripts), **options)


def given(value: Any, key: str = "c1") -> list[dict[str, Any]]:
    """The answer tool, called with its arguments in small pieces."""
    written = json.dumps(value)
    pieces = [written[i : i + 7] for i in range(0, len(written), 7)]
    return [
        {"type": "tool_call.delta", "name": "give_answer", "arguments": "", "tool_call_id": key},
        *({"type": "tool_call.delta", "name": "", "arguments": piece, "tool_call_id": ""} for piece in pieces),
        {"type": "tool_call.done", "name": "give_answer", "arguments": value, "tool_call_id": key},
    ]


@pytest.mark.parametrize(
    ("type_", "arguments", "value"),
    [
        (Invoice, GOOD, INVOICE),
        (Point, {"x": 1, "y": 2.5}, Point(1, 2.5)),
        (Row, {"key": "a"}, {"key": "a"}),
        (list[Point], {"value": [{"x": 1, "y": 2}]}, [Point(1, 2)]),
        (list[Row], {"value": []}, []),
        (Literal["yes", "no"], {"value": "yes"}, "yes"),
        (Mood, {"value": "bad"}, Mood.BAD),
        (int, {"value": 3}, 3),
        (Invoice | Point, {"value": {"x": 1, "y": 2}}, Point(1, 2)),
        (dict[str, int], {"value": {"a": 1}}, {"a": 1}),
    ],
)
def test_a_client_without_a_schema_mode_gets_a_tool(type_: Any, arguments: Any, value: Any) -> None:
    conversation = chat([given(arguments)], [text("Yes?")])
    answer = conversation.ask("Extract", type=type_)
    assert answer.value == value and type(answer.value) is type(value) and answer.complete
    config = conversation.client.requests[0][1]
    assert config["tools"][0]["name"] == "give_answer" and "response_format" not in config
    assert conversation.ask("And now?").text == "Yes?"  # the history is valid: the call is answered
    kinds = [item["type"] for item in conversation.client.requests[1][0][-1]["content_items"]]
    assert kinds == ["tool_result.done", "text.done"]


def test_a_wrong_answer_is_corrected_and_all_of_it_is_one_turn() -> None:
    wrong = {"vendor": 3, "lines": [{"item": "saw", "price": -1}]}
    conversation = chat([given(wrong)], [given(GOOD, "c2")])
    answer = conversation.ask("Extract", type=Invoice)
    assert answer.value == INVOICE and len(conversation.turns) == 1 and answer.usage["prompt_tokens"] == 20
    correction = conversation.client.requests[1][0][-1]["content_items"][0]["text"]
    assert "vendor: Input should be a valid string" in correction and "lines.0.price" in correction


def test_text_in_place_of_the_call_is_taken_when_it_is_right_and_corrected_when_not() -> None:
    written = json.dumps(GOOD)
    for said in (
        written,
        f"```json\n{written}\n```",
        f"Sure:\n```\n{written}\n```\nHope it helps.",
        f"It is {written}.",
    ):
        assert chat([text(said)]).ask("Extract", type=Invoice).value == INVOICE
    conversation = chat([text("Here it is: Acme")], [text(json.dumps(GOOD))])
    assert conversation.ask("Extract", type=Invoice).value == INVOICE
    assert "by calling give_answer" in conversation.client.requests[1][0][-1]["content_items"][0]["text"]


def test_corrections_are_bounded_and_the_error_names_what_is_right() -> None:
    wrong = json.dumps({"vendor": "Acme", "paid": "perhaps"})
    conversation = chat(*[[text(wrong)] for _ in range(5)])
    with pytest.raises(TypedAnswerError, match="no Invoice: it does not fit: paid: Input should be") as caught:
        conversation.ask("Extract", type=Invoice)
    assert caught.value.complete == {"vendor": "Acme"} and caught.value.missing == ("date", "lines", "paid")
    assert len(conversation.client.requests) == 3 and conversation.turns[-1].state == "done"


def test_an_answer_that_was_cut_off_keeps_its_valid_prefix_and_is_not_asked_for_again() -> None:
    half = json.dumps(GOOD)[: json.dumps(GOOD).index('"paid"') + 8]
    conversation = Conversation(client=ScriptedClient([text(half)], finish="length"))
    with pytest.raises(TypedAnswerError, match="cut off at the limit of tokens; complete are vendor, date, lines"):
        conversation.ask("Extract", type=Invoice)
    typed = conversation.turns[-1].typed
    assert typed.complete == {name: GOOD[name] for name in ("vendor", "date", "lines")} and typed.missing == ["paid"]


def test_a_broken_connection_keeps_the_valid_prefix_too() -> None:
    deltas = [{"type": "text.delta", "text": piece} for piece in ('{"vendor": "Acme", ', '"lines": [{"item": "sa')]
    conversation = chat([*deltas, ConnectionCutError("cut", client="x")])
    with pytest.raises(ConnectionCutError):
        conversation.ask("Extract", type=Invoice)
    typed = conversation.turns[-1].typed
    assert typed.complete == {"vendor": "Acme"} and typed.missing == ["date", "lines", "paid"]
    assert typed.partial == {"vendor": "Acme", "lines": [{"item": "sa"}]}


def test_of_a_list_that_was_cut_off_the_complete_items_are_kept() -> None:
    typed = TypedAnswer(list[Line])
    typed.feed(event('{"value": [{"item": "saw", "price": 2}, {"item": "axe", "pri'))
    assert typed.complete == [{"item": "saw", "price": 2}]


def event(piece: str) -> dict[str, Any]:
    return {"content_items": [{"type": "text.delta", "text": piece}]}


async def test_fields_fill_in_while_they_stream() -> None:
    conversation = chat([given(GOOD)])
    seen = [each["value"] async for each in conversation.stream("Extract", type=Invoice) if each["type"] == "partial"]
    assert len(seen) > 5 and seen[-1] == GOOD
    assert any(set(value) == {"vendor"} for value in seen)
    vendors = [value.get("vendor", "") for value in seen]
    assert all("Acme".startswith(value) for value in vendors)


def test_other_tools_may_run_before_the_answer() -> None:
    def price(item: str) -> float:
        """The price of an item."""
        return 2.0

    conversation = chat([call("price", "p", item="saw")], [given(GOOD)], tools=[price])
    answer = conversation.ask("Extract", type=Invoice)
    assert answer.value == INVOICE and [each.name for each in answer.calls] == ["price", "give_answer"]


def test_no_policy_stands_before_the_answer_but_before_the_tools_on_the_way() -> None:
    def price(item: str) -> float:
        """The price of an item."""
        return 2.0

    policy = Policy(default="ask", unattended="wait")
    conversation = chat([call("price", "p", item="saw")], [given(GOOD)], tools=[price], policy=policy)
    assert conversation.ask("Extract", type=Invoice).turn.reason == "approval"
    assert conversation.approve().value == INVOICE  # the wish outlives the wait


@pytest.mark.parametrize("type_", [Conversation, "Invoice", lambda: 1])
def test_what_cannot_be_described_is_refused_before_anything_is_sent(type_: Any) -> None:
    conversation = chat([text("?")])
    with pytest.raises(TypeError, match="cannot be the type of an answer") as caught:
        conversation.ask("Extract", type=type_)
    assert "\n" not in str(caught.value) and conversation.turns == []


@pytest.mark.parametrize("client_type", ["openai-chat", "openai-responses", "ant-messages", "google-genai", "mmsp"])
def test_a_wire_with_a_schema_mode_is_asked_by_it(client_type: str) -> None:
    conversation = Conversation("demo", client_type=client_type)
    answer = conversation.ask("Extract: x = 3, y = 4.5", type=Point)
    assert answer.value == Point(3, 4.5) and json.loads(answer.text) == {"x": 3, "y": 4.5}
