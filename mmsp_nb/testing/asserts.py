"""What a conversation did, as assertions whose failures say what happened instead.

::

    answer = chat.ask("What's the weather in London?")
    assert_called(answer, "get_weather", city="London")
    assert_not_called(chat, "delete_everything")
    assert_said(answer, "rain")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["assert_called", "assert_not_called", "assert_said", "outcomes"]


def outcomes(where: Any) -> list[Any]:
    """The tool calls of a Conversation, a Turn, an Answer, or of the events of an Agent, oldest first.

    Each is a `ToolOutcome`: ``.name``, ``.arguments``, ``.result``, ``.error``.
    """
    if hasattr(where, "turns"):
        return [outcome for turn in where.turns for outcome in turn.outcomes]
    for attribute in ("outcomes", "calls"):
        if hasattr(where, attribute):
            return list(getattr(where, attribute))
    if isinstance(where, Iterable) and not isinstance(where, str | Mapping):
        return [event["outcome"] for event in where if isinstance(event, Mapping) and event.get("type") == "tool_end"]
    raise TypeError(
        f"tool calls are looked for in a conversation, a turn, an answer or events, not {type(where).__name__}"
    )


def assert_called(where: Any, name: str, /, **arguments: Any) -> list[Any]:
    """The tool ``name`` was called, at least once with all of ``arguments``; others may have been there too.

    Returns the calls that fit, so that they can be counted and looked into.
    """
    __tracebackhide__ = True
    calls = outcomes(where)
    found = [call for call in calls if call.name == name and _fits(call.arguments, arguments)]
    if not found:
        raise AssertionError(f"{_call(name, arguments)} was not called; {_what_was(calls)}")
    return found


def assert_not_called(where: Any, name: str | None = None, /, **arguments: Any) -> None:
    """The tool ``name``, or any tool, was not called (with these arguments)."""
    __tracebackhide__ = True
    calls = outcomes(where)
    for call in calls:
        if name in (None, call.name) and _fits(call.arguments, arguments):
            raise AssertionError(f"{_call(call.name, call.arguments)} was called; {_what_was(calls)}")


def assert_said(where: Any, text: str | re.Pattern[str]) -> None:
    """The last answer holds ``text`` (in any case), or a match of the pattern.

    ``where`` is an Answer, a Turn or a Conversation.
    """
    __tracebackhide__ = True
    last = where.turns[-1] if hasattr(where, "turns") and where.turns else where
    said = str(getattr(last, "text", last))
    found = text.search(said) if isinstance(text, re.Pattern) else text.lower() in said.lower()
    if not found:
        wanted = text.pattern if isinstance(text, re.Pattern) else text
        raise AssertionError(f"the answer does not hold {wanted!r}; it is {said!r}")


def _fits(given: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(given, Mapping) and all(key in given and given[key] == value for key, value in wanted.items())


def _what_was(calls: list[Any]) -> str:
    if not calls:
        return "no tool was called"
    return "calls were " + ", ".join(_call(call.name, call.arguments) for call in calls)


def _call(name: str, arguments: Any) -> str:
    if not isinstance(arguments, Mapping):
        return f"{name}({arguments!r})"
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
