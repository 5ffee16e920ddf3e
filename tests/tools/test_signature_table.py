"""Signatures and docstrings against the schemas that models get for them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field, conint
from typing_extensions import Doc

from mmsp_nb.tools import Tool, ToolDefinitionError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mood(enum.StrEnum):
    GOOD = "good"


class City(BaseModel):
    name: str
    people: int = 0


class Trip(BaseModel):
    """A journey."""

    start: City
    stops: list[City] = Field(default=[], description="in between", max_length=3)


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Row(TypedDict):
    key: str
    note: NotRequired[str]


class Table(TypedDict, total=False):
    rows: list[Row]
    best: Row | None


class Pair(NamedTuple):
    a: int
    b: str


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Store:
    def find(self, key: str) -> str:
        """Finds."""
        return key

    @classmethod
    def make(cls, size: int) -> Store:
        """Makes."""
        return cls()

    @staticmethod
    def check(name: str) -> bool:
        """Checks."""
        return True

    def __call__(self, word: str) -> str:
        """Says."""
        return word


# one function a row ------------------------------------------------------------------------------------------------


def nothing(): ...
def text(a: str): ...
def whole(a: int): ...
def number(a: float): ...
def truth(a: bool): ...
def data(a: bytes): ...
def anything(a: Any): ...
def untyped(a): ...
def untyped_default(a=3): ...
def untyped_text(a="x"): ...
def untyped_list(a=()): ...
def two(a: str, b: int = 3): ...
def keyword_only(*, a: str, b: bool = True): ...
def positional_only(a: int, b: int = 2, /): ...
def optional(a: Optional[int] = None): ...  # noqa: UP045
def optional_required(a: int | None): ...
def union(a: int | str): ...
def old_union(a: Union[int, str] = 1): ...  # noqa: UP007
def literal(a: Literal["x", "y"]): ...
def literal_one(a: Literal["x"]): ...
def literal_mixed(a: Literal[1, "x"]): ...
def enumeration(a: Colour): ...
def int_enumeration(a: Level): ...
def enumeration_default(a: Colour = Colour.RED): ...
def str_enumeration(a: Mood): ...
def listing(a: list[str]): ...
def plain_list(a: list): ...
def sequence(a: Sequence[int]): ...
def tuple_open(a: tuple[int, ...]): ...
def tuple_fixed(a: tuple[int, str]): ...
def setting(a: set[str]): ...
def mapping(a: dict[str, int]): ...
def abstract_mapping(a: Mapping[str, str]): ...
def plain_dict(a: dict): ...
def nested(a: dict[str, list[int]]): ...
def day(a: datetime.date): ...
def moment(a: datetime.datetime): ...
def clock(a: datetime.time): ...
def span(a: datetime.timedelta): ...
def path(a: Path): ...
def path_default(a: Path = Path("x.csv")): ...
def identity(a: uuid.UUID): ...
def money(a: decimal.Decimal): ...
def annotated_text(a: Annotated[str, "the name"]): ...
def annotated_doc(a: Annotated[str, Doc("the name")]): ...
def annotated_field(a: Annotated[int, Field(ge=1, le=9, description="how many")] = 2): ...
def field_default(a: int = Field(5, description="how many")): ...
def constrained(a: conint(gt=0)): ...  # type: ignore[valid-type]
def model(a: City): ...
def nested_model(a: Trip): ...
def closed_model(a: Closed): ...
def recursive(a: Tree): ...
def model_or_none(a: City | None = None): ...
def models(a: list[City], b: City): ...
def dataclass(a: Point): ...
def typed_dict(a: Row): ...
def typed_dicts(a: list[Table]): ...
def named_tuple(a: Pair): ...
def discriminated(a: Annotated[Cat | Dog, Field(discriminator="kind")]): ...
def hidden(a: int, _cache: dict[str, int] = {}): ...  # noqa: B006
def object_default(a: int, connection=object()): ...  # noqa: B008
def forward(a: Later): ...


class Later(BaseModel):
    z: int


def google(place: str, days: int = 1):
    """Tells the weather.

    Args:
        place: where
        days (int): how far
            ahead

    Returns:
        a sentence
    """


def numpy(place: str, days=1):
    """Tells the weather.

    Parameters
    ----------
    place : str
        where
    days : int, optional
        how far
    """


def sphinx(place: str, days: int = 1):
    """Tells the weather.

    :param place: where
    :param days: how far
    :type days: int
    """


def epydoc(place: str):
    """Tells the weather.

    @param place: where
    """


def documented_types(place, count):
    """Tells.

    Args:
        place (str): where
        count (int): how many
    """


def annotation_wins(place: Annotated[str, "the annotation"]):
    """Tells.

    Args:
        place: the docstring
    """


S, I, N, B = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}  # noqa: E741
CITY = {"type": "object", "properties": {"name": S, "people": {**I, "default": 0}}, "required": ["name"]}
ROW = {"type": "object", "properties": {"key": S, "note": S}, "required": ["key"]}


def a(schema: dict[str, Any], required: bool = True) -> dict[str, Any]:
    """The schema of a function with the one parameter ``a``."""
    made: dict[str, Any] = {"type": "object", "properties": {"a": schema}}
    return {**made, "required": ["a"]} if required else made


def props(required: list[str], **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": required} if required else made


TABLE: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (nothing, {"type": "object", "properties": {}}),
    (text, a(S)),
    (whole, a(I)),
    (number, a(N)),
    (truth, a(B)),
    (data, a({"type": "string", "format": "binary"})),
    (anything, a({})),
    (untyped, a({})),
    (untyped_default, a({**N, "default": 3}, False)),
    (untyped_text, a({**S, "default": "x"}, False)),
    (untyped_list, a({"type": "array", "items": {}, "default": []}, False)),
    (two, props(["a"], a=S, b={**I, "default": 3})),
    (keyword_only, props(["a"], a=S, b={**B, "default": True})),
    (positional_only, props(["a"], a=I, b={**I, "default": 2})),
    (optional, a(I, False)),
    (optional_required, a({"anyOf": [I, {"type": "null"}]})),
    (union, a({"anyOf": [I, S]})),
    (old_union, a({"anyOf": [I, S], "default": 1}, False)),
    (literal, a({**S, "enum": ["x", "y"]})),
    (literal_one, a({**S, "const": "x"})),
    (literal_mixed, a({"enum": [1, "x"]})),
    (enumeration, a({**S, "enum": ["red", "blue"]})),
    (int_enumeration, a({**I, "enum": [1, 2]})),
    (enumeration_default, a({**S, "enum": ["red", "blue"], "default": "red"}, False)),
    (str_enumeration, a({**S, "enum": ["good"]})),
    (listing, a({"type": "array", "items": S})),
    (plain_list, a({"type": "array", "items": {}})),
    (sequence, a({"type": "array", "items": I})),
    (tuple_open, a({"type": "array", "items": I})),
    (tuple_fixed, a({"type": "array", "prefixItems": [I, S], "minItems": 2, "maxItems": 2})),
    (setting, a({"type": "array", "items": S, "uniqueItems": True})),
    (mapping, a({"type": "object", "additionalProperties": I})),
    (abstract_mapping, a({"type": "object", "additionalProperties": S})),
    (plain_dict, a({"type": "object", "additionalProperties": True})),
    (nested, a({"type": "object", "additionalProperties": {"type": "array", "items": I}})),
    (day, a({**S, "format": "date"})),
    (moment, a({**S, "format": "date-time"})),
    (clock, a({**S, "format": "time"})),
    (span, a({**S, "format": "duration"})),
    (path, a({**S, "format": "path"})),
    (path_default, a({**S, "format": "path", "default": "x.csv"}, False)),
    (identity, a({**S, "format": "uuid"})),
    (annotated_text, a({**S, "description": "the name"})),
    (annotated_doc, a({**S, "description": "the name"})),
    (annotated_field, a({**I, "minimum": 1, "maximum": 9, "description": "how many", "default": 2}, False)),
    (field_default, a({**I, "description": "how many", "default": 5}, False)),
    (constrained, a({**I, "exclusiveMinimum": 0})),
    (model, a(CITY)),
    (closed_model, a({"type": "object", "properties": {"a": I}, "required": ["a"], "additionalProperties": False})),
    (model_or_none, a(CITY, False)),
    (models, props(["a", "b"], a={"type": "array", "items": CITY}, b=CITY)),
    (dataclass, a({"type": "object", "properties": {"x": N, "y": {**N, "default": 0.0}}, "required": ["x"]})),
    (typed_dict, a(ROW)),
    (typed_dicts, a({"type": "array", "items": {"type": "object", "properties": {
        "rows": {"type": "array", "items": ROW}, "best": {"anyOf": [ROW, {"type": "null"}]}}}})),
    (named_tuple, a({"type": "array", "prefixItems": [I, S], "minItems": 2, "maxItems": 2})),
    (hidden, a(I)),
    (object_default, a(I)),
    (forward, a({"type": "object", "properties": {"z": I}, "required": ["z"]})),
    (google, props(["place"], place={**S, "description": "where"},
                   days={**I, "description": "how far ahead", "default": 1})),
    (numpy, props(["place"], place={**S, "description": "where"},
                  days={**N, "description": "how far", "default": 1})),
    (sphinx, props(["place"], place={**S, "description": "where"},
                   days={**I, "description": "how far", "default": 1})),
    (epydoc, props(["place"], place={**S, "description": "where"})),
    (documented_types, props(["place", "count"], place={**S, "description": "where"},
                             count={**I, "description": "how many"})),
    (annotation_wins, props(["place"], place={**S, "description": "the annotation"})),
    (Store().find, props(["key"], key=S)),
    (Store.make, props(["size"], size=I)),
    (Store.check, props(["name"], name=S)),
    (Store(), props(["word"], word=S)),
    (functools.partial(two, b=4), props(["a"], a=S)),
    (functools.partial(two, "x"), props([], b={**I, "default": 3})),
    (traced(two), props(["a"], a=S, b={**I, "default": 3})),
]  # fmt: skip


def _label(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


@pytest.mark.parametrize(("function", "expected"), TABLE, ids=[_label(row[0]) for row in TABLE])
def test_the_schema_of_a_signature(function: Callable[..., Any], expected: dict[str, Any]) -> None:
    schema = Tool.of(function).parameters
    assert schema == expected
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_table_has_at_least_sixty_rows() -> None:
    assert len(TABLE) >= 60


def test_a_nested_model_is_written_out() -> None:
    schema = Tool.of(nested_model).parameters
    inner = schema["properties"]["a"]
    assert inner["description"] == "A journey." and inner["properties"]["start"] == CITY
    assert inner["properties"]["stops"]["description"] == "in between" and "$defs" not in schema


def test_a_model_that_contains_itself_keeps_its_definition() -> None:
    schema = Tool.of(recursive).parameters
    assert schema["properties"]["a"] == {"$ref": "#/$defs/Tree"} and list(schema["$defs"]) == ["Tree"]


def test_choices_that_differ_by_a_field_are_written_out() -> None:
    schema = Tool.of(discriminated).parameters["properties"]["a"]
    kinds = [each["properties"]["kind"]["const"] for each in schema["oneOf"]]
    assert kinds == ["cat", "dog"] and "$ref" not in str(schema)


def test_money_may_be_a_number_or_a_string() -> None:
    choices = Tool.of(money).parameters["properties"]["a"]["anyOf"]
    assert [each["type"] for each in choices] == ["number", "string"]


def many(*values: int): ...
def named(**values: int): ...
def lost(a: Nowhere): ...  # type: ignore[name-defined]  # noqa: F821
def file(handle: Store): ...
def callback(done: Callable[[int], int]): ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (many, r"tool 'many' takes \*values, which a model cannot be told how to fill"),
        (named, r"tool 'named' takes \*\*values"),
        (lost, "tool 'lost': the annotation 'Nowhere' of parameter 'a' cannot be resolved"),
        (file, "tool 'file': parameter 'handle' is of type Store, which a model cannot write"),
        (callback, "tool 'callback': parameter 'done' is of type"),
        (lambda a: a, "a lambda has no name"),
        (3, "a tool is a function, not int"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_in_one_line(function: Any, reason: str) -> None:
    with pytest.raises(ToolDefinitionError, match=reason) as caught:
        Tool.of(function)
    assert "\n" not in str(caught.value)
