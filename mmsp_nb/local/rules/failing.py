"""Exceptions that a prompt shows, put into words: what was raised, where, and what is known of the values there.

Reads the form of ``%mmsp why`` and Python's own tracebacks. Everything said stands in the prompt, but for one general
sentence about the error's type; nothing is guessed about the program.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import knowledge
from .results import plain

__all__ = ["Trace", "find"]

_WHY = "\n\nThe exception:\n```"
_PYTHON = "Traceback (most recent call last):"
_ABOUT = re.compile(r"(?i)\b(?:why|fail\w*|wrong|errors?|exceptions?|fix|explain|mean\w*|happen\w*|broke|crash\w*)\b")
_HEADLINE = re.compile(r"([^\W\d][\w.]*)(?:: (.*))?$")
_PLACE = re.compile(r'(?:  File "(.+)", line (\d+)|(?!raised in )(.+), line (\d+), in .+)')
_MARKED = re.compile(r"-> +\d+ (.*)$")
_COLUMNS = re.compile(r"\[([^\[\]]+)\]$")
LONGEST = 20_000
"""How much of a shown exception is read, in characters."""


@dataclass(frozen=True, slots=True)
class Trace:
    """``question`` is the prompt without the exception, ``explanation`` what can be said of that one, in Markdown."""

    question: str
    explanation: str


def find(prompt: str) -> Trace | None:
    """The exception that ``prompt`` shows and asks about, or None."""
    at = prompt.find(_WHY)
    if at >= 0:
        question = prompt[:at].split("\n\nThe cell", 1)[0]
        shown = prompt[at + len(_WHY) :][:LONGEST].lstrip("`").split("\n```", 1)[0]
    else:
        at = prompt.find(_PYTHON)
        question = prompt[: max(at, 0)]
        if at < 0 or (question.strip() and not _ABOUT.search(question)):
            return None
        shown = prompt[prompt.rfind(_PYTHON) :][:LONGEST].split("\n```", 1)[0]
    explanation = _explained(shown.split("\n"))
    question = question.strip().strip("`").strip()
    return Trace(question or "Why did this fail?", explanation) if explanation else None


def _explained(lines: Sequence[str]) -> str:
    """What happened, the line, what it means, what is known. "" when no line says what was raised."""
    place, source, known, headline = "", "", "", None
    for at, line in enumerate(lines):
        if found := _PLACE.match(line):
            file, number = found[1] or found[3], found[2] or found[4]
            place, known = f"{_file(file)}, line {number}", ""
            source = lines[at + 1] if found[1] and at + 1 < len(lines) else ""
        elif found := _MARKED.match(line):
            source = found[1]
        elif line.startswith("      where "):
            known = line.strip()[len("where ") :]
        elif headline := _HEADLINE.match(line):
            break
    if headline is None:
        return ""
    kind, message = headline[1], headline[2] or ""
    raised = _code(f"{kind}: {message}" if message else kind)
    parts = [f"{raised} was raised in {plain(place)}:" if place else f"{raised} was raised."]
    if place and source.strip():
        parts.append(f"```python\n{source.strip().replace('```', '')[:300]}\n```")
    parts.append(" ".join(filter(None, [_meaning(kind), _nearest(message, known)])))
    if known:
        parts.append("\n".join(["What I was shown of the values there:", "", *map(_value, known.split("; "))]))
    return "\n\n".join(parts)


def _meaning(kind: str) -> str:
    """A general sentence about errors of this type."""
    known = knowledge.table("errors").get(kind.rsplit(".", 1)[-1])
    return str(known or "I know no rule for errors of this type: the message has to do.")


def _nearest(message: str, known: str) -> str:
    """The name that was probably meant: of the columns and values that are shown, the one most like the quoted one."""
    quoted = re.search(r"'([^']+)'", message)
    if not quoted or not known:
        return ""
    names = []
    for value in known.split("; "):
        names.append(value.split(":", 1)[0])
        columns = _COLUMNS.search(value)
        names += [column.split(":", 1)[0].strip() for column in columns[1].split(",")] if columns else []
    near = difflib.get_close_matches(quoted[1], [name for name in names if name != quoted[1]], 1)
    return f"Of the names that I was shown, {_code(near[0])} is the nearest." if near else ""


def _value(text: str) -> str:
    name, _, kind = text.partition(": ")
    return f"- {_code(name)}: {plain(kind.replace('[', '(').replace(']', ')'), 200)}"


def _file(name: str) -> str:
    if name.startswith("<ipython-input") or "ipykernel_" in name:
        return "the cell"
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _code(text: str) -> str:
    """``text`` as Markdown code within a line."""
    return "`" + text.replace("`", "'")[:300] + "`"
