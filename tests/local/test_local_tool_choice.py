"""Which tool a prompt asks for, and the arguments that are found in it."""

import pytest
from local_helpers import WEATHER

from mmsp_nb.local.rules import plan_calls
from mmsp_nb.local.rules.choosing import pick
from mmsp_nb.local.rules.filling import fill
from mmsp_nb.local.rules.values import names, numbers
from mmsp_nb.local.rules.words import stem
from mmsp_nb.local.wire.neutral import Ask, Call, Result, Text, Tool, Turn

S, INT, N, B = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))


def tool(_name, _description, _required=None, **properties):
    required = list(properties) if _required is None else _required
    return Tool(_name, _description, {"type": "object", "properties": properties, "required": required})


weather = Tool(WEATHER["name"], WEATHER["description"], WEATHER["parameters"])
dice = tool(
    "roll_dice",
    "Roll dice and return the numbers.",
    count={"type": "integer", "minimum": 1, "maximum": 20},
    sides={"type": "integer", "minimum": 2},
)
TOOLS = [
    weather,
    dice,
    tool("calculate", "Evaluate an arithmetic expression.", expression=S),
    tool("factorial", "The factorial of n.", n=INT),
    tool("convert_currency", "Convert an amount between currencies.", amount=N, source=S, target=S),
    tool("get_route", "Directions from one place to another.", origin=S, destination=S),
    tool("search_docs", "Search the documentation.", ["query"], query=S, limit=INT),
    tool("get_time", "Get the local time in a city.", city=S),
    tool("translate", "Translate a text into a language.", text=S, language=S),
    tool("mean", "The arithmetic mean of numbers.", numbers={"type": "array", "items": N}),
    tool("add_to_list", "Add things to the shopping list.", items={"type": "array", "items": S}),
    tool("send_email", "Send an email.", to=S, subject=S, body=S),
    tool(
        "plot_sine",
        "Plot a sine curve.",
        ["frequency"],
        frequency=N,
        grid=B,
        color={"type": "string", "enum": ["red", "green", "blue"]},
    ),
    tool("add", "Add two numbers.", a=INT, b=INT),
    tool(
        "book_flight",
        "Book a flight.",
        ["origin", "destination", "date"],
        origin=S,
        destination=S,
        date={"type": "string", "format": "date"},
        passengers=INT,
    ),
    tool("greet", "Greet a person.", name=S),
    tool("stock_price", "The latest price of a stock.", ticker=S),
]


def plans(prompt, tools=TOOLS, **options):
    ask = Ask("demo", (Turn("user", (Text(prompt),)),), tools=tuple(tools), **options)
    return [(plan.tool.name, plan.filled) for plan in plan_calls(ask, prompt)]


def calls(prompt, tools=TOOLS, **options):
    return [(name, call) for name, filled in plans(prompt, tools, **options) for call in filled.calls]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What's the weather in London and in Paris?", [{"city": "London"}, {"city": "Paris"}]),
        ("weather in london and paris today", [{"city": "London"}, {"city": "Paris"}]),
        (
            "Tokyo, Paris and Rome: which weather do they have?",
            [{"city": "Tokyo"}, {"city": "Paris"}, {"city": "Rome"}],
        ),
        ("Compare the weather in Paris, France and London, UK", [{"city": "Paris, France"}, {"city": "London, UK"}]),
        ("weather in new york and san francisco", [{"city": "New York"}, {"city": "San Francisco"}]),
        ("Do I need an umbrella in London today?", [{"city": "London"}]),
        ("How hot is it in Cairo right now, in Fahrenheit?", [{"city": "Cairo", "unit": "fahrenheit"}]),
        ("Tell me the temperature in Tokyo in celsius please.", [{"city": "Tokyo", "unit": "celsius"}]),
        ("How warm is it in Lima (°F)?", [{"city": "Lima", "unit": "fahrenheit"}]),
        ("I'm flying to New York tomorrow. What should I expect weather-wise?", [{"city": "New York"}]),
        ("Hi, I'm Ada. What's the weather in Rio de Janeiro?", [{"city": "Rio de Janeiro"}]),
        ('use get_weather with city="Lima"', [{"city": "Lima"}]),
        ('get_weather {"city": "Oslo", "unit": "celsius"}', [{"city": "Oslo", "unit": "celsius"}]),
        ("What's Zürich's weather?", [{"city": "Zürich"}]),
    ],
)
def test_weather_in_many_words(prompt, expected):
    assert calls(prompt) == [("get_weather", call) for call in expected]


@pytest.mark.parametrize(
    ("prompt", "name", "expected"),
    [
        ("Roll two six-sided dice.", "roll_dice", [{"count": 2, "sides": 6}]),
        ("Roll 3 dice with 20 sides", "roll_dice", [{"count": 3, "sides": 20}]),
        ("Throw five dice, each with 8 sides", "roll_dice", [{"count": 5, "sides": 8}]),
        ("roll 2d6", "roll_dice", [{"count": 2, "sides": 6}]),
        ("Calculate 17 * 23 + 4", "calculate", [{"expression": "17 * 23 + 4"}]),
        ("What is (3+4)*5?", "calculate", [{"expression": "(3+4)*5"}]),
        ("factorial of 5, 6 and 7", "factorial", [{"n": 5}, {"n": 6}, {"n": 7}]),
        ("What's the factorial of twenty-five?", "factorial", [{"n": 25}]),
        ("Convert 100 dollars to euros", "convert_currency", [{"amount": 100, "source": "USD", "target": "EUR"}]),
        (
            "How much is 1,250.50 USD in JPY?",
            "convert_currency",
            [{"amount": 1250.5, "source": "USD", "target": "JPY"}],
        ),
        ("How do I get from London to Paris?", "get_route", [{"origin": "London", "destination": "Paris"}]),
        ("Search the docs for retry behaviour", "search_docs", [{"query": "retry behaviour"}]),
        ("What time is it in Tokyo?", "get_time", [{"city": "Tokyo"}]),
        ("Translate 'good morning' to Spanish.", "translate", [{"text": "good morning", "language": "Spanish"}]),
        ("the mean of 3, 5.5 and -9", "mean", [{"numbers": [3, 5.5, -9]}]),
        ("Add milk, bread and eggs to the shopping list", "add_to_list", [{"items": ["milk", "bread", "eggs"]}]),
        (
            "plot a sine with frequency 2.5 in red without grid",
            "plot_sine",
            [{"frequency": 2.5, "grid": False, "color": "red"}],
        ),
        ("plot a sine, frequency 2, with a grid", "plot_sine", [{"frequency": 2, "grid": True}]),
        ("Add 7 and 35", "add", [{"a": 7, "b": 35}]),
        (
            "Book a flight from Berlin to Rio de Janeiro on 3 May 2026 for 2 passengers",
            "book_flight",
            [{"origin": "Berlin", "destination": "Rio de Janeiro", "date": "2026-05-03", "passengers": 2}],
        ),
        ("Greet Ada and Grace", "greet", [{"name": "Ada"}, {"name": "Grace"}]),
        ("stock price of AAPL and MSFT", "stock_price", [{"ticker": "AAPL"}, {"ticker": "MSFT"}]),
    ],
)
def test_arguments_of_every_type(prompt, name, expected):
    assert calls(prompt) == [(name, call) for call in expected]


@pytest.mark.parametrize(
    "prompt",
    [
        "Hello, who are you?",
        "Write a poem about love.",
        "What is the capital of France?",
        "Which city is the capital of Spain?",
        "Write a haiku about the sea",
        "Give me a list of three fruits",
        "Explain how Python generators work",
        "Say 'what is the weather in Paris'",
    ],
)
def test_prompts_that_need_no_tool(prompt):
    assert plans(prompt) == []


def test_two_tools_for_one_prompt():
    assert calls("What's the weather and the time in Rome?") == [
        ("get_weather", {"city": "Rome"}),
        ("get_time", {"city": "Rome"}),
    ]


def test_what_is_missing_is_named():
    [(name, filled)] = plans("What is the weather like?")
    assert (name, filled.missing) == ("get_weather", ["city"])
    [(name, filled)] = plans('Send an email to ada@example.org with subject "Hi"')
    assert (filled.calls, filled.missing) == ([{"to": "ada@example.org", "subject": "Hi"}], ["body"])


def test_tool_choice_is_obeyed():
    assert plans("What's the weather in Rome?", tool_choice="none") == []
    [(name, filled)] = plans("Hello there", tool_choice="required")
    assert filled.missing == []
    [(name, filled)] = plans("Hello there", tool_choice=("greet",))
    assert name == "greet"
    assert calls("the weather in Rome", tool_choice=("get_time",)) == [("get_time", {"city": "Rome"})]


def test_a_tool_without_parameters_is_called_plainly():
    assert calls("please ping the server", [Tool("ping", "Ping the server.")]) == [("ping", {})]


def test_schemas_as_pydantic_makes_them():
    schema = {
        "$defs": {"Unit": {"enum": ["metric", "imperial"], "type": "string"}},
        "properties": {
            "city": {"type": "string"},
            "unit": {"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}], "default": None},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "type": "object",
    }
    forecast = Tool("forecast", "Weather forecast.", schema)
    assert calls("forecast for Rome", [forecast]) == [("forecast", {"city": "Rome"})]
    assert calls("imperial forecast for Rome for 3 days", [forecast]) == [
        ("forecast", {"city": "Rome", "unit": "imperial", "days": 3})
    ]


def test_nested_objects_are_filled():
    place = {"type": "object", "properties": {"city": S}, "required": ["city"]}
    nested = tool("weather_at", "The weather at a place.", place=place)
    assert calls("the weather in Rome", [nested]) == [("weather_at", {"place": {"city": "Rome"}})]


def test_required_parameters_with_a_default_or_choices_are_not_asked_for():
    made = tool("forecast", "Weather forecast.", city=S, unit={"enum": ["c", "f"]}, days={**INT, "default": 3})
    assert calls("forecast for Rome", [made]) == [("forecast", {"city": "Rome", "unit": "c", "days": 3})]


def test_bounds_are_kept():
    assert (
        fill("Roll 99 dice with 6 sides", dice).calls == [{"sides": 6}] or "count" in fill("Roll 99 dice", dice).missing
    )


def test_no_more_calls_than_sensible():
    prompt = "factorial of " + ", ".join(map(str, range(1, 40)))
    assert len(calls(prompt)) == 8


@pytest.mark.parametrize("prompt", ["And in Rome?", "what about Rome", "Now Rome please", "and Rome?"])
def test_a_follow_up_repeats_the_last_call_with_a_change(prompt):
    turns = (
        Turn("user", (Text("the weather in Oslo in celsius"),)),
        Turn("assistant", (Call("get_weather", {"city": "Oslo", "unit": "celsius"}, "c1"),)),
        Turn("user", (Result("c1", "3 degrees"),)),
        Turn("assistant", (Text("3 degrees"),)),
        Turn("user", (Text(prompt),)),
    )
    made = plan_calls(Ask("demo", turns, tools=(weather,)), prompt)
    assert [plan.filled.calls for plan in made] == [[{"city": "Rome", "unit": "celsius"}]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.5 and -3", [1234.5, -3]),
        ("5-3", [5, 3]),
        ("twenty-one, two hundred, three thousand", [21, 200, 3000]),
        ("a dozen", [12]),
        ("1e3 or 2.50", [1000, 2.5]),
        ("on 2026-05-03 at 10:30", []),
        ('"42" and `7`', []),
        ("which one?", []),
        ("version 1.2.3", []),
    ],
)
def test_numbers_in_digits_and_words(text, expected):
    assert [number.value for number in numbers(text)] == expected


def test_names_know_their_preposition():
    found = names("from London to Paris, Rome and Oslo")
    assert [(name.text, name.lead) for name in found] == [
        ("London", "from"),
        ("Paris", "to"),
        ("Rome", "to"),
        ("Oslo", "to"),
    ]


@pytest.mark.parametrize(
    ("words", "stemmed"),
    [
        (("city", "cities"), 1),
        (("convert", "converting", "converted"), 1),
        (("Zürich", "zurich"), 1),
        (("sea", "see"), 2),
    ],
)
def test_stems(words, stemmed):
    assert len({stem(word) for word in words}) == stemmed


def test_hostile_schemas_do_no_harm():
    loop = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]}
    odd = {"type": "object", "properties": {"x": True, "y": None, "z": {"type": ["null", "integer"]}}, "required": 7}
    for schema in (loop, odd, {}, {"properties": []}, {"type": "object", "properties": {"a": {"enum": "x"}}}):
        made = Tool("thing", "Do the thing.", schema)
        assert pick("do the thing with 3", [made]) == [made]
        assert isinstance(fill("do the thing with 3", made).calls[0], dict)
