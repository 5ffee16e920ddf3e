"""The part of JSON Schema that every vendor's strict schema mode takes, and schemas brought down to it.

Objects are closed and name all their properties as required; what was optional may be null instead. There are no
references, no bounds, no patterns: those are said in the description and checked when the answer is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mmsp_nb.tools.schema import inline_refs

__all__ = ["fits", "portable", "without_nulls"]

Schema = dict[str, Any]

FORMATS = frozenset({"date-time", "date", "time", "duration", "email", "uuid"})
PLAIN = frozenset({"string", "number", "integer", "boolean", "null"})
KEPT = frozenset({"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description"})
_SAID = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "minItems", "maxItems", "uniqueItems", "default", "format", "examples",
)  # fmt: skip
MAX_DEPTH = 20


class _NotPortable(Exception):
    pass


def portable(schema: Schema) -> Schema | None:
    """``schema`` in the form that every strict mode takes, or None when it cannot be said there.

    It cannot when it has objects with free keys, values of any type, tuples, or definitions that contain themselves.
    """
    if _is_recursive(schema):
        return None
    try:
        return _portable(inline_refs(schema), 0)
    except _NotPortable:
        return None


def fits(schema: Any) -> bool:
    """Whether ``schema`` is in that form already."""
    if not isinstance(schema, dict) or not schema.keys() <= KEPT | {"format"}:
        return False
    if "anyOf" in schema:
        return all(fits(each) for each in schema["anyOf"])
    if "enum" in schema:
        return bool(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        named = schema.get("properties")
        closed = schema.get("additionalProperties") is False
        return closed and named is not None and schema.get("required") == list(named) and all(map(fits, named.values()))
    if kind == "array":
        return fits(schema.get("items"))
    return kind in PLAIN and schema.get("format", "date") in FORMATS


def without_nulls(value: Any, schema: Schema) -> Any:
    """``value`` without the nulls that only stand for a property which ``schema`` lets be left out."""
    return _without(value, inline_refs(schema), 0)


def _portable(schema: Any, depth: int) -> Schema:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        raise _NotPortable
    if "allOf" in schema and len(schema["allOf"]) == 1:
        schema = {**schema["allOf"][0], **{key: value for key, value in schema.items() if key != "allOf"}}
    made: Schema = {}
    choices = schema.get("anyOf") or schema.get("oneOf")
    kind = schema.get("type")
    if choices:
        made["anyOf"] = [_portable(each, depth + 1) for each in choices]
    elif "const" in schema or "enum" in schema:
        made.update(_enum(schema.get("enum", [schema.get("const")])))
    elif kind == "object":
        made.update(_object(schema, depth))
    elif kind == "array" and isinstance(schema.get("items"), dict) and schema["items"] and "prefixItems" not in schema:
        made.update(type="array", items=_portable(schema["items"], depth + 1))
    elif kind in PLAIN:
        made["type"] = kind
        if schema.get("format") in FORMATS:
            made["format"] = schema["format"]
    else:
        raise _NotPortable
    said = [f"{key}: {json.dumps(schema[key], default=str)}" for key in _SAID if key in schema and key not in made]
    bounds = f"({', '.join(said)})" if said else ""
    description = " ".join(part for part in (schema.get("description", ""), bounds) if part)
    return {**made, "description": description} if description else made


def _object(schema: Schema, depth: int) -> Schema:
    named = schema.get("properties")
    if named is None or schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema:
        raise _NotPortable
    required = schema.get("required", [])
    properties = {}
    for name, each in named.items():
        made = _portable(each, depth + 1)
        properties[name] = made if name in required else _nullable(made)
    return {"type": "object", "properties": properties, "required": list(named), "additionalProperties": False}


def _nullable(schema: Schema) -> Schema:
    choices = schema.get("anyOf", [schema])
    if {"type": "null"} in choices:
        return schema
    outer = {"description": schema["description"]} if "description" in schema else {}
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"anyOf": [*(schema.get("anyOf") or [inner]), {"type": "null"}], **outer}


def _enum(values: list[Any]) -> Schema:
    kinds = {bool: "boolean", str: "string", int: "integer", float: "number", type(None): "null"}
    found = dict.fromkeys(kinds.get(type(value), "") for value in values)
    if "" in found:
        raise _NotPortable
    if len(found) == 1:
        return {"type": next(iter(found)), "enum": list(values)}
    each = [{"type": kind, "enum": [v for v in values if kinds[type(v)] == kind]} for kind in found]
    return {"anyOf": [{"type": "null"} if one["type"] == "null" else one for one in each]}


def _is_recursive(schema: Schema) -> bool:
    definitions = schema.get("$defs", {})

    def refers(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"].rpartition("/")[2]
            for each in part.values():
                yield from refers(each)
        elif isinstance(part, list):
            for each in part:
                yield from refers(each)

    def meets(name: str, above: tuple[str, ...]) -> bool:
        if name in above:
            return True
        return any(meets(each, (*above, name)) for each in set(refers(definitions.get(name, {}))))

    return any(meets(name, ()) for name in definitions)


def _without(value: Any, schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_without(each, schema.get("items"), depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    choices = [each for each in schema.get("anyOf") or schema.get("oneOf") or [schema] if isinstance(each, dict)]
    fitting = (each["properties"] for each in choices if "properties" in each and set(value) <= set(each["properties"]))
    named = next(fitting, None)
    if named is None:
        return value
    required = next(each.get("required", []) for each in choices if each.get("properties") is named)
    return {
        name: _without(each, named[name], depth + 1)
        for name, each in value.items()
        if each is not None or name in required or _takes_null(named[name])
    }


def _takes_null(schema: Any) -> bool:
    choices = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return any(each.get("type") == "null" or None in each.get("enum", []) or each == {} for each in choices)
