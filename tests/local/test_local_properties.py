"""Whatever is asked, the demo answers: properties over made-up prompts, schemas and conversations."""

import json
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_local_tool_choice import TOOLS

from mmsp_nb.local import wire
from mmsp_nb.local.rules import LONGEST, gist, reply
from mmsp_nb.local.rules.shapes import shaped
from mmsp_nb.local.wire import pieces
from mmsp_nb.local.wire.neutral import Ask, Call, Result, Text, Thinking, Turn, arguments_of, gather

SPOKEN = [wire.chat, wire.responses, wire.messages, wire.interactions, wire.generate, wire.mmsp]
SCRAPS = (
    """the weather in|London|and in|Paris|roll|2d6|convert|100 USD|€5|to|which is warmer?|my name is|Ada|list|three
what is my name?|1e999|1.2.3|(3+4)*|'quoted'|"|demo:|cut|2026-05-03|https://x.y/z|write 50 words|{"city": 1}|[1, 2
and Rome?|…|👩‍👩‍👧‍👦""".replace("\n", "|").split("|")
    + ["\n", "\u2028", "\ud800"]
)
PROMPTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(SCRAPS), max_size=9).map(" ".join))


@st.composite
def asks(draw):
    turns = []
    for prompt in draw(st.lists(PROMPTS, min_size=1, max_size=3)):
        turns.append(Turn("user", (Text(prompt),)))
        if draw(st.booleans()):
            call = Call("get_weather", {"city": "Oslo"}, "c1")
            turns += [Turn("assistant", (call,)), Turn("user", (Result("c1", draw(PROMPTS)),))]
        turns.append(Turn("assistant", (Text(draw(PROMPTS)),)))
    turns.append(Turn("user", (Text(draw(PROMPTS)),)))
    return Ask(
        model="demo",
        turns=tuple(turns),
        tools=tuple(draw(st.lists(st.sampled_from(TOOLS), max_size=4))),
        tool_choice=draw(st.sampled_from(["auto", "none", "required", ("greet",)])),
        think=draw(st.booleans()),
        max_tokens=draw(st.one_of(st.none(), st.integers(1, 30))),
        digest="x",
    )


@settings(deadline=None, max_examples=120)
@given(asks())
def test_any_conversation_is_answered_in_every_format(ask):
    said = reply(ask)
    assert reply(ask) == said
    for spoken in SPOKEN:
        encoder = spoken.encoder(ask, said.usage)
        frames = [*encoder.start()]
        for delta in pieces.deltas(said.says):
            frames += encoder.push(delta)
        frames += encoder.finish(said.finish, said.usage)
        for line in b"".join(frames).decode("utf-8").replace("\r\n", "\n").split("\n"):
            assert line == "" or line.startswith(("data: ", "event: "))
            if line.startswith("data: {"):
                json.loads(line[6:])


@settings(deadline=None)
@given(asks())
def test_pieces_put_together_are_the_answer(ask):
    says = reply(ask).says
    joined = gather(pieces.deltas(says))
    expected = [
        Call(say.name, arguments_of(say.json), say.id, say.json) if isinstance(say, Call) else say for say in says
    ]
    assert joined == [say for say in expected if isinstance(say, Call) or say.text]


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from([{"type": kind} for kind in ("string", "boolean", "null")]),
        st.integers(-50, 50).flatmap(
            lambda low: st.integers(low, low + 9).map(lambda high: {"type": "integer", "minimum": low, "maximum": high})
        ),
        st.lists(st.sampled_from(["red", "green", 3, True]), min_size=1, max_size=3).map(
            lambda values: {"enum": values}
        ),
    ),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items, "minItems": 1, "maxItems": 4}),
        st.dictionaries(st.sampled_from(["name", "age", "city", "tags", "ok", "x"]), inner, min_size=1, max_size=4).map(
            lambda found: {
                "type": "object",
                "properties": found,
                "required": list(found),
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(SCHEMAS, PROMPTS)
def test_json_answers_are_always_valid(schema, prompt):
    jsonschema.validate(shaped(prompt, schema), schema)


@pytest.mark.parametrize(
    "scrap", ["a", "A ", "1", "(", '"', "'", "-", "_", "[", "€5 ", "a@", "give me ", "x=", "\n", "9*", "1e9"]
)
def test_a_huge_prompt_is_answered_in_time(scrap):
    """The patterns never see more than the gist of a text, so that none of them can take minutes."""
    prompt = "calculate the weather " + scrap * (200_000 // len(scrap))
    began = time.monotonic()
    said = reply(Ask("demo", (Turn("user", (Text(prompt),)),), tools=tuple(TOOLS)))
    assert said.says
    assert time.monotonic() - began < 10


def test_the_gist_has_both_ends():
    assert gist("short") == "short"
    text = "begin " + "x" * 10_000 + " end"
    assert len(gist(text)) <= LONGEST
    assert gist(text).startswith("begin ")
    assert gist(text).endswith(" end")


def test_thinking_is_put_together_too():
    says = [Thinking("one two"), Text("three"), Call("f", {"a": 1}, "c", '{"a": 1}'), Text("four")]
    assert gather(pieces.deltas(says)) == says
