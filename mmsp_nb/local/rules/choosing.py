"""Which tool, if any, a prompt asks for: by the words it shares with the tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..wire.neutral import Tool
from .values import EXPRESSION, URL
from .words import WEAK_STEMS, kin, name_stems, stems

_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`|(?<!\w)'[^'\n]+'(?!\w)")
_ARGUMENT = re.compile(r"\b\w+ ?=(?!=)")
THRESHOLD = 2.0
"""The least score of a tool that is called without being told to."""

FURTHER = 3.0
"""The least score of a tool that is called beside a better one."""

_HINTS = (
    (EXPRESSION, "calculate"),
    (re.compile(r"(?i)\bhow (?:do|can|would|could) (?:i|we|you|one) get (?:from|to)\b"), "route direction"),
    (
        re.compile(r"\b(?:USD|EUR|GBP|JPY|CHF|CNY)\b|[$€£]\s*\d|(?i:\b(?:dollars?|euros?)\b.*\b(?:in|to)\b)"),
        "convert currency",
    ),
    (URL, "fetch open download"),
)


def _hints(prompt: str) -> list[str]:
    """Stems for what a prompt means without a word for it: "(3+4)*5" is something to calculate."""
    return [word for pattern, text in _HINTS if pattern.search(prompt) for word in stems(text)]


@dataclass(frozen=True, slots=True)
class Match:
    """How well a tool fits. ``strong`` are the prompt's stems that its name or the head of its description has."""

    tool: Tool
    score: float
    strong: frozenset[str]


def properties(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    """The parameters of a tool, each with its schema."""
    found = tool.parameters.get("properties")
    entries = found.items() if isinstance(found, Mapping) else ()
    return {name: schema if isinstance(schema, Mapping) else {} for name, schema in entries}


def enum_values(schema: Mapping[str, Any]) -> list[Any]:
    """All values an enumeration allows, also of one inside a list or an alternative."""
    found = list(schema.get("enum") or []) if isinstance(schema.get("enum"), list) else []
    if "const" in schema:
        found.append(schema["const"])
    for inner in (schema.get("items"), *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())):
        if isinstance(inner, Mapping):
            found += enum_values(inner)
    return found


def match(prompt: str, tool: Tool) -> Match:
    """Score one tool. What is quoted, and the name in ``name=value``, is material, not a wish, and does not count."""
    asked = stems(_ARGUMENT.sub(" ", _QUOTED.sub(" ", prompt))) + _hints(prompt)
    plain = frozenset(asked)
    related = frozenset(relative for word in plain for relative in kin(word))
    parameters = properties(tool)
    own = frozenset(word for name in parameters for word in name_stems(name))

    name = frozenset(name_stems(tool.name))
    described = stems(tool.description.split("\n\n")[0])
    head = frozenset(described[:1])
    score = 0.0
    strong: set[str] = set()
    for word in name:
        if word in related:
            # "time" alone makes get_time; "list" is not enough for add_to_list
            weak = (3.0 if len(name) == 1 else 2.0 / len(name)) * (word in plain)
            score += weak if word in WEAK_STEMS else 3.0 if word in plain else 2.0
            strong |= {asked_word for asked_word in plain if word in kin(asked_word)}
    for word in frozenset(described) - name:
        if word in WEAK_STEMS or word in own:
            score += 0.25 if word in plain else 0.0
        elif word in plain or (word in head and word in related):
            score += 2.0 if word in head or len(word) > 4 else 1.5
            strong |= {asked_word for asked_word in plain if word in kin(asked_word)} if word in head else set()
        elif word in related:
            score += 1.0
    for value in {str(value) for schema in parameters.values() for value in enum_values(schema)}:
        words = frozenset(stems(value))
        score += 2.0 if words and words <= plain and len(value) > 2 else 0.0
    if score > 0:
        score += 0.5 * len(own & plain)
    score += 0.5 * len(name & related) / len(name) if score and name else 0.0
    # named outright, as in "use get_weather"
    if re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", prompt) and tool.name:
        score += 10.0
    return Match(tool, score, frozenset(strong))


def ranked(prompt: str, tools: Iterable[Tool]) -> list[Match]:
    """All tools, the best first; the order of declaration decides between equals."""
    return sorted((match(prompt, tool) for tool in tools), key=lambda found: -found.score)


def pick(prompt: str, tools: Sequence[Tool], tool_choice: str | tuple[str, ...] = "auto") -> list[Tool]:
    """The tools to call for ``prompt``, the best first; often none, sometimes several.

    A further tool is taken only for words that no better one has claimed ("the weather and the time in Rome").
    """
    if tool_choice == "none" or not tools:
        return []
    forced = tool_choice != "auto"
    if isinstance(tool_choice, tuple):
        tools = [tool for tool in tools if tool.name in tool_choice] or list(tools)
    matches = ranked(prompt, tools)
    if matches[0].score < THRESHOLD:
        return [matches[0].tool] if forced else []
    picked, claimed = [matches[0].tool], set(matches[0].strong)
    for found in matches[1:]:
        rest = found.strong - claimed
        if found.score >= FURTHER and rest and not any(word in kin(other) for word in rest for other in claimed):
            picked.append(found.tool)
            claimed |= found.strong
    return picked
