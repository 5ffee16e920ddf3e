"""Plain conversation: what the demo model answers when no tool and no memory is asked for."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from ..wire.neutral import Ask
from . import knowledge, values
from .images import describe
from .kinds import LANGUAGES
from .memory import last_answer
from .results import plain
from .words import fold, stem, stems

SIGNATURE = "*– demo model: simple rules, no real language model behind it*"
"""The one line at the end of every answer that says who is speaking."""

_GREETING = re.compile(
    r"(?i)^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon)|hallo|bonjour|hola)\b(?:[\s,]+\w+)?\W*$"
)
_WHO = re.compile(
    r"(?i)\b(?:who|what) (?:are|r) you\b|\bintroduce yourself\b|\bwhat(?:'s| is) your name\b|\bwhich model\b"
)
_CAN = re.compile(r"(?i)\bwhat can you do\b|\bhow do you work\b|^\W*help\W*$")
_THANKS = re.compile(r"(?i)^\W*(?:thanks?|thank you|great|perfect|nice|cool|ok(?:ay)?|bye|goodbye)\b[^?]{0,40}$")
_CAPITAL = re.compile(r"(?i)\bcapital(?:s| city| cities)?\s+of\s+(.+?)\s*[?.!]*$")
_LIST = re.compile(
    r"(?i)\b(?:list|name|give|tell|suggest|write|recommend|what are)\b[^.?!]*?\b"
    rf"(\d+|{'|'.join(values.NUMBER_WORDS)})\s+(?:\w+\s+){{0,2}}?(\w+)"
)
_ECHO = re.compile(
    r"(?is)^\W*(?:please\s+)?(?:say|repeat|echo|print|reply with|answer with|respond with)"
    r"(?: after me| only| exactly| just)*[:,]?\s+(.+)$"
)
_COUNT = re.compile(r"(?i)\bcount (?:from (\d+) )?(?:up )?to (\d+)\b")
_SUMS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def calculate(text: str) -> int | float | None:
    """The value of an arithmetic expression, or None if it is none, or too large to be worth it."""
    text = text.replace("×", "*").replace("÷", "/").replace("^", "**").replace(",", "")
    text = re.sub(r"(?<=\d)\s*x\s*(?=\d)", "*", text)

    def value(node: ast.AST) -> int | float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = value(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Pow) and (abs(right) > 64 or abs(left) > 1e6):
                raise ValueError(text)
            result = _SUMS[type(node.op)](left, right)
            if isinstance(result, int | float) and abs(result) < 1e100:
                return result
        raise ValueError(text)

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        return None


def _sum(prompt: str) -> str | None:
    spoken = prompt
    for words, sign in (
        ("plus", "+"),
        ("minus", "-"),
        ("times|multiplied by", "*"),
        ("divided by", "/"),
        ("squared", "**2"),
    ):
        spoken = re.sub(rf"(?i)\b(?:{words})\b", sign, spoken)
    for word, number in values.NUMBER_WORDS.items():
        spoken = re.sub(rf"(?i)\b{word}\b", str(number), spoken)
    found = re.search(r"[\d(][\d\s.,()+*/^×÷x%-]*[\d)]", spoken)
    if not found or not re.search(r"[+*/^×÷x%-]", found[0]):
        return None
    result = calculate(found[0])
    if result is None or re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", found[0]):
        return None
    shown = found[0].replace("**", "^").replace("*", "×").strip()
    return f"{shown} = **{result:g}**" if isinstance(result, float) else f"{shown} = **{result}**"


def _capital(prompt: str) -> str | None:
    found = _CAPITAL.search(prompt)
    if not found:
        return None
    lands = [re.sub(r"^the ", "", part.strip().lower()) for part in re.split(r",|\band\b", found[1]) if part.strip()]
    known = [(land, knowledge.table("capitals")[land]) for land in lands if land in knowledge.table("capitals")]
    if not known:
        return (
            f"I do not know the capital of {plain(found[1])}: I know only {len(knowledge.table('capitals'))} by heart."
        )
    shown = [land.upper() if len(land) <= 3 else land.title() for land, _ in known]
    if len(known) == 1:
        return f"The capital of {shown[0]} is **{known[0][1]}**."
    return "\n".join(f"- {land}: **{city}**" for land, (_, city) in zip(shown, known, strict=True))


def _list(prompt: str) -> str | None:
    found = _LIST.search(prompt)
    if not found:
        return None
    count = int(found[1]) if found[1].isdigit() else values.NUMBER_WORDS[found[1].lower()]
    asked = prompt[: found.start()] + found[0].partition(" ")[2] + prompt[found.end() :]  # "name" asks for no names
    wanted = {stem(word) for word in re.findall(r"\w+", asked)}
    for thing, entries in knowledge.table("lists").items():
        if stem(thing) in wanted or (thing == "colour" and stem("color") in wanted):
            chosen = (entries * (count // len(entries) + 1))[: min(count, 50)]
            return "\n".join(f"{at}. {entry}" for at, entry in enumerate(chosen, 1))
    if not re.search(r"(?i)\b(?:list|name|suggest)\b", prompt) or not 0 < count <= 50:
        return None
    thing = plain(found[2])
    return "\n".join(f"{at}. {thing} number {at}" for at in range(1, count + 1))


def _program(prompt: str) -> str | None:
    """A program that is known by name."""
    known = [word for word in knowledge.table("code") if word and word in prompt.lower()]
    return _code(prompt) if known else None


def _code(prompt: str) -> str | None:
    if not re.search(r"(?i)\b(?:code|function|script|program|snippet|python|example)\b", prompt):
        return None
    if not re.search(r"(?i)\b(?:write|show|give|make|code|example|create|implement|how (?:do|can|to))\b", prompt):
        return None
    return f"Here is some Python:\n\n```python\n{knowledge.first('code', prompt.lower())}\n```"


def _table(prompt: str) -> str | None:
    if not re.search(r"(?i)\btable\b", prompt) or not re.search(
        r"(?i)\b(?:make|show|give|write|create|draw|as|in|a)\b", prompt
    ):
        return None
    found = knowledge.first("tables", prompt.lower())
    head, rows = found["head"], found["rows"]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _formula(prompt: str) -> str | None:
    if not re.search(r"(?i)\b(?:formula|latex|equation|theorem|integral|identity|katex|mathjax)\b", prompt):
        return None
    sentence, formula = knowledge.first("formulas", prompt.lower())
    return f"{sentence}\n\n$$\n{formula}\n$$"


def _haiku(prompt: str) -> str | None:
    if not re.search(r"(?i)\b(?:haiku|poem|verse|rhyme)\b", prompt):
        return None
    low = fold(prompt).replace("ocean", "sea").replace("program", "code").replace("fall ", "autumn ")
    lines = knowledge.first("haikus", low)
    return "  \n".join(lines.split("\n"))


def _translation(prompt: str) -> str | None:
    found = re.search(rf"(?i)\b(?:in|to|into)\s+({'|'.join(LANGUAGES)})\b", prompt)
    if not found or not re.search(r"(?i)\b(?:translate|say|how|what)\b", prompt):
        return None
    low = prompt.lower()
    for phrase, languages in knowledge.table("phrases").items():
        if phrase in low and found[1].lower() in languages:
            return f"“{phrase}” in {found[1].title()} is **{languages[found[1].lower()]}**."
    known = ", ".join(f"“{phrase}”" for phrase in knowledge.table("phrases"))
    return f"I cannot translate that. The few phrases I know are {known}."


def _explanation(prompt: str) -> str | None:
    asked = set(stems(prompt))
    for words, text in knowledge.table("about").items():
        if set(stems(words)) <= asked:
            return text
    if "llm" in prompt.lower():
        return knowledge.table("about")["large language model"]
    return None


def _count(prompt: str) -> str | None:
    found = _COUNT.search(prompt)
    if not found:
        return None
    first, last = int(found[1] or 1), int(found[2])
    return ", ".join(map(str, range(first, min(last, first + 999) + 1))) + "."


def _echo(prompt: str) -> str | None:
    found = _ECHO.match(prompt.strip())
    if not found or re.match(r"(?i)(?:that|it|something|what|why|how)\b", found[1]):
        return None
    said = next(iter(values.quoted(found[1])), found[1]).strip()
    return re.sub(r"(?i)^(?:the words?|the sentence)\s+", "", said)


def _small_talk(prompt: str) -> str | None:
    if _GREETING.match(prompt):
        return "Hello! 👋 Ask me something, or give me a function as a tool and see me call it."
    if _WHO.search(prompt):
        return (
            "I am the **demo model** of mmsp_nb: a set of rules that answers over the real wire formats, so that all "
            "of it can be tried without a key. I call tools, remember this conversation and know a handful of facts."
        )
    if _CAN.search(prompt):
        return (
            "I can\n\n- call your **tools** (also several at once) and put their results into words,\n"
            "- remember what you told me in this conversation,\n"
            "- write a haiku, a list, a table, some Python, a formula,\n"
            "- do sums, and write long texts (“write about 500 words”),\n- fail on purpose: say `demo: help` for how."
        )
    if _THANKS.match(prompt):
        return "You are welcome!"
    if re.search(r"(?i)\bjoke\b", prompt):
        jokes = knowledge.table("jokes")["all"]
        return str(jokes[len(prompt) % len(jokes)])
    return None


_RULES: tuple[Callable[[str], str | None], ...] = (
    _small_talk, _echo, _count, _capital, _translation, _haiku, _table, _formula,
    _program, _explanation, _code, _list, _sum,
)  # fmt: skip


def reply(ask: Ask) -> str:
    """An answer in Markdown, without the signature. Always says something."""
    prompt = ask.prompt.strip()
    images = [image for turn in ask.turns[-1:] for image in turn.images]
    if images:
        return describe(images)
    if not prompt:
        return "You sent me an empty message. Ask me something!"
    for rule in _RULES:
        said = rule(prompt)
        if said is not None:
            return said
    if re.match(r"(?i)^\W*(?:and\s+)?why\b.{0,12}$", prompt) and last_answer(ask):
        return "Because my rules say so: I am only a demo and cannot explain my answers."
    if re.match(r"(?i)^\W*(?:go on|continue|more|tell me more)\W*$", prompt) and last_answer(ask):
        return "That is all I know about it."
    return (
        f"I cannot really answer “{plain(prompt, 120)}”, because no language model is connected. "
        "Set the API key of a provider (such as `OPENAI_API_KEY`), or run `python -m mmsp_nb.local fetch` for a small "
        "real model on this machine. Meanwhile I can show tools, tables, code, formulas and long texts."
    )


def styled(text: str, system: str) -> str:
    """``text`` as the system prompt wants it; the demo understands brevity, capitals and pirates."""
    low = system.lower()
    if re.search(r"\b(?:one sentence|single sentence|briefly|brief|concise|short answers?|be short)\b", low):
        head = re.match(r"[^\n]*?[.!?](?=\s|$)", text)
        text = head[0] if head and "```" not in text[: head.end()] else text
    if re.search(r"\b(?:upper ?case|capital letters|all caps)\b", low):
        text = text.upper()
    if "pirate" in low:
        text = f"Arr! {text}"
    return text
