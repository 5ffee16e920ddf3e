"""The demo model as somebody to talk to."""

import json

import jsonschema
import pytest
from local_helpers import WEATHER, WIRES, ask, payloads, post, request

from mmsp_nb.local.rules import SIGNATURE, length, reply, usage_of
from mmsp_nb.local.rules.results import answer, compare, failed, spoken
from mmsp_nb.local.rules.shapes import shaped
from mmsp_nb.local.rules.talk import calculate
from mmsp_nb.local.wire import chat
from mmsp_nb.local.wire.neutral import Ask, Call, Result, Text, Thinking, Turn

TEMPERATURES = {"London": 15, "Paris": 19, "Rome": 24}


class Talk:
    """A conversation with the demo in which the weather tool is run."""

    def __init__(self, tools=(WEATHER,), **fields):
        self.messages, self.tools, self.fields = [], tools, fields
        self.calls = []

    def say(self, prompt):
        self.messages.append({"role": "user", "content": prompt})
        for _ in range(4):
            said = self.ask()
            message = {"role": "assistant", "content": "".join(s.text for s in said if isinstance(s, Text))}
            called = [s for s in said if isinstance(s, Call)]
            if called:
                message["tool_calls"] = [
                    {"id": call.id, "function": {"name": call.name, "arguments": call.json}} for call in called
                ]
            self.messages.append(message)
            if not called:
                return message["content"]
            self.calls += [dict(call.arguments) for call in called]
            for call in called:
                degrees = TEMPERATURES.get(call.arguments.get("city"), 0)
                text = json.dumps({"temperature": degrees, "unit": "celsius"})
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        raise AssertionError("the demo calls without end")

    def ask(self):
        tools = [{"type": "function", "function": tool} for tool in self.tools]
        return reply(chat.read({"model": "demo", "messages": self.messages, "tools": tools, **self.fields})).says


def answer_to(prompt, **fields):
    return Talk((), **fields).say(prompt)


def test_a_conversation_with_tools_and_memory():
    talk = Talk()
    assert "Ada" in talk.say("My name is Ada and I live in Oslo.")
    assert "**London**: temperature 15 °C" in talk.say("What's the weather in London and in Paris?")
    assert talk.say("Which of the two is warmer?").startswith(
        "**Paris** is warmer (temperature): 19, while London has 15."
    )
    assert "difference of **4**" in talk.say("What is the difference?")
    assert "**London** is colder" in talk.say("And which one is colder?")
    assert talk.calls == [{"city": "London"}, {"city": "Paris"}]
    assert "**Rome**" in talk.say("And in Rome?")
    assert talk.calls[2:] == [{"city": "Rome"}]
    assert "**Ada**" in talk.say("What is my name?")
    assert "**Oslo**" in talk.say("Where do I live?")
    assert "“My name is Ada and I live in Oslo.”" in talk.say("What did I ask first?")
    assert "“What did I ask first?”" in talk.say("What did I ask before?")
    assert "I still need **city**" in talk.say("What's the weather like?")
    assert "**12th**" in talk.say("How many questions have I asked?")


def test_new_places_are_asked_for_although_old_ones_could_be_compared():
    talk = Talk()
    talk.say("What's the weather in London and in Paris?")
    talk.say("Is Rome or Oslo warmer?")
    assert talk.calls[2:] == [{"city": "Rome"}, {"city": "Oslo"}]


def test_it_answers_after_results_even_when_a_call_is_required():
    talk = Talk(tool_choice="required")
    assert "**Rome**" in talk.say("the weather in Rome")
    assert len(talk.calls) == 1


def test_one_call_at_a_time_if_parallel_calls_are_not_wanted():
    talk = Talk(parallel_tool_calls=False)
    talk.messages.append({"role": "user", "content": "weather in London and Paris"})
    assert len(talk.ask()) == 1


@pytest.mark.parametrize(
    ("prompt", "part"),
    [
        ("Why is the sky blue?", "Rayleigh"),
        ("Write a haiku about the sea", "gull"),
        ("List three colours", "1. red\n2. green\n3. blue"),
        ("Name 5 planets", "5. Jupiter"),
        ("Name three rivers.", "1. Nile\n2. Amazon\n3. Danube"),
        ("List 2 names", "1. Ada\n2. Grace"),
        ("Name four spices", "4. spices number 4"),
        ("Show me Python code for fibonacci", "```python\ndef fibonacci"),
        ("What is a decorator in Python?", "@shout"),
        ("Make a table of planets", "| Planet | Diameter"),
        ("The quadratic formula in LaTeX please", "\\frac{-b \\pm"),
        ("What is 17 * 23?", "**391**"),
        ("What is two plus two?", "**4**"),
        ("What is the capital of France?", "**Paris**"),
        ("What are the capitals of France and Italy?", "- Italy: **Rome**"),
        ("Translate 'good morning' to French", "**bonjour**"),
        ("Say hello world", "hello world"),
        ("count to 5", "1, 2, 3, 4, 5."),
        ("Tell me a joke", "."),
        ("Who are you?", "demo model"),
        ("What can you do?", "tools"),
        ("Thanks a lot!", "welcome"),
        ("Tell me about quantum gravity", "python -m mmsp_nb.local fetch"),
        ("", "empty message"),
    ],
)
def test_newcomers_get_an_answer_and_know_from_whom(prompt, part):
    said = answer_to(prompt)
    assert part in said
    assert said.endswith(f"\n\n{SIGNATURE}")
    assert said.count(SIGNATURE) == 1


def test_repeating_does_not_repeat_the_signature():
    talk = Talk(())
    talk.say("count to 3")
    assert talk.say("Say that again") == f"1, 2, 3.\n\n{SIGNATURE}"


@pytest.mark.parametrize(
    ("system", "check"),
    [
        ("Answer in one sentence.", lambda said: said.count(".") < 3),
        ("Use upper case only.", lambda said: "RAYLEIGH" in said),
        ("You are a pirate.", lambda said: said.startswith("Arr! ")),
    ],
)
def test_the_system_prompt_shows(system, check):
    talk = Talk(())
    talk.messages.append({"role": "system", "content": system})
    assert check(talk.say("Why is the sky blue?"))


@pytest.mark.parametrize(
    ("prompt", "measure", "expected"),
    [
        ("Write about 500 words on tea", lambda text: len(text.split()), 500),
        ("Write 16000 characters", len, 16_000),
        ("give me a text of 2k characters", len, 2_000),
        ("Write 3 paragraphs about Oslo", lambda text: len(text.split("\n\n")), 3),
        ("write three sentences about Oslo", lambda text: text.count(". ") + text.count("."), None),
    ],
)
def test_texts_of_a_wanted_length(prompt, measure, expected):
    text = length.write(prompt)
    assert text == length.write(prompt)
    assert expected is None or measure(text) == expected
    assert text in answer_to(prompt)


def test_a_long_text_is_made_quickly_and_bounded():
    assert len(length.write("write 9000000000 characters")) == length.MOST


def test_no_length_is_no_long_text():
    assert length.write("I need 3 words of advice? no") is None
    assert length.write("What is the weather?") is None


@pytest.mark.parametrize("wire", WIRES)
def test_thinking_comes_first_when_asked_for(demo, wire):
    plain, thinking = ask(demo, wire, "hi"), ask(demo, wire, "hi", thinking=True)
    mark = {
        "chat": b'"reasoning_content":',
        "responses": b"response.reasoning_summary_text.delta",
        "messages": b'"thinking_delta"',
        "interactions": b'"thought_summary"',
        "generate": b'"thought":true',
        "mmsp": b'"thinking.delta"',
    }[wire]
    assert mark not in plain
    assert mark in thinking


def test_a_model_id_can_ask_for_thinking(demo):
    content = ask(demo, "chat", "hi", model="demo:thinking")
    assert b"reasoning_content" in content
    assert {event["model"] for event in payloads(content)} == {"demo:thinking"}


def test_step_by_step_shows_thinking():
    said = reply(Ask("demo", (Turn("user", (Text("Think step by step: what is 2 + 2?"),)),))).says
    assert isinstance(said[0], Thinking)


def test_images_are_described_by_what_can_be_known(demo):
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{pixel}"}},
    ]
    body = {"model": "demo", "messages": [{"role": "user", "content": parts}]}
    _, _, content = post(demo, "/v1/chat/completions", body)
    assert "PNG image of 1×1 pixels" in json.loads(content)["choices"][0]["message"]["content"]


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("prompt", "schema", "expected"),
    [
        ("Extract: Ada is 36 and lives in London.", PERSON, {"name": "Ada", "age": 36, "city": "London"}),
        (
            "Ada is 36, Grace is 45.",
            {"type": "object", "properties": {"people": {"type": "array", "items": {**PERSON, "required": ["name"]}}}},
            None,
        ),
        (
            "The film was wonderful: 4 of 5 stars, positive",
            {"properties": {"stars": {"type": "integer", "maximum": 5}, "mood": {"enum": ["negative", "positive"]}}},
            {"stars": 4, "mood": "positive"},
        ),
        ("What is 12 * 12?", {"type": "object", "properties": {"result": {"type": "number"}}}, {"result": 144}),
        ("List 2 fruits", {"type": "array", "items": {"type": "string"}}, ["apples", "bananas"]),
    ],
)
def test_json_answers_draw_on_the_prompt(prompt, schema, expected):
    value = shaped(prompt, schema)
    jsonschema.validate(value, schema)
    assert expected is None or value == expected


def test_people_and_their_ages_stay_together():
    schema = {"type": "object", "properties": {"people": {"type": "array", "items": PERSON}}}
    people = shaped("Ada is 36, Grace is 45 and Alan is 41.", schema)["people"]
    assert [(person["name"], person["age"]) for person in people] == [("Ada", 36), ("Grace", 45), ("Alan", 41)]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 20, "maxLength": 30},
        {"type": "integer", "minimum": 7, "maximum": 9},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 5},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object", "properties": {"when": {"type": "string", "format": "date"}}, "required": ["when"]},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"const": 5},
        {
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "$ref": "#/$defs/Node",
        },
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}},
    ],
)
def test_json_answers_keep_to_any_schema(schema):
    for prompt in ("Make one up", "Take 3 of them, for Ada and Grace in Rome, 50 at most."):
        jsonschema.validate(shaped(prompt, schema), schema)


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "interactions", "generate", "mmsp"])
def test_every_format_can_ask_for_json(demo, wire):
    path, body = request(wire, "Ada is 36.", stream=wire == "mmsp")
    if wire == "chat":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    elif wire == "responses":
        body["text"] = {"format": {"type": "json_schema", "name": "p", "schema": PERSON}}
    elif wire == "messages":
        body["output_config"] = {"format": {"type": "json_schema", "schema": PERSON}}
    elif wire == "interactions":
        body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": PERSON}
    elif wire == "generate":
        body["generationConfig"] = {"responseMimeType": "application/json", "responseJsonSchema": PERSON}
    else:
        body["config"]["response_format"] = {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    _, _, content = post(demo, path, body)
    text = (
        content.decode()
        if wire != "mmsp"
        else "".join(
            item["text"]
            for event in payloads(content)
            for item in event["content_items"]
            if item["type"] == "text.done"
        )
    )
    assert '"age": 36' in text.replace("\\", "")


def test_any_json_object_may_be_asked_for():
    body = {
        "model": "demo",
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_object"},
    }
    [said] = reply(chat.read(body)).says
    assert json.loads(said.text) == {"answer": "hi", "model": "demo"}


def test_usage_adds_up_and_later_turns_are_cached():
    first = Ask("demo", (Turn("user", (Text("one two three"),)),), system="be nice")
    usage = usage_of(first, [Text("four five"), Thinking("six")])
    assert (usage.input, usage.cached, usage.output, usage.thoughts) == (8, 0, 2, 1)
    later = Ask(
        "demo",
        (*first.turns, Turn("assistant", (Text("four five"),)), Turn("user", (Text("seven"),))),
        system="be nice",
    )
    assert usage_of(later, []).cached == 8 + 5
    assert usage_of(later, []).input == 8 + 5 + 4


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"temperature": 18, "unit": "celsius", "sky": "cloudy"}', "temperature 18 °C, sky cloudy"),
        ("[1, 2, 3]", "1, 2, 3"),
        ("true", "yes"),
        ("", "nothing was returned"),
        ('[{"a": 1, "b": 2}, {"a": 3}]', "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("line one\nline two", "```\nline one\nline two\n```"),
        ("has ``` inside\nit", "````\n"),
        (
            "DataFrame of 1 row\n| | a |\n| --- | --- |\n| 0 | 7 |",
            "\n\nDataFrame of 1 row\n\n| | a |\n| --- | --- |\n| 0 | 7 |",
        ),
        ("| a |\n| --- |\n| 0 |\n(the first 20 of 99 rows)", "| 0 |\n\n(the first 20 of 99 rows)"),
        ("| no | table |\n| at | all |", "```\n| no | table |"),
        ('{"error": "no such city"}', "did not work: no such city"),
        ("ValueError: bad", "did not work: ValueError: bad"),
        ("<script>alert(1)</script>", "scriptalert(1)/script"),
    ],
)
def test_results_are_put_into_words(text, part):
    result = Result("c1", text, "get_weather", {"city": "Rome"})
    assert part in spoken(result)
    assert "**Rome**" in answer([result])


def test_huge_results_are_cut():
    assert len(spoken(Result("c", "word " * 100_000))) < 2_000


def test_every_result_is_named():
    results = [Result(f"c{at}", f"{at} degrees", "get_weather", {"city": city}) for at, city in enumerate("ABC")]
    said = answer([*results, Result("t", "12:00", "get_time", {})])
    assert all(f"- **{city}** (`get_weather`): {at} degrees" in said for at, city in enumerate("ABC"))
    assert "- **get_time** (`get_time`): 12:00" in said


def test_comparisons_need_a_question_and_figures():
    results = [Result("a", "12", "f", {"x": "A"}), Result("b", '{"v": 1}', "f", {"x": "B"})]
    assert compare("which is larger?", results) is None
    results[1] = Result("b", "30", "f", {"x": "B"})
    assert "**B** is larger" in compare("which is larger?", results)
    assert "**42**" in compare("and the total?", results)
    assert "**21**" in compare("on average?", results)
    assert compare("what's the weather", results) is None
    assert failed(Result("a", "Error: no"))
    assert not failed(Result("a", "no errors"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 + 2 * 3", 8), ("2^10", 1024), ("7 / 2", 3.5), ("1/0", None), ("9**9**9", None), ("__import__('os')", None)],
)
def test_sums_are_safe(text, value):
    assert calculate(text) == value


FRAME = """Why did this fail, and how do I fix it? Answer briefly.

The cell [4]:
```python
frame["ammount"].sum()
```

The exception:
```
the cell, line 1, in <module>
->    1 frame["ammount"].sum()
      where frame: DataFrame (3, 2) [month: object, amount: float64]; rows: list of 3
raised in base.py, line 3823, in get_loc
KeyError: 'ammount'
```

Its cause:
```
index.pyx, line 172, in pandas._libs.index.IndexEngine.get_loc
IndexError: not this one
```"""
PYTHON = """Traceback (most recent call last):
  File "/ipykernel_12/34.py", line 7, in <module>
    half(0)
  File "/project/sums.py", line 2, in half
    return 1 / n
           ~~^~~
ZeroDivisionError: division by zero"""
UNREAD = """Why?

The exception:
```
  File "<ipython-input-4-838671dc4620>", line 1
    def f(:
          ^
SyntaxError: invalid syntax
```"""


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        (
            FRAME,
            [
                "`KeyError: 'ammount'` was raised in the cell, line 1:",
                '```python\nframe["ammount"].sum()\n```',
                "no such key or column",
                "`amount` is the nearest",
                "- `frame`: DataFrame (3, 2) (month: object, amount: float64)\n- `rows`: list of 3",
            ],
        ),
        (PYTHON, ["`ZeroDivisionError: division by zero`", "sums.py, line 2", "return 1 / n", "divided by zero"]),
        (f"What is wrong here? {PYTHON}", ["`ZeroDivisionError: division by zero`"]),
        (UNREAD, ["`SyntaxError: invalid syntax`", "the cell, line 1", "def f(:", "cannot read the line"]),
        ("Why?\n\nThe exception:\n```\nmine.Odd: so it is\n```", ["`mine.Odd: so it is` was raised.", "no rule"]),
        (
            "Why?\n\nThe cell [1]:\n```python\n"
            + "x = 1  # weather in Rome\n" * 3_000
            + "```"
            + FRAME[FRAME.index("\n\nThe exception") :],
            ["`KeyError: 'ammount'`"],
        ),
    ],
)
def test_an_exception_is_explained_from_what_is_shown_of_it(prompt, parts):
    talk = Talk()
    said = talk.say(prompt)
    for part in parts:
        assert part in said
    assert "not this one" not in said
    assert said.endswith(f"\n\n{SIGNATURE}")
    assert not talk.calls, "what is in a failed cell is no wish"


def test_an_exception_does_not_hide_another_wish():
    assert "gull" in answer_to(f"Write a haiku about the sea. {PYTHON}")
    talk = Talk()
    talk.say(f"Explain this, and call get_weather for London: {PYTHON}")
    assert talk.calls == [{"city": "London"}]


def tool(name, description, *parameters):
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": description, "parameters": schema}


SALES = (tool("sales_of", "The sales of a month.", "month"), tool("delete_month", "Delete a month.", "month"))


def test_the_name_of_an_argument_is_no_wish_for_another_tool():
    said = Talk(SALES)
    said.messages.append({"role": "user", "content": 'Call sales_of with month="Mar"'})
    assert [(call.name, call.arguments) for call in said.ask()] == [("sales_of", {"month": "Mar"})]


@pytest.mark.parametrize("text", ["Not run yet: it waits for the user.", "Not run: the user has denied this call."])
def test_a_call_that_was_not_run_does_not_outweigh_a_new_question(text):
    talk = Talk(SALES)
    call = {"id": "c1", "function": {"name": "delete_month", "arguments": '{"month": "Mar"}'}}
    talk.messages += [
        {"role": "user", "content": 'Call delete_month with month="Mar"'},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "user", "content": 'Call sales_of with month="Jan"'},
    ]
    assert [call.name for call in talk.ask()] == ["sales_of"]
    talk.messages[-1:] = []
    assert f"did not work: {text}" in talk.say("")
