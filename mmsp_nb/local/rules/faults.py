"""Failures on order: prompts of the form ``demo: ...`` that show what can go wrong, and how it is reported."""

from __future__ import annotations

import re
from dataclasses import dataclass

COMMANDS = {
    "fail 401": "refuse with this HTTP status (any of 400 to 599; `fail 429` and `fail 503` say when to retry)",
    "fail 429 once": "refuse once (or `twice`), then answer: shows a retry",
    "error after 200": "begin to answer, then report an error inside the stream (`error 529` names its status)",
    "cut": "break the connection in the middle of the answer",
    "slow": "wait 0.3 s before every piece (`slow 0.05` sets the seconds)",
    "hang": "begin to answer and then say nothing more until the caller leaves",
    "empty": "a complete answer without any content",
    "no usage": "leave out the token counts",
    "no finish": "stop without saying why",
    "html": "answer with a web page, as a wrong address or a login page would",
    "broken json": "send a piece that is no JSON",
    "broken arguments": "call the first tool with arguments that are no JSON",
    "unknown tool": "call a tool that does not exist",
    "think": "show reasoning although none was asked for",
    "help": "list these",
}
"""What may follow ``demo:`` in a prompt, with what it does."""

_ORDER = re.compile(r"(?i)(?:^|\n|[.!?]\s+)\W{0,3}demo:\s*([a-z][^\n.!?]*(?:\.\d[^\n.!?]*)?)")
_STATUS = re.compile(r"(?i)^fail\w*\s+(?:with\s+)?(\d{3})(?:\s+(once|twice))?")


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that a prompt orders.

    ``kind`` is the command's first words; ``status`` belongs to "fail" and "error", ``times`` limits a "fail"
    (0 = always), ``seconds`` belong to "slow".
    """

    kind: str
    status: int = 0
    times: int = 0
    seconds: float = 0.0


def ordered(prompt: str) -> Fault | None:
    """The failure that ``prompt`` orders, or None. An unknown order counts as ``help``."""
    found = _ORDER.search(prompt)
    if not found:
        return None
    order = " ".join(found[1].lower().split()).rstrip(".!? ")
    if status := _STATUS.match(order):
        code = int(status[1])
        if 400 <= code <= 599:
            return Fault("fail", code, {"once": 1, "twice": 2}.get(status[2] or "", 0))
        return Fault("help")
    if order.startswith("error"):
        code = next((int(number) for number in re.findall(r"\b[45]\d\d\b", order)), 500)
        return Fault("error", code)
    if order.startswith("slow"):
        number = re.search(r"\d+(?:\.\d+)?", order)
        return Fault("slow", seconds=min(float(number[0]), 60.0) if number else 0.3)
    plain = order.replace("-", " ")
    plain = {"overloaded": "error", "disconnect": "cut", "invalid json": "broken json"}.get(plain, plain)
    plain = plain.replace("bad ", "broken ")
    return Fault(plain if plain in COMMANDS else "help")


def without_order(prompt: str) -> str:
    """``prompt`` without the order: "demo: slow" before a question still gets the question answered."""
    return _ORDER.sub(" ", prompt).strip()


def help_text() -> str:
    """The commands as Markdown."""
    lines = [f"- `demo: {command}` – {effect}" for command, effect in COMMANDS.items()]
    return "Write one of these in your prompt to see what happens:\n\n" + "\n".join(lines)


MESSAGES = {
    400: "The demo was told to find this request invalid.",
    401: "Incorrect API key provided (the demo was told to say so).",
    403: "This key may not use the model (the demo was told to say so).",
    404: "The model does not exist (the demo was told to say so).",
    413: "The request is too large (the demo was told to say so).",
    429: "Rate limit reached, please slow down (the demo was told to say so).",
    500: "The server had an error while processing your request (the demo was told to say so).",
    503: "The engine is currently overloaded (the demo was told to say so).",
    529: "Overloaded (the demo was told to say so)",
}


def message(status: int) -> str:
    """What the demo says when it fails with ``status``."""
    return MESSAGES.get(status, f"The demo was told to fail with status {status}.")
