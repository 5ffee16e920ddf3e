"""What is sent as a schema is accepted by a checker that is as strict as the strictest vendor of each dialect."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from mmsp_nb.providers.answering import takes_schema
from mmsp_nb.providers.vendors import VENDORS
from mmsp_nb.tools import Tool
from mmsp_nb.tools.portable import fits, portable, without_nulls
from mmsp_nb.typed import TypedAnswer

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from test_signature_table import TABLE, discriminated, money, nested_model, recursive

MESSAGES: Any = [{"role": "user", "content_items": [{"type": "text.done", "text": "?"}]}]
CHATTY = [name for name, vendor in VENDORS.items() if vendor.dialect != "embeddings"]


class Kind(enum.Enum):
    A = "a"
    B = "b"


class Part(BaseModel):
    name: str = Field(max_length=9, pattern="^[a-z]+$")
    size: int = Field(3, ge=0, le=9, multiple_of=3)


class Node(BaseModel):
    children: list[Node] = []


class Whole(BaseModel):
    """All at once."""

    kind: Kind
    parts: list[Part] = Field(min_length=1, max_length=5, description="the parts")
    best: Part | None = None
    made: datetime.datetime
    tags: set[str] = set()
    one: Literal["x"] = "x"
    either: int | str = 1


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


PORTABLE = [Whole, Part, Point, list[Whole], Kind, Literal["a", "b"], int, Part | Point, list[int | None]]
NOT_PORTABLE = [Node, dict[str, int], tuple[int, str], list[Any]]


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key in ("properties", "$defs"):
                for each in value.values():
                    yield from subschemas(each)
            elif key not in ("enum", "default", "const", "required"):
                yield from subschemas(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from subschemas(each)


def wished(type_: Any) -> dict[str, Any]:
    schema = portable(TypedAnswer(type_)._schema)
    assert schema is not None
    return schema


@pytest.mark.parametrize("type_", PORTABLE, ids=str)
def test_a_portable_schema_is_in_the_strict_subset(type_: Any) -> None:
    schema = wished(type_)
    assert fits(schema) and schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(schema)
    for each in subschemas(schema):
        assert not each.keys() & {"$ref", "$defs", "oneOf", "allOf", "default", "const", "title", "minimum", "pattern"}
        if each.get("type") == "object":
            assert each["additionalProperties"] is False and each["required"] == list(each["properties"])


@pytest.mark.parametrize("type_", NOT_PORTABLE, ids=str)
def test_what_the_subset_cannot_say_goes_by_a_tool(type_: Any) -> None:
    assert portable(TypedAnswer(type_)._schema) is None


def test_bounds_that_cannot_be_sent_are_said() -> None:
    part = wished(Part)["properties"]
    assert part["name"]["description"] == '(maxLength: 9, pattern: "^[a-z]+$")'
    assert (
        part["size"]["anyOf"] == [{"type": "integer"}, {"type": "null"}] and "minimum: 0" in part["size"]["description"]
    )


def test_a_null_that_stands_for_nothing_is_taken_out_and_no_other() -> None:
    schema = TypeAdapter(Whole).json_schema()
    value = {"kind": "a", "parts": [{"name": "x", "size": None}], "best": None, "tags": None, "made": None}
    assert without_nulls(value, schema) == {"kind": "a", "parts": [{"name": "x"}], "best": None, "made": None}


def test_an_object_without_named_properties_is_left_as_it_is() -> None:
    schema = TypeAdapter(dict[str, dict[str, int | None]]).json_schema()
    assert without_nulls({}, schema) == {}
    assert without_nulls({"a": {}, "b": {"c": None}}, schema) == {"a": {}, "b": {"c": None}}


@pytest.mark.parametrize("client_type", CHATTY)
def test_each_wire_carries_the_strict_schema_where_its_vendor_looks_for_it(client_type: str) -> None:
    vendor, schema = VENDORS[client_type], wished(Whole)
    wish = {"type": "json_schema", "json_schema": {"name": "Whole", "schema": schema, "strict": True}}
    if not takes_schema(vendor, "some-model", wish):
        assert client_type in ("deepseek-official", "zai-official")
        return
    body = build(client_type, {"response_format": wish})
    found = {
        "chat": lambda: body["response_format"]["json_schema"],
        "responses": lambda: body["text"]["format"],
        "messages": lambda: body["output_config"]["format"],
        "interactions": lambda: body["response_format"][0],
        "generate_content": lambda: {"schema": body["generationConfig"]["responseJsonSchema"]},
        "mmsp": lambda: body["config"]["response_format"]["json_schema"],
    }[vendor.dialect]()
    assert found["schema"] == schema
    if vendor.dialect in ("chat", "responses"):
        assert found["strict"] is True and found["name"] == "Whole"


def build(client_type: str, config: dict[str, Any]) -> dict[str, Any]:
    vendor = VENDORS[client_type]
    dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
    body = dialect.build(vendor, "some-model", MESSAGES, config)[0].body
    assert isinstance(body, dict)
    return body


FUNCTIONS = [*(row[0] for row in TABLE), nested_model, recursive, discriminated, money]

# What Google's own schema type knows.
GOOGLE = {
    "type", "format", "title", "description", "nullable", "enum", "max_items", "min_items", "properties", "required",
    "min_properties", "max_properties", "min_length", "max_length", "pattern", "example", "any_of", "default", "items",
    "minimum", "maximum", "additional_properties",
}  # fmt: skip


def google_fits(schema: Any) -> None:
    assert isinstance(schema, dict) and schema.keys() <= GOOGLE, schema
    if "any_of" not in schema:
        assert schema["type"] in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"), schema
    for each in [*schema.get("properties", {}).values(), *schema.get("any_of", [])]:
        google_fits(each)
    if schema.get("type") == "ARRAY":
        google_fits(schema["items"])


def json_schema_fits(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object" and isinstance(schema["properties"], dict)
    assert set(schema.get("required", [])) <= schema["properties"].keys()
    for each in subschemas(schema):
        if "$ref" in each:
            assert each["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        assert "title" not in each or isinstance(each["title"], dict)


@pytest.mark.parametrize("client_type", CHATTY)
def test_each_wire_sends_tools_that_its_vendor_takes(client_type: str) -> None:
    tools = {f"tool_{i}": {**Tool.of(f).schema(), "name": f"tool_{i}"} for i, f in enumerate(FUNCTIONS)}
    body = build(client_type, {"tools": list(tools.values())})
    sent = body["config"]["tools"] if VENDORS[client_type].dialect == "mmsp" else body["tools"]
    if VENDORS[client_type].dialect == "generate_content":
        (group,) = sent
        sent = group["functionDeclarations"]
    assert len(sent) == len(FUNCTIONS)
    for entry in sent:
        entry = entry.get("function") or entry
        assert entry["name"] in tools and entry["description"]
        if VENDORS[client_type].dialect == "generate_content":
            if entry.get("parameters") is not None:
                google_fits(entry["parameters"])
            elif "parametersJsonSchema" in entry:
                json_schema_fits(entry["parametersJsonSchema"])
        else:
            json_schema_fits(entry.get("input_schema") or entry.get("parameters"))
