"""What the conversation itself knows: what was asked, and what the user said about themselves."""

from __future__ import annotations

import re

from ..wire.neutral import Ask, Turn
from .results import plain

_END = r"(?=[.,;!?\n]|\s+(?:and|but|so|or)\s+(?:i|my|what|how)\b|$)"
_NAME = re.compile(r"\b(?i:my name is|my name's|call me)\s+([^\W\d_][\w'’-]*(?:\s+[A-ZÀ-Þ][\w'’-]+)*)")
_I_AM = re.compile(r"(?:^|[.!?,]\s*)(?:I am|I'm|I’m)\s+([A-ZÀ-Þ][\w'’-]+)(?=[.,;!?\n]|\s+and\b|$)")
_FACT = re.compile(rf"(?i)\bmy\s+((?:[\w'’-]+\s+){{0,3}}[\w'’-]+?)\s+(?:is|are|=)\s+(?!the same\b)(.+?){_END}")
_PLACE = re.compile(rf"(?i)\bI\s+(live|work|study)\s+(?:in|at|for)\s+(.+?){_END}")
_LIKES = re.compile(
    rf"(?i)\bI\s+(?:really\s+)?(like|love|prefer|hate|have|own)\s+(?!to know\b|a question\b)(.+?){_END}"
)
_ASKS_FACT = re.compile(
    r"(?i)\b(?:what(?:'s| is| are| was)|who(?:'s| is| are)|do you (?:know|remember)|tell me)\s+(?:again\s+)?"
    r"my\s+([\w'’ -]+?)\s*(?:again)?\s*[?.!]*$"
)
_ASKS_WHO = re.compile(
    r"(?i)\bwho am i\b|\bwhat(?:'s| is) my name\b|\bdo you (?:know|remember) (?:my name|who i am|me)\b"
)
_ASKS_PLACE = re.compile(r"(?i)\bwhere do i (live|work|study)\b")
_ASKS_LIKES = re.compile(r"(?i)\bwhat do i (like|love|prefer|hate|have|own)\b")
_WHICH = "first|second|third|last|before|earlier|previously|previous|at first|in the beginning"
_ASKED = re.compile(
    rf"(?i)\bwhat (?:did i (?:just )?(?:ask|say|want|write)|was my (?P<nth>{_WHICH}) (?:question|message|prompt))"
    rf"(?:\s+(?:you|about|for|to you))*\s*(?P<when>{_WHICH})?"
)
_COUNT = re.compile(r"(?i)\bhow many (?:questions|messages|things|prompts|times) (?:did|have) i\b")
_SUMMARY = re.compile(r"(?i)\b(?:summari[sz]e|recap|sum up) (?:our|this|the) (?:conversation|chat|discussion)\b")
_AGAIN = re.compile(r"(?i)^\W*(?:please\s+)?(?:repeat|say) (?:that|it|this)(?: again)?(?: please)?\W*$")


def user_texts(ask: Ask) -> list[str]:
    """What the user wrote, oldest first, without the prompt that is to be answered."""
    return [turn.text for turn in ask.turns if turn.role == "user" and turn.text.strip()][:-1]


def facts(texts: list[str]) -> dict[str, str]:
    """What the user said about themselves: ``{"name": "Ada", "favourite colour": "blue", "live": "Oslo"}``."""
    known: dict[str, str] = {}
    for text in texts:
        for found in _FACT.finditer(text):
            if not found[1].lower().startswith(("question", "problem")) and "?" not in found[2]:
                known[found[1].lower()] = found[2].strip()
        for found in _PLACE.finditer(text):
            known[found[1].lower()] = found[2].strip()
        for found in _LIKES.finditer(text):
            known[found[1].lower()] = found[2].strip()
        for found in (*_I_AM.finditer(text), *_NAME.finditer(text)):
            known["name"] = found[1].strip()
    return known


def recall(ask: Ask) -> str | None:
    """Answer a question about the conversation itself, or None if the prompt is no such question."""
    prompt, before = ask.prompt, user_texts(ask)
    known = facts(before)
    if _ASKS_WHO.search(prompt):
        return f"Your name is **{plain(known['name'])}**." if "name" in known else "You have not told me your name yet."
    if found := _ASKS_PLACE.search(prompt) or _ASKS_LIKES.search(prompt):
        verb = found[1].lower()
        linked = f"{verb} in" if verb in ("live", "work", "study") else verb
        return f"You {linked} **{plain(known[verb])}**." if verb in known else "You have not told me that yet."
    if found := _ASKS_FACT.search(prompt):
        key = found[1].lower().strip()
        value = known.get(key) or known.get(key.replace("color", "colour")) or known.get(key.replace("colour", "color"))
        if value:
            return f"Your {plain(key)} is **{plain(value)}**."
        return f"You have not told me your {plain(key)} yet."
    if found := _ASKED.search(prompt):
        return _what_was_asked(before, (found["nth"] or found["when"] or "last").lower())
    if _COUNT.search(prompt):
        count = len(before) + 1
        return f"This is your **{count}{_ordinal(count)}** message in this conversation."
    if _SUMMARY.search(prompt):
        if not before:
            return "There is nothing to sum up yet: this is your first message."
        return "So far you asked:\n\n" + "\n".join(f"{at}. {plain(text, 100)}" for at, text in enumerate(before, 1))
    if _AGAIN.search(prompt):
        said = last_answer(ask)
        return said or "I have not said anything yet."
    return None


def _what_was_asked(before: list[str], which: str) -> str:
    if not before:
        return "Nothing yet: this is your first message."
    places = {"first": 0, "at first": 0, "in the beginning": 0, "second": 1, "third": 2}
    at = places.get(which, len(before) - 1)
    if at >= len(before):
        return f"You have only sent {len(before)} message(s) before this one."
    when = "first" if at == 0 else "last" if at == len(before) - 1 else which
    return f"You asked {when}: “{plain(before[at], 300)}”"


def _ordinal(number: int) -> str:
    return "th" if 10 <= number % 100 <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def last_answer(ask: Ask) -> str:
    """What the assistant said last, or ""."""
    spoken = (turn.text for turn in reversed(ask.turns) if turn.role == "assistant" and turn.text.strip())
    return next(spoken, "")


def acknowledge(prompt: str) -> str | None:
    """The reply to a prompt that only tells something about the user."""
    told = facts([prompt])
    if not told or "?" in prompt:
        return None
    if "name" in told:
        return f"Nice to meet you, {plain(told['name'])}! I will remember your name for this conversation."
    key, value = next(iter(told.items()))
    return f"Noted: {plain(key)} – {plain(value, 100)}. I will remember that for this conversation."


def last_calls(ask: Ask) -> list[Turn]:
    """The assistant's turns that called tools, the latest first."""
    return [turn for turn in reversed(ask.turns) if turn.role == "assistant" and turn.calls]
