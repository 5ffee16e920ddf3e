"""Answers in the form of a JSON Schema, with values drawn from the prompt where it has them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from ..wire.neutral import Tool
from . import knowledge
from .choosing import enum_values
from .filling import fill
from .labels import bullets, labelled
from .schema import fits, resolve, type_of
from .talk import calculate
from .values import blank, names, numbers
from .words import STOP, fold, split, stem

_DEEPEST = 6
_PLAIN = {
    "summary": "A short summary by the demo model.",
    "description": "A description by the demo model.",
    "reason": "The rules of the demo model say so.",
    "reasoning": "The rules of the demo model say so.",
    "explanation": "The rules of the demo model say so.",
    "sentiment": "neutral",
    "email": "ada@example.org",
    "url": "https://example.org/",
    "date": "2026-01-01",
    "time": "12:00",
    "city": "Paris",
    "country": "France",
    "name": "Ada",
    "author": "Ada",
    "currency": "EUR",
    "unit": "unit",
    "language": "English",
    "colour": "blue",
    "color": "blue",
    "phone": "+44 20 7946 0000",
    "id": "demo-1",
}
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "hostname": "example.org",
}


def shaped(prompt: str, schema: Mapping[str, Any]) -> Any:
    """A value that is valid under ``schema``. An empty schema asks for any object: the prompt is repeated in one."""
    root = resolve(schema, schema)
    if not root or (type_of(root) == "object" and not root.get("properties")):
        return {"answer": _phrase(prompt), "model": "demo"}
    return _value("answer", root, prompt, schema, 0)


def _value(name: str, schema: Mapping[str, Any], prompt: str, root: Mapping[str, Any], depth: int) -> Any:
    schema = resolve(schema, root)
    kind = type_of(schema)
    if allowed := enum_values(schema) if kind != "array" else []:
        words = {stem(word) for word in re.findall(r"\w+", prompt)}
        named = [value for value in allowed if {stem(word) for word in re.findall(r"\w+", str(value))} & words]
        return named[0] if named else allowed[0]
    if kind == "object":
        return _object(schema, prompt, root, depth)
    if kind == "array":
        return _array(name, schema, prompt, root, depth)
    if kind == "boolean":
        return not re.search(r"(?i)\b(?:not|no|never|false|isn't|without)\b", prompt)
    if kind in ("integer", "number"):
        return _number(name, schema, prompt, kind, depth)
    return None if kind == "null" else _text(name, schema, prompt)


def _object(schema: Mapping[str, Any], prompt: str, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    required = schema.get("required")
    found = fill(prompt, Tool("answer", "", {**root, **schema, "required": []})).calls[0]
    made: dict[str, Any] = {}
    for name, inner in properties.items():
        resolved = resolve(inner, root)
        kind, value = type_of(resolved), found.get(name)
        said = labelled(prompt, name, kind, resolved) if not enum_values(resolved) else None
        if said is not None and fits(said, resolved):
            made[name] = said
            continue
        whole = isinstance(value, str) and len(value) > 60 and value.rstrip(".?!") in prompt
        if value is not None and kind not in ("object", "array") and not whole and _allowed(value, resolved):
            made[name] = value
        elif depth < _DEEPEST or (isinstance(required, list) and name in required):
            made[name] = _value(name, inner, prompt, root, depth + 1) if depth < 2 * _DEEPEST else None
    return made


def _allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, str):
        low, high = schema.get("minLength", 0), schema.get("maxLength", 10**6)
        pattern = schema.get("pattern")
        return bool(low <= len(value) <= high) and "format" not in schema and not pattern
    return True


def _array(name: str, schema: Mapping[str, Any], prompt: str, root: Mapping[str, Any], depth: int) -> list[Any]:
    items = schema.get("items")
    items = items if isinstance(items, Mapping) else {}
    least = schema.get("minItems", 0)
    most = schema.get("maxItems", 20)
    own = {stem(word) for word in split(name)}
    several = re.search(r"(?i)\b(?:list|name|give|find|suggest|write|create|make|generate)\b", prompt)
    counts = [number for number in numbers(prompt) if 0 < number.value <= 20 and number.after]
    asked = next((number.value for number in counts if several or own & set(number.after)), None)
    count = int(min(max(asked or 3, least), most))
    inner = resolve(items, root)
    if depth >= _DEEPEST:
        return [_value(name, items, prompt, root, depth + 1) for _ in range(least)] if least and depth < 9 else []
    if type_of(inner) != "array" and enum_values(inner):
        return (enum_values(inner) * count)[: min(count, len(enum_values(inner)))]
    if type_of(inner) == "string":
        found = fill(prompt, Tool("answer", "", {"properties": {name: schema}})).calls[0].get(name)
        entries = list(found) if isinstance(found, list) and found else _entries(name, prompt)
        return (entries * (count // max(len(entries), 1) + 1))[
            : max(count if asked or not found else len(entries), least)
        ]
    if type_of(inner) in ("integer", "number"):
        mentioned = [number.value for number in numbers(prompt) if fits(number.value, inner)]
        if len(mentioned) >= max(least, 2):
            return mentioned[:most]
        row = list(range(1, count + 1))
        fitting = all(fits(number, inner) for number in row)
        return row if fitting else [_number(name, inner, prompt, type_of(inner), depth + 1)] * count
    listed = bullets(prompt)
    if type_of(inner) == "object" and listed:
        return [_value(name, items, line, root, depth + 1) for line in listed[:most]]
    mentioned_names = names(prompt)
    if type_of(inner) == "object" and len(mentioned_names) > 1:
        # "Ada is 36, Grace is 45": what is said from one name to the next belongs together
        ends = [*(found.start for found in mentioned_names[1:]), len(prompt)]
        parts = [prompt[found.start : end] for found, end in zip(mentioned_names, ends, strict=True)]
        return [_value(name, items, part, root, depth + 1) for part in parts[:most]]
    singular = name[:-1] if name.endswith("s") else name
    rest = blank(prompt, ((number.start, number.end) for number in numbers(prompt)))
    return [_numbered(_value(singular, items, rest, root, depth + 1), at, inner, root) for at in range(1, count + 1)]


def _numbered(value: Any, at: int, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Make the entries of a list differ: the first free text in each gets a number, or the next name."""
    if not isinstance(value, dict) or at == 1:
        return value
    people = knowledge.table("lists")["name"]
    for name, inner in (schema.get("properties") or {}).items():
        form = resolve(inner, root)
        bound = enum_values(form) or any(key in form for key in ("format", "pattern", "maxLength", "default"))
        text = value.get(name)
        if isinstance(text, str) and type_of(form) == "string" and not bound and name not in ("email", "url"):
            following = people[(people.index(text) + at - 1) % len(people)] if text in people else f"{text} {at}"
            return {**value, name: following}
    return value


def _entries(name: str, prompt: str) -> list[str]:
    lists = knowledge.table("lists")
    if {stem(word) for word in split(name)} & {stem("keywords"), stem("tags"), stem("topics"), stem("terms")}:
        words = dict.fromkeys(word.lower() for word in re.findall(r"[^\W\d_]{4,}", prompt) if fold(word) not in STOP)
        return sorted(words, key=lambda word: (-len(word), word))[:3] or ["demo"]
    for word in [*split(name), *re.findall(r"\w+", prompt)]:
        for thing, entries in lists.items():
            if stem(word) == stem(thing) or (fold(word).startswith("color") and thing == "colour"):
                return list(entries)
    singular = (split(name) or ["entry"])[-1].lower().rstrip("s") or "entry"
    return [f"{singular} {at}" for at in range(1, 21)]


def _number(name: str, schema: Mapping[str, Any], prompt: str, kind: str, depth: int) -> int | float:
    own = {stem(word) for word in split(name)}
    found = [number for number in numbers(prompt) if fits(number.value, schema)]
    near = [number for number in found if own & {*number.before, *number.after}]
    mentioned = next((number.value for number in near or (found if depth < 2 or len(found) == 1 else [])), None)
    expression = re.search(r"[\d(][\d\s.+*/()x×-]*[\d)]", prompt)
    result = calculate(expression[0]) if expression and re.search(r"[+*/x×-]", expression[0]) else None
    if result is not None and fits(result, schema):
        return int(result) if kind == "integer" else result
    if mentioned is not None:
        return mentioned
    seed = int.from_bytes(hashlib.sha256(f"{name}/{prompt}".encode("utf-8", "replace")).digest()[:4], "big")
    low = schema.get("minimum", schema.get("exclusiveMinimum", 1))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(low + 99, 100)))
    if kind == "number":
        return round(low + (high - low) * (seed % 997 + 1) / 1000, 3)
    whole = [int(low) + seed % (max(int(high) - int(low), 0) + 1), int(low) + 1, int(low)]
    return next((value for value in whole if fits(value, schema)), whole[-1])


def _phrase(prompt: str) -> str:
    return re.sub(r"\s+", " ", prompt).strip()[:200] or "demo"


def _text(name: str, schema: Mapping[str, Any], prompt: str) -> str:
    if isinstance(schema.get("default"), str):
        return str(schema["default"])
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    words = [fold(word) for word in split(name)]
    made = next((_PLAIN[word] for word in reversed(words) if word in _PLAIN), "")
    if not made:
        things = knowledge.table("lists")
        made = next((things[word][0] for word in words if word in things), "") or _phrase(prompt)
    low, high = schema.get("minLength", 0), schema.get("maxLength", 10**6)
    return (made + " demo" * (max(low - len(made), 0) // 5 + (len(made) < low)))[:high]
