"""Long texts of a wanted length, always the same for the same prompt."""

from __future__ import annotations

import hashlib
import re

from .values import NUMBER_WORDS
from .words import STOP, fold

MOST = 2_000_000
"""The longest text, in characters."""

_WANTED = re.compile(
    rf"(?i)(?<![\w-])(\d[\d.,_]*\s?k?|{'|'.join(NUMBER_WORDS)})[ -]+"
    r"(words?|characters?|chars?|letters?|tokens?|paragraphs?|sentences?|lines?)(?!\w)"
)
_VERB = re.compile(r"(?i)\b(?:write|essay|story|text|article|generate|produce|long|compose|stream|give|about|tell)\b")
_LONG = re.compile(r"(?i)\b(?:long (?:text|story|essay|article|answer)|essay)\b")
_TEMPLATES = (
    "At first sight {topic} looks like a small matter, yet it touches {a} and {b}.",
    "Whoever looks into {topic} soon meets {a}, and learns to tell it from {b}.",
    "There is a quiet link between {a} and {topic} that is easy to overlook.",
    "Some say that {b} comes first; others begin with {a}, and both have their reasons.",
    "In practice one starts with {a}, keeps an eye on {b}, and writes down what happens.",
    "It helps to think of {topic} as a walk: {a} on the left, {b} on the right.",
    "The naïve view – that {a} settles everything – does not survive a look at {b}.",
    "Measured over a year, {a} changed little, while {b} nearly doubled.",
    "So {topic} is less a question of {a} than of patience. ☕",
    "A café table, a notebook, and {a}: that is often enough to begin with {topic}.",
    "Of course there are limits: without {b}, even the best {a} is of little use.",
    "That is why **{a}** deserves a second look, and *{b}* a third.",
)
_NOUNS = (
    "the weather", "careful counting", "a good map", "the tides", "old letters", "the morning light", "honest numbers",
    "a patient teacher", "the smallest case", "habit", "an open question", "the long view", "plain language",
    "a second measurement", "the shape of the coast", "curiosity", "the price of bread", "a clean table",
)  # fmt: skip


def wanted(prompt: str) -> tuple[int, str] | None:
    """The length a prompt asks for, as a number and its unit ("word", "character", ...), or None."""
    found = _WANTED.search(prompt)
    if found and _VERB.search(prompt):
        number = str(NUMBER_WORDS.get(found[1].lower(), found[1])).lower().replace(",", "").replace("_", "").strip()
        factor = 1000 if number.endswith("k") else 1
        digits = number.rstrip("k ").rstrip(".")
        try:
            count = int(float(digits) * factor)
        except ValueError:
            return None
        unit = found[2].lower().rstrip("s")
        unit = {"char": "character", "letter": "character"}.get(unit, unit)
        return (max(count, 1), unit) if count else None
    return (300, "word") if _LONG.search(prompt) and _VERB.search(prompt) else None


def _topic(prompt: str) -> str:
    found = re.search(r"(?i)\b(?:about|on|of)\s+(?!\d)(?:the\s+)?([^.,;:?!\n]{3,40})", prompt)
    words = [word for word in (found[1].split() if found else []) if fold(word) not in STOP]
    kept = [word for word in words if not re.fullmatch(r"(?i)\d+|words?|characters?|paragraphs?|tokens?|text", word)]
    return " ".join(kept[:4]) or "this subject"


def _sentence(topic: str, at: int) -> str:
    seed = hashlib.sha256(f"{topic}/{at}".encode("utf-8", "replace")).digest()
    first, second = seed[1] % len(_NOUNS), seed[2] % (len(_NOUNS) - 1)
    second += second >= first
    sentence = _TEMPLATES[seed[0] % len(_TEMPLATES)].format(topic=topic, a=_NOUNS[first], b=_NOUNS[second])
    return sentence[0].upper() + sentence[1:]


def _paragraphs(topic: str, characters: int) -> str:
    """Paragraphs under headings, at least this long."""
    blocks: list[str] = [f"# About {topic}"]
    total, at, part = len(blocks[0]), 0, 0
    while total < characters:
        if part and part % 4 == 0:
            blocks.append(f"## Part {part // 4 + 1}")
        sentences = [_sentence(topic, at + offset) for offset in range(3 + part % 3)]
        blocks.append(" ".join(sentences))
        at, part = at + len(sentences), part + 1
        total += len(blocks[-1]) + 2
    return "\n\n".join(blocks)


def write(prompt: str) -> str | None:
    """A text of the length the prompt asks for, or None if it asks for none.

    Words, characters, sentences, lines and paragraphs are met exactly, tokens about.
    """
    asked = wanted(prompt)
    if asked is None:
        return None
    count, unit = asked
    topic = _topic(prompt)
    if unit in ("paragraph", "sentence", "line"):
        count = min(count, 5_000)
        made = [_sentence(topic, at) for at in range(count * (3 if unit == "paragraph" else 1))]
        if unit == "paragraph":
            made = [" ".join(made[at : at + 3]) for at in range(0, len(made), 3)]
        return {"paragraph": "\n\n", "sentence": " ", "line": "\n"}[unit].join(made)
    characters = min(count if unit == "character" else count * 10, MOST)
    text = _paragraphs(topic, characters)
    if unit == "character":
        return text[: characters - 1] + "." if characters < len(text) else text
    words = list(re.finditer(r"\S+", text))
    least = count if unit == "word" else round(count * 0.75)
    end = words[min(least, len(words)) - 1].end()
    return text[:end].rstrip(",;:–") + ("" if text[end - 1] in ".!?" else "…")
