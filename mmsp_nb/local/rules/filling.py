"""The arguments of a call, found in the prompt by the tool's own schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..wire.neutral import Tool
from . import kinds, values
from .choosing import enum_values
from .schema import fits, resolve, type_of
from .words import STOP, fold, kin, name_stems, stem, stems

MOST_CALLS = 8
"""How many calls one prompt may lead to."""

_NEGATION = re.compile(r"(?i)\b(?:without|no|not|don't|dont|never|disable[d]?|exclude|skip|off|false)\b")
_AFFIRMATION = re.compile(r"(?i)\b(?:true|yes|on|with|enable[d]?|include)\b")


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter: resolved schema, type, kind of content, and the stems that speak of it."""

    name: str
    schema: Mapping[str, Any]
    type: str
    kind: str
    about: frozenset[str]
    required: bool


@dataclass(slots=True)
class Filled:
    """The arguments of each call (one in most cases), and the required parameters that stayed open.

    ``split`` names the parameter that differs from call to call.
    """

    calls: list[dict[str, Any]]
    missing: list[str] = field(default_factory=list)
    split: str = ""


def slots(tool: Tool) -> list[Slot]:
    """The parameters of ``tool``, in the order of its schema."""
    root = resolve(tool.parameters, tool.parameters)
    found = root.get("properties")
    required = root.get("required")
    made: list[Slot] = []
    for name, raw in found.items() if isinstance(found, Mapping) else ():
        schema = resolve(raw, tool.parameters)
        if isinstance(schema.get("items"), Mapping):
            schema = {**schema, "items": resolve(schema["items"], tool.parameters)}
        needed = isinstance(required, list) and name in required
        kind = kinds.kind_of(name, schema)
        made.append(Slot(name, schema, type_of(schema), kind, kinds.about(name, schema), needed))
    return made


def fill(prompt: str, tool: Tool, *, previous: Mapping[str, Any] | None = None, forced: bool = False) -> Filled:
    """Find the arguments for ``tool`` in ``prompt``.

    ``previous`` are the arguments of an earlier call that a short follow-up ("and in Rome?") changes.
    With ``forced`` nothing stays open: what the prompt does not say is made up, as a model would.
    """
    parameters = slots(tool)
    found = _literal(prompt, parameters) or _find(prompt, tool, parameters)
    split = _split(parameters, found)
    base: dict[str, Any] = {}
    missing: list[str] = []
    for slot in parameters:
        if found.get(slot.name):
            base[slot.name] = found[slot.name][0]
        elif previous and slot.name in previous:
            base[slot.name] = previous[slot.name]
        elif slot.required:
            made = _otherwise(slot, forced, prompt)
            if made is None:
                missing.append(slot.name)
            else:
                base[slot.name] = made
    if not split:
        return Filled([base], missing)
    calls = [{**base, split: value} for value in found[split][:MOST_CALLS]]
    return Filled(calls, missing, split)


def _literal(prompt: str, parameters: list[Slot]) -> dict[str, list[Any]]:
    """A JSON object in the prompt that has parameters for keys is taken as it is."""
    by_name = {slot.name: slot for slot in parameters}
    for start in (found.start() for found in re.finditer(r"\{", prompt)):
        try:
            value, _ = json.JSONDecoder().raw_decode(prompt[start:])
        except ValueError:
            continue
        if (
            isinstance(value, dict)
            and value
            and all(name in by_name and _suits(entry, by_name[name]) for name, entry in value.items())
        ):
            return {name: [entry] for name, entry in value.items()}
    return {}


def _suits(value: Any, slot: Slot) -> bool:
    """Whether a value out of JSON has the type of a parameter and is one of its choices."""
    allowed = enum_values(slot.schema) if slot.type != "array" else []
    if isinstance(value, bool) or slot.type == "boolean":
        return isinstance(value, bool) and slot.type == "boolean"
    types: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "array": list, "object": dict}
    numeric = slot.type in ("integer", "number")
    fitting = isinstance(value, types.get(slot.type, object)) and (not allowed or value in allowed)
    return fitting and (not numeric or fits(value, slot.schema))


def _find(prompt: str, tool: Tool, parameters: list[Slot]) -> dict[str, list[Any]]:
    enum_words = {word for slot in parameters for value in enum_values(slot.schema) for word in stems(str(value))}
    ignore = frozenset(name_stems(tool.name)) | enum_words
    found: dict[str, list[Any]] = {}
    for slot in parameters:
        written = kinds.pair(prompt, slot.name)
        if written is not None and slot.type not in ("array", "object"):
            converted = _convert(written, slot)
            found[slot.name] = [] if converted is None else [converted]
        elif slot.type == "boolean":
            found[slot.name] = _boolean(prompt, slot)
        elif enum_values(slot.schema):
            chosen = _chosen(prompt, slot)
            found[slot.name] = [chosen] if slot.type == "array" and chosen else chosen
        elif slot.type == "string":
            found[slot.name] = list(kinds.texts(prompt, slot.name, slot.kind, ignore))
        elif slot.type == "array":
            found[slot.name] = _array(prompt, slot, ignore)
        elif slot.type == "object":
            inner = fill(prompt, Tool(slot.name, "", slot.schema))
            found[slot.name] = [inner.calls[0]] if inner.calls[0] and not inner.missing else []
    _not_twice(prompt, parameters, found)
    _share_out(parameters, found)
    _numbers(prompt, parameters, found)
    return found


def _convert(text: str, slot: Slot) -> Any:
    """A written value in the type of its parameter; None if it is not of that type."""
    if slot.type in ("integer", "number"):
        value = next((number.value for number in values.numbers(text)), None)
        return value if value is not None and fits(value, slot.schema) else None
    if slot.type == "boolean":
        return fold(text) in ("true", "yes", "on", "1")
    allowed = enum_values(slot.schema)
    return next((value for value in allowed if fold(str(value)) == fold(text)), None) if allowed else text


def _boolean(prompt: str, slot: Slot) -> list[Any]:
    own = frozenset(name_stems(slot.name))
    for word in re.finditer(r"[^\W\d_]+", prompt):
        if stem(word[0]) in own:
            nearby = prompt[max(0, word.start() - 24) : word.start()]
            after = prompt[word.end() : word.end() + 12]
            no = _NEGATION.search(nearby) or re.match(r"(?i)\W{0,2}(?:off|false|no|disabled)\b", after)
            return [not no or bool(_AFFIRMATION.search(nearby) and not _NEGATION.search(nearby))]
    return []


def _chosen(prompt: str, slot: Slot) -> list[Any]:
    """The values of an enumeration that the prompt names, in the order in which it names them."""
    plain = fold(prompt)
    asked = stems(prompt)
    hits: list[tuple[int, Any]] = []
    for value in enum_values(slot.schema):
        text = fold(str(value)).replace("_", " ").replace("-", " ")
        exact = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", plain.replace("-", " ").replace("_", " "))
        words = stems(str(value).replace("_", " "))
        if exact:
            hits.append((exact.start(), value))
        elif words and all(word in asked for word in words):
            hits.append((plain.find(text[: max(3, len(text) - 3)]), value))
        elif (initial := re.search(rf"°\s*{re.escape(text[:1])}(?!\w)", plain)) and len(text) > 1:
            hits.append((initial.start(), value))
    return [value for _, value in sorted(hits, key=lambda hit: hit[0])]


def _array(prompt: str, slot: Slot, ignore: frozenset[str]) -> list[Any]:
    items = slot.schema.get("items")
    item_type = type_of(items) if isinstance(items, Mapping) else "string"
    if literal := re.search(r"\[[^\[\]]*\]", prompt):
        try:
            return [json.loads(literal[0])]
        except ValueError:
            parts = [part.strip(" '\"") for part in literal[0][1:-1].split(",")]
            prompt = prompt if item_type != "string" else " ".join(f'"{part}"' for part in parts if part)
    if item_type in ("integer", "number"):
        schema = items if isinstance(items, Mapping) else {}
        found_numbers = [number.value for number in values.numbers(prompt) if fits(number.value, schema)]
        return [found_numbers] if found_numbers else []
    if item_type != "string":
        return []
    singular = slot.kind if slot.kind not in ("text", "") else ""
    texts = kinds.texts(prompt, slot.name, singular, ignore) if singular else values.quoted(prompt)
    texts = texts or _enumeration(prompt) or [name.text for name in values.names(prompt, ignore)]
    return [list(texts)] if texts else []


def _enumeration(prompt: str) -> list[str]:
    """The entries of "milk, bread and two eggs"."""
    found = re.search(r"((?:[\w'-]+(?: [\w'-]+)?, ?)+[\w'-]+(?: [\w'-]+)?,? (?:and|or) [\w'-]+(?: [\w'-]+)?)", prompt)
    found = found or re.search(r"(?::|\bof|\bbuy|\badd|\bwith)\s+([\w'-]+ (?:and|or) [\w'-]+)", prompt)
    if not found:
        return []
    parts = [part.strip() for part in re.split(r",\s*(?:and|or)?\s*|\s+(?:and|or)\s+", found[1]) if part.strip()]
    parts = [" ".join(word for word in part.split() if fold(word) not in STOP) or part for part in parts]
    # the first entry drags the verb along: "buy milk"
    words = parts[0].split()
    return [words[-1] if len(words) > 1 else parts[0], *parts[1:]]


def _not_twice(prompt: str, parameters: list[Slot], found: dict[str, list[Any]]) -> None:
    """Text that the prompt assigns to one parameter (``subject "Hi"``) is no value for the others."""
    written = {text for slot in parameters if (text := kinds.pair(prompt, slot.name)) is not None}
    for slot in parameters:
        if slot.type == "string" and kinds.pair(prompt, slot.name) is None:
            found[slot.name] = [entry for entry in found.get(slot.name) or [] if entry not in written]


def _share_out(parameters: list[Slot], found: dict[str, list[Any]]) -> None:
    """Give several parameters that all want the same texts one text each, in order."""
    groups: dict[tuple[str, ...], list[Slot]] = {}
    for slot in parameters:
        entries = found.get(slot.name) or []
        if slot.type == "string" and len(entries) > 1 and not enum_values(slot.schema) and slot.required:
            groups.setdefault(tuple(map(str, entries)), []).append(slot)
    for texts, group in groups.items():
        if len(group) > 1:
            for at, slot in enumerate(group):
                found[slot.name] = [texts[at]] if at < len(texts) else []


def _numbers(prompt: str, parameters: list[Slot], found: dict[str, list[Any]]) -> None:
    """Give the prompt's numbers to the numeric parameters: by the words beside them first, then in order."""
    wanting = [slot for slot in parameters if slot.type in ("integer", "number") and not found.get(slot.name)]
    wanting = [slot for slot in wanting if not enum_values(slot.schema)]
    if not wanting:
        return
    left = values.numbers(prompt)

    def take(slot: Slot, number: values.Number) -> None:
        found[slot.name] = [number.value]
        left.remove(number)

    for pool in ("name", "about"):
        for slot in wanting:
            words = frozenset(name_stems(slot.name)) if pool == "name" else slot.about
            words = frozenset(relative for word in words for relative in kin(word))
            # the word right behind a number counts most ("20 sides"), then the one before it ("radius 5")
            ranks = [
                (0 if number.after[:1] and number.after[0] in words else 1 if words & set(number.before[-2:]) else 2, n)
                for n, number in enumerate(left)
                if fits(number.value, slot.schema)
            ]
            best = min(ranks, default=(2, 0))
            if best[0] < 2 and not found.get(slot.name):
                take(slot, left[best[1]])
    open_slots = [slot for slot in wanting if not found.get(slot.name)]
    if not [slot for slot in open_slots if slot.required]:
        _more_numbers(wanting, found, left)
        return
    for slot in sorted(open_slots, key=lambda slot: not slot.required):
        fitting = [number for number in left if fits(number.value, slot.schema)]
        if fitting and (slot.required or slot.about & {*fitting[0].after, *fitting[0].before}):
            take(slot, fitting[0])
    _more_numbers(wanting, found, left)


def _more_numbers(wanting: list[Slot], found: dict[str, list[Any]], left: list[values.Number]) -> None:
    """ "the factorials of 5, 6 and 7": a tool with a single required number is called for each."""
    required = [slot for slot in wanting if slot.required]
    if len(required) == 1 and found.get(required[0].name):
        found[required[0].name] += [number.value for number in left if fits(number.value, required[0].schema)]


def _split(parameters: list[Slot], found: dict[str, list[Any]]) -> str:
    """The parameter that has a value for each of several calls, or ""."""
    several = [
        slot
        for slot in parameters
        if len(found.get(slot.name) or []) > 1
        and slot.kind != "text"
        and slot.type not in ("array", "object", "boolean")
    ]
    several.sort(key=lambda slot: (not slot.required, bool(enum_values(slot.schema)), slot.type != "string"))
    return several[0].name if several else ""


def _otherwise(slot: Slot, forced: bool, prompt: str) -> Any:
    """A value for a required parameter that the prompt does not mention, or None to ask for it."""
    if "default" in slot.schema:
        return slot.schema["default"]
    if allowed := enum_values(slot.schema):
        return [allowed[0]] if slot.type == "array" else allowed[0]
    if slot.type == "boolean":
        return False
    if not forced:
        return None
    low = slot.schema.get("minimum", 1)
    made: dict[str, Any] = {"integer": low, "number": low, "array": [], "object": {}}
    return made.get(slot.type, prompt.strip().rstrip(".?!") or "example")
