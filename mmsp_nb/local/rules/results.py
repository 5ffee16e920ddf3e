"""What tools returned, put into words, and compared with each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..wire.neutral import Ask, Result
from .words import kin, listed, name_stems, stems

LONGEST = 1_500
"""How much of one result is repeated in the answer, in characters."""

_ERROR = re.compile(
    r"(?i)^\W*(?:error|failed|failure|exception|traceback|unknown tool|not run\b|interrupted|timed? ?out|\w+Error\b)"
)
_TABLE = re.compile(r"^\|.*\|\n\|(?: ?:?-+:? ?\|)+\n(?:\|.*\|(?:\n|$))+", re.MULTILINE)
_FIGURES = re.compile(r"(?i)\b(?:compare|difference|average|mean|sum|total|together)\b")
_COMPARATIVE = re.compile(
    r"(?i)\b(?:(?:warm|cold|cool|high|low|small|long|short|old|young|fast|slow|cheap|light|tall|deep|great|few|near|strong"
    r"|weak|rich|poor|loud|hard|soft)(?:er|est)|(?:hot|wet|big)t?g?(?:er|est)|(?:heav|dr|wind|sunn|rain|earl|bus|happ)"
    r"(?:ier|iest)|larg(?:er|est)|late(?:r|st)|furthest|farthest|farther|further|better|best|worse|worst|more|most|less|least)\b"
)
_LESS = frozenset(
    listed(
        """less least lower lowest smaller smallest colder coldest cooler coolest fewer fewest cheaper cheapest shorter
        shortest younger youngest slower slowest minimum worse worst lighter lightest earlier earliest"""
    )
)


def value_of(result: Result) -> Any:
    """A result's text as JSON if it is JSON, else the text."""
    try:
        return json.loads(result.text)
    except (ValueError, RecursionError):
        return result.text.strip()


def failed(result: Result) -> bool:
    """Whether a result reports an error instead of a value."""
    value = value_of(result)
    if isinstance(value, Mapping):
        return bool(value.get("error"))
    return isinstance(value, str) and _ERROR.match(value) is not None


def plain(text: str, most: int = 60) -> str:
    """Text for the middle of a Markdown line: one line, not too long, without marks that would format it."""
    text = re.sub(r"\s+", " ", re.sub(r"[*`\[\]<>|#]|(?<!\w)_|_(?!\w)", "", text)).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def label(result: Result, others: Sequence[Result] = ()) -> str:
    """What a result is about: the arguments in which its call differs from the others, else all, else the tool."""
    mine = dict(result.arguments)
    differing = {
        name: value
        for name, value in mine.items()
        if any(other.arguments.get(name) != value for other in others if other.name == result.name and other != result)
    }
    shown = [plain(_scalar(value), 40) for value in (differing or mine).values() if value not in (None, "", [], {})]
    return ", ".join(shown[:3]) or plain(result.name) or "result"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e15 and value == round(value, 10) else str(value)
    if isinstance(value, list):
        return ", ".join(_scalar(entry) for entry in value)
    if isinstance(value, Mapping):
        return _pairs(value)
    return "nothing" if value is None else str(value)


def _degrees(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"temperature": 18, "unit": "celsius"}`` reads as "temperature 18 °C"."""
    unit = value.get("unit") or value.get("units")
    sign = {"celsius": "°C", "c": "°C", "fahrenheit": "°F", "f": "°F", "kelvin": "K"}.get(str(unit).lower())
    degrees = next((name for name in value if name.lower().startswith("temp")), None)
    if not (sign and degrees and isinstance(value[degrees], int | float)):
        return value
    rest = {name: entry for name, entry in value.items() if name not in ("unit", "units")}
    return {**rest, degrees: f"{_scalar(value[degrees])} {sign}"}


def _pairs(value: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{plain(name.replace('_', ' '))} {plain(_scalar(entry), 200)}" for name, entry in _degrees(value).items()
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))[:6]
    lines = ["| " + " | ".join(map(plain, columns)) + " |", "|" + " --- |" * len(columns)]
    for row in rows[:10]:
        lines.append("| " + " | ".join(plain(_scalar(row.get(name, "")), 40) for name in columns) + " |")
    return "\n".join(lines)


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def spoken(result: Result) -> str:
    """A result as Markdown: a phrase, a table or a block. Never more than LONGEST characters of it."""
    value = value_of(result)
    if failed(result):
        reason = value.get("error") if isinstance(value, Mapping) else value
        reason = reason.get("message", reason) if isinstance(reason, Mapping) else reason
        reason = re.sub(r"(?i)^error:\s*", "", str(reason))
        return f"this did not work: {plain(reason, 300)}"
    if isinstance(value, Mapping) and value and len(_pairs(value)) < LONGEST:
        return _pairs(value)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return "\n\n" + _table(value)
    if isinstance(value, str) and len(value) <= LONGEST and (table := _TABLE.search(value)):
        around = [plain(text, 300) for text in (value[: table.start()], value[table.end() :])]
        return "".join(f"\n\n{part}" for part in (around[0], table[0].strip(), around[1]) if part)
    if isinstance(value, str) and ("\n" in value or len(value) > 300):
        cut = value[:LONGEST] + ("\n…" if len(value) > LONGEST else "")
        return "\n\n" + _fenced(cut)
    if value in ("", None, [], {}):
        return "done" + (f", with {result.images} image(s)" if result.images else ", nothing was returned")
    text = plain(_scalar(value), 600)
    return text + (f" (and {result.images} image(s))" if result.images else "")


def answer(results: Sequence[Result]) -> str:
    """A short Markdown answer that names the result of every call."""
    if len(results) == 1:
        only = results[0]
        about = label(only)
        said = spoken(only)
        name = f"`{only.name}`" if only.name else "the tool"
        source = f"{name} for **{about}**" if about != only.name else name
        if said.startswith("\n"):
            return f"Here is what {source} returned:{said}"
        return (
            f"According to {source}: {said}."
            if not said.endswith((".", "!", "?"))
            else f"According to {source}: {said}"
        )
    several = len({result.name for result in results}) > 1
    lines = []
    for result in results:
        source = f" (`{result.name}`)" if several else ""
        body = spoken(result)
        body = body.replace("\n", "\n  ") if body.startswith("\n") else f" {body}"
        lines.append(f"- **{label(result, results)}**{source}:{body}")
    tools = ", ".join(dict.fromkeys(f"`{result.name}`" for result in results))
    return f"Here is what {tools} returned:\n\n" + "\n".join(lines)


def measures(result: Result) -> dict[str, float]:
    """The numbers in a result, by name; an unnamed one is called ""."""
    value = value_of(result)
    if isinstance(value, bool) or failed(result):
        return {}
    if isinstance(value, int | float):
        return {"": float(value)}
    if isinstance(value, Mapping):
        return {
            str(name): float(entry)
            for name, entry in value.items()
            if isinstance(entry, int | float) and not isinstance(entry, bool)
        }
    numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", str(value))
    return {"": float(numbers[0])} if numbers else {}


def remembered(ask: Ask) -> list[Result]:
    """The latest results of the conversation: those of the last turn that called tools, of its several rounds."""
    found: list[Result] = []
    for turn in reversed(ask.turns):
        found[:0] = turn.results
        if found and turn.role == "user" and turn.text.strip() and not turn.results:
            break
    return found


def compare(prompt: str, results: Iterable[Result]) -> str | None:
    """Answer "which of the two is warmer?" from earlier results; None if that is not asked or not known."""
    if not (_FIGURES.search(prompt) or _COMPARATIVE.search(prompt)):
        return None
    usable = [(result, measures(result)) for result in results]
    usable = [(result, numbers) for result, numbers in usable if numbers]
    if len(usable) < 2:
        return None
    shared = [name for name in usable[0][1] if all(name in numbers for _, numbers in usable)]
    if not shared:
        return None
    words = frozenset(relative for word in stems(prompt) for relative in kin(word))
    asked = next((name for name in shared if words & frozenset(name_stems(name))), shared[0])
    everything = [result for result, _ in usable]
    figures = [(label(result, everything), numbers[asked]) for result, numbers in usable]
    named = f" ({plain(asked.replace('_', ' '))})" if asked else ""
    low = prompt.lower()
    if re.search(r"\b(?:average|mean)\b", low):
        return f"The average{named} is **{sum(value for _, value in figures) / len(figures):g}**."
    if re.search(r"\b(?:sum|total|together)\b", low):
        return f"Together{named} that makes **{sum(value for _, value in figures):g}**."
    figures.sort(key=lambda entry: -entry[1])
    (most, high), (least, lowest) = figures[0], figures[-1]
    if high == lowest:
        return f"They are equal{named}: {high:g} each."
    if "difference" in low or "compare" in low:
        return f"**{most}** has {high:g} and **{least}** {lowest:g}{named}: a difference of **{high - lowest:g}**."
    downwards = any(word in _LESS for word in re.findall(r"\w+", low))
    first, figure = (least, lowest) if downwards else (most, high)
    rest = ", ".join(f"{name} has {value:g}" for name, value in figures if name != first)
    asked_for = _COMPARATIVE.search(prompt)
    word = asked_for[0].lower() if asked_for and asked_for[0].lower().endswith(("er", "est")) else "ahead"
    word = f"the {word}" if word.endswith("est") else word
    return f"**{first}** is {word}{named}: {figure:g}, while {rest}."
