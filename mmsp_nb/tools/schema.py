"""JSON Schemas as models get them: small, without titles, without references where that is possible."""

from __future__ import annotations

import copy
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["NAME", "inline_refs", "legal_name", "short_type", "tidy"]

Schema = dict[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The tool names that every provider takes."""

SMALL = 200
"""Characters of a definition that is written out wherever it is used."""

_PREFIX = "#/$defs/"
# keywords whose value is a schema, a list of schemas, or a mapping of names to schemas
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "patternProperties", "dependentSchemas")


def legal_name(name: str) -> str:
    """``name`` made into a tool name that every provider takes: letters, digits, ``_`` and ``-``, at most 64.

    Accents are dropped. When letters of another script get lost, a checksum keeps different names different.
    """
    if NAME.fullmatch(name):
        return name
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    lost = any(c.isalnum() and not c.isascii() for c in plain) or len(plain) > 64
    base = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_")
    if base and not lost:
        return base
    return f"{base[:55] or 'tool'}_{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def tidy(schema: Schema) -> Schema:
    """A copy of ``schema`` without titles, with definitions written out that are used once or are small.

    ``$defs`` is left only for definitions that refer to themselves, or are large and used several times.
    """
    schema = _untitled(schema)
    definitions: dict[str, Schema] = schema.pop("$defs", {})
    used = Counter(_references(schema))
    for definition in definitions.values():
        used.update(_references(definition))
    keep = {
        name
        for name, definition in definitions.items()
        if name in _reachable(name, definitions)
        or (used[name] > 1 and len(json.dumps(definition, default=str)) > SMALL)
    }
    tidied: Schema = _inline(schema, definitions, keep)
    needed = set(_references(tidied))
    for name in list(needed):
        needed |= _reachable(name, definitions) & keep
    if needed:
        tidied["$defs"] = {name: _inline(definitions[name], definitions, keep) for name in sorted(needed)}
    return tidied


def inline_refs(schema: Schema) -> Schema:
    """A copy of ``schema`` without ``$ref`` and ``$defs``, for dialects that take none.

    A definition that contains itself is written out once; where it would begin again, any value is allowed.
    """
    schema = copy.deepcopy(schema)
    definitions = schema.pop("$defs", {})
    inlined: Schema = _inline(schema, definitions, set())
    return inlined


def short_type(schema: Schema) -> str:
    """A schema in a few words, for a correction: ``integer``, ``"C" | "F"``, ``array of string``."""
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"][:12])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return " | ".join(dict.fromkeys(short_type(s) for s in schema[keyword]))
    kind = schema.get("type")
    if kind == "array":
        inner = short_type(schema["items"]) if isinstance(schema.get("items"), dict) else "any"
        return "array" if inner == "any" else f"array of {inner}"
    if kind == "object" and schema.get("properties"):
        required = schema.get("required", [])
        return "{" + ", ".join(k if k in required else f"{k}?" for k in list(schema["properties"])[:12]) + "}"
    if isinstance(kind, str):
        form = schema.get("format")
        return f"{kind} ({form})" if form else kind
    return "object" if "$ref" in schema else "any"


def _children(schema: Any, visit: Callable[[Any], Any]) -> Any:
    """A copy of ``schema`` with ``visit`` applied to the schemas directly in it; never to defaults and enums."""
    if not isinstance(schema, dict):
        return schema
    copied = dict(schema)
    for key, value in schema.items():
        if key in _ONE:
            copied[key] = visit(value)
        elif key in _MANY and isinstance(value, list):
            copied[key] = [visit(each) for each in value]
        elif key in _NAMED and isinstance(value, dict):
            copied[key] = {name: visit(each) for name, each in value.items()}
    return copied


def _untitled(schema: Any) -> Any:
    if isinstance(schema, dict):
        schema = {key: value for key, value in schema.items() if key != "title"}
    return _children(schema, _untitled)


def _inline(schema: Any, definitions: dict[str, Schema], keep: set[str], inside: tuple[str, ...] = ()) -> Any:
    """References replaced by what they refer to, but for those in ``keep``; what stands beside them wins."""
    name = _reference(schema)
    if name is None or name in keep or name not in definitions:
        return _children(schema, lambda each: _inline(each, definitions, keep, inside))
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    if name in inside:
        return beside
    return {**copy.deepcopy(_inline(definitions[name], definitions, keep, (*inside, name))), **beside}


def _reference(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference.removeprefix(_PREFIX) if isinstance(reference, str) and reference.startswith(_PREFIX) else None


def _references(schema: Any) -> list[str]:
    """The definitions that ``schema`` refers to, each as often as it does."""
    name = _reference(schema)
    found = [] if name is None else [name]
    _children(schema, lambda each: found.extend(_references(each)))
    return found


def _reachable(name: str, definitions: dict[str, Schema]) -> set[str]:
    reached: set[str] = set()
    waiting = _references(definitions[name])
    while waiting:
        each = waiting.pop()
        if each not in reached:
            reached.add(each)
            waiting += _references(definitions.get(each, {}))
    return reached
