"""Just enough of JSON Schema to read the parameters of tools and the form of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def resolve(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """``schema`` with a ``$ref`` followed and "this or null" reduced to this."""
    if not isinstance(schema, Mapping) or depth > 12:
        return {}
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        target: Any = root
        for key in ref[1:].strip("/").split("/"):
            key = key.replace("~1", "/").replace("~0", "~")
            target = target.get(key, {}) if isinstance(target, Mapping) and key else target
        merged = {**(target if isinstance(target, Mapping) else {}), **{k: v for k, v in schema.items() if k != "$ref"}}
        return resolve(merged, root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            real = [choice for choice in choices if not (isinstance(choice, Mapping) and choice.get("type") == "null")]
            first = resolve(real[0] if real else {}, root, depth + 1)
            return {**first, **{name: value for name, value in schema.items() if name != key}}
    return schema


def type_of(schema: Mapping[str, Any]) -> str:
    """The (first real) type of a resolved schema; guessed from what else it says."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((entry for entry in kind if entry != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices and all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in choices):
        return "number"
    return "string"


def fits(value: float, schema: Mapping[str, Any]) -> bool:
    """Whether a number keeps to a schema's type and bounds."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return not (
        (type_of(schema) == "integer" and value != int(value))
        or (isinstance(low, int | float) and value < low)
        or (isinstance(high, int | float) and value > high)
        or (isinstance(above, int | float) and not isinstance(above, bool) and value <= above)
        or (isinstance(below, int | float) and not isinstance(below, bool) and value >= below)
    )
