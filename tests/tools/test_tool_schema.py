from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypedDict

from mmsp_nb.tools import Tool, ToolDefinitionError, inline_refs


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    """Somewhere."""

    city: str = Field(description="its name")
    title: str = "none"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    deep: bool


class Node(BaseModel):
    value: int
    children: list[Node] = []


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return Tool.of(function).parameters["properties"]


def test_name_description_and_parameters_come_from_the_function():
    def get_weather(location: str, days: int = 3) -> str:
        """Tells the weather.

        Only on land.

        Args:
            location: the
                city's name
            days (int): how far ahead

        Returns:
            one line a day
        """
        return ""

    assert Tool.of(get_weather).schema() == {
        "name": "get_weather",
        "description": "Tells the weather.\n\nOnly on land.\n\nReturns: one line a day",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "the city's name"},
                "days": {"type": "integer", "description": "how far ahead", "default": 3},
            },
            "required": ["location"],
        },
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Does it.\n\nArgs:\n    x: the input",
        "Does it.\n\nParameters\n----------\nx : int\n    the input\n",
        "Does it.\n\n:param x: the input\n",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_docstring_styles(docstring):
    def f(x: int) -> None: ...

    f.__doc__ = docstring
    tool = Tool.of(f)
    assert tool.description == "Does it."
    assert tool.parameters["properties"]["x"] == {"type": "integer", "description": "the input"}


def test_a_function_without_docstring_is_described_by_its_name():
    def list_open_orders() -> None: ...

    assert Tool.of(list_open_orders).schema() == {
        "name": "list_open_orders",
        "description": "List open orders.",
        "parameters": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (set[str], {"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Unit, {"type": "string", "enum": ["C", "F"]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Path, {"type": "string", "format": "path"}),
        (Options, {"type": "object", "properties": {"deep": {"type": "boolean"}}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            },
        ),
        (
            Place,
            {
                "type": "object",
                "description": "Somewhere.",
                "properties": {
                    "city": {"type": "string", "description": "its name"},
                    "title": {"type": "string", "default": "none"},
                },
                "required": ["city"],
            },
        ),
    ],
    ids=str,
)
def test_types(annotation, schema):
    def f(x): ...

    f.__annotations__ = {"x": annotation}
    assert properties(f)["x"] == schema


def test_an_optional_parameter_is_simply_not_required():
    def f(a: int | None = None, b: Optional[list[str]] = None, c: int | str | None = None): ...  # noqa: UP045

    tool = Tool.of(f)
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "array", "items": {"type": "string"}},
            "c": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        },
    }


def test_null_stays_where_it_means_something_else_than_leaving_out():
    def f(a: int | None): ...

    assert properties(f)["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_annotated_metadata_and_field_defaults():
    def f(
        a: Annotated[int, Field(ge=1, description="from Field")],
        b: Annotated[str, "a plain string"] = "x",
        c: Annotated[str, Doc("from Doc")] = "",
        d: int = Field(3, description="as the default"),
        e: list[int] = Field(default_factory=list),  # noqa: B008
    ):
        """F.

        Args:
            a: hidden by Field
        """

    assert Tool.of(f).parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "from Field"},
            "b": {"type": "string", "description": "a plain string", "default": "x"},
            "c": {"type": "string", "description": "from Doc", "default": ""},
            "d": {"type": "integer", "description": "as the default", "default": 3},
            "e": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["a"],
    }


def test_parameters_without_annotation_take_their_type_from_default_or_docstring():
    def f(a, b, n=1, ratio=0.5, flag=True, word="x", many=(), extra=None):
        """F.

        Args:
            b (float): b
        """

    schema = properties(f)
    assert schema["a"] == {}
    assert schema["b"] == {"type": "number", "description": "b"}
    assert schema["n"] == {"type": "number", "default": 1}
    assert schema["ratio"] == {"type": "number", "default": 0.5}
    assert schema["flag"] == {"type": "boolean", "default": True}
    assert schema["word"] == {"type": "string", "default": "x"}
    assert schema["many"]["type"] == "array"
    assert schema["extra"] == {}


def test_parameters_that_are_not_for_the_model_keep_their_default():
    def f(q: str, connection=object(), _retries: int = 3): ...  # noqa: B008

    assert list(properties(f)) == ["q"]


def test_defaults_are_written_as_json():
    def f(u: Unit = Unit.CELSIUS, d: datetime.date = datetime.date(2026, 1, 2), p: Point = Point(1, 2)): ...  # noqa: B008

    assert [each["default"] for each in properties(f).values()] == ["C", "2026-01-02", {"x": 1, "y": 2}]


def test_functions_of_a_notebook_cell_resolve_their_names_in_its_namespace():
    cell = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class City:
    name: str

def population(of: City, year: "int" = 2026) -> Undefined:
    "Counts."
"""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<cell>", "exec"), namespace)
    schema = Tool.of(namespace["population"]).parameters
    assert schema["properties"]["of"]["properties"] == {"name": {"type": "string"}}
    assert schema["properties"]["year"]["type"] == "integer"


def test_types_local_to_the_calling_function_are_found():
    class Local(BaseModel):
        a: int

    def f(x: Local, y: list[Local]): ...

    assert properties(f)["x"]["properties"] == {"a": {"type": "integer"}}


def test_types_in_the_closure_are_found():
    def make():
        kind = Literal["in the closure"]

        def f(x: kind):  # type: ignore[valid-type]
            return kind

        return f

    assert properties(make())["x"]["const"] == "in the closure"


class Thermometer:
    """Measures."""

    def read(self, room: str) -> float:
        """Reads one room.

        Args:
            room: which
        """
        return 20.5

    @classmethod
    def make(cls, serial: int): ...

    @staticmethod
    def convert(degrees: float): ...

    async def __call__(self, room: str):
        return room


def test_a_method_without_its_object_is_refused_in_one_line():
    with pytest.raises(ToolDefinitionError) as caught:
        Tool.of(Thermometer.read)
    assert str(caught.value) == (
        "tool 'read' is a method of Thermometer without an object, which its 'self' would be: make one and pass "
        "its method, Thermometer(...).read"
    )
    assert Tool.of(Thermometer().read).parameters["required"] == ["room"]
    assert Tool.of(Thermometer.make).parameters["required"] == ["serial"]
    assert Tool.of(Thermometer.convert).parameters["required"] == ["degrees"]
    assert Tool.of(functools.partial(Thermometer.read, Thermometer())).parameters["required"] == ["room"]

    def takes(self: str): ...  # a function that merely calls its parameter so

    assert Tool.of(takes).parameters["required"] == ["self"]


def test_methods_partials_decorated_functions_classes_and_callable_objects():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @logged
    def find(query: str, limit: int = 5):
        """Finds."""

    def schema(function):
        tool = Tool.of(function)
        return tool.name, tool.description, list(tool.parameters["properties"])

    assert schema(Thermometer().read) == ("read", "Reads one room.", ["room"])
    assert schema(Thermometer.make) == ("make", "Make.", ["serial"])
    assert schema(Thermometer.convert) == ("convert", "Convert.", ["degrees"])
    assert schema(find) == ("find", "Finds.", ["query", "limit"])
    assert schema(functools.partial(find, limit=3)) == ("find", "Finds.", ["query"])
    assert schema(functools.partial(find, "x")) == ("find", "Finds.", ["limit"])
    assert schema(Thermometer()) == ("Thermometer", "Measures.", ["room"])
    assert schema(Place)[0::2] == ("Place", ["city", "title"])


def test_what_runs_asynchronously_is_seen():
    async def coroutine(): ...

    async def generator() -> AsyncIterator[int]:
        yield 1

    def plain(): ...

    functions = [coroutine, generator, functools.partial(coroutine), Thermometer(), plain, Thermometer().read]
    assert [Tool.of(f).is_async for f in functions] == [True, True, True, True, False, False]


def test_a_synchronous_function_with_a_timeout_runs_in_a_thread():
    def plain(): ...

    async def coroutine(): ...

    assert Tool.of(plain, timeout=1).thread is True
    assert Tool.of(coroutine, timeout=1).thread is False
    assert Tool.of(plain).on_loop is False


def test_names_are_made_legal():
    def namer(name):
        def f(): ...

        f.__name__ = name
        return Tool.of(f).name

    assert namer("température") == "temperature"
    assert namer("a" * 70) != namer("a" * 71)
    chinese = namer("查询天气")
    assert chinese != namer("更新天气")
    for name in (chinese, namer("查询_weather"), namer("x.y z"), namer("a" * 70)):
        assert 1 <= len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda: None, "a lambda has no name"),
        (3, "not int"),
        (max, "no signature"),
    ],
)
def test_refusals(function, part):
    with pytest.raises(ToolDefinitionError) as caught:
        Tool.of(function)
    assert part in str(caught.value)


def test_refusals_name_the_parameter_and_what_to_do():
    class Opaque: ...

    def stars(*args): ...

    def wrapper(*args, **kwargs): ...

    def keywords(a: int, **rest): ...

    def opaque(x: Opaque): ...

    def called(x: Callable[[], int]): ...

    def unresolved(x: Undefined): ...  # noqa: F821

    def prose(x: "the name of a city"): ...  # noqa: F722

    expected = {
        stars: "takes *args",
        wrapper: "functools.wraps",
        keywords: "takes **rest",
        opaque: "parameter 'x' is of type Opaque",
        called: "parameter 'x' is of type Callable",
        unresolved: "name 'Undefined' is not defined",
        prose: "'the name of a city'",
    }
    for function, part in expected.items():
        with pytest.raises(ToolDefinitionError) as caught:
            Tool.of(function)
        message = str(caught.value)
        assert part in message and function.__name__ in message and "\n" not in message
        assert caught.value.tool == function.__name__
        assert isinstance(caught.value, TypeError)


def test_bad_names_and_timeouts_are_refused():
    def f(): ...

    with pytest.raises(ToolDefinitionError, match="instance 'my_tool'"):
        Tool.of(f, name="my tool")
    for timeout in (0, -1, float("nan"), "1"):
        with pytest.raises(ToolDefinitionError, match="timeout"):
            Tool.of(f, timeout=timeout)  # type: ignore[arg-type]


def test_a_long_docstring_is_cut():
    def f(): ...

    f.__doc__ = "word " * 1000
    assert len(Tool.of(f).description) <= 1024


def test_definitions_that_refer_to_themselves_stay_and_can_be_inlined():
    def f(tree: Node, also: Node | None = None): ...

    parameters = Tool.of(f).parameters
    assert parameters["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert list(parameters["$defs"]) == ["Node"]
    inlined = inline_refs(parameters)
    assert "$ref" not in json.dumps(inlined) and "$defs" not in inlined
    assert inlined["properties"]["tree"]["properties"]["children"]["items"] == {}
    assert "$defs" in parameters, "the input is not modified"


def test_large_definitions_used_twice_stay_shared_and_small_ones_are_written_out():
    large = Literal[tuple(f"a rather long choice number {i}" for i in range(20))]  # type: ignore[valid-type]

    class Large(BaseModel):
        choice: large

    class Small(BaseModel):
        a: int

    def f(a: Large, b: Large, c: Small, d: Small): ...

    parameters = Tool.of(f).parameters
    assert list(parameters["$defs"]) == ["Large"]
    assert parameters["properties"]["c"]["properties"] == parameters["properties"]["d"]["properties"]
    assert "$ref" not in json.dumps(inline_refs(parameters))


def test_two_types_of_one_name_are_kept_apart():
    first = type("Item", (BaseModel,), {"__annotations__": {"a": int}, "__module__": "one"})
    second = type("Item", (BaseModel,), {"__annotations__": {"b": str}, "__module__": "two"})

    def f(x, y): ...

    f.__annotations__ = {"x": first, "y": second}
    schema = properties(f)
    assert list(schema["x"]["properties"]) == ["a"] and list(schema["y"]["properties"]) == ["b"]


def test_a_property_called_title_is_no_title():
    assert "title" in Tool.of(Place).parameters["properties"]


def test_source_text_is_never_read(monkeypatch):
    import inspect

    def refuse(*args):
        raise AssertionError("source was read")

    for name in ("getsource", "getsourcelines", "findsource"):
        monkeypatch.setattr(inspect, name, refuse)

    def f(x: int):
        """F.

        Args:
            x: x
        """

    assert Tool.of(f).parameters["properties"]["x"]["description"] == "x"
