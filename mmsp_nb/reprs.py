"""Turns as static text and HTML: bounded, escaped, without times and ids, so that a notebook can be compared.

What a model or a tool wrote is only ever text here: it is escaped, and key-shaped text is hidden.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.styles import WRAPPED
from mmsp_nb.turns import Turn

__all__ = ["answer_html", "answer_text", "conversation_html", "conversation_text"]

ITEMS = 20
"""So many items, the last ones, are shown of a conversation; of those before it is said how many there are."""

ITEM = 2_000
"""Characters shown of one item in HTML; in text a line."""

TOTAL = 40_000
"""Characters of HTML for the items of a conversation; earlier ones beyond it are counted only."""

ANSWER = 20_000
"""Characters shown of an answer."""

LINE = 100

_LIMITS = {
    "max_turns": "stopped at the limit of requests",
    "max_calls": "stopped at the limit of calls",
    "max_cost": "stopped at the limit of cost",
}

_PRE = f"{WRAPPED};margin:.2em 0"


def conversation_text(title: str, turns: Sequence[Turn]) -> str:
    """A conversation in a few lines: a title, then a line for each of the last items."""
    lines = [mask_keys(title)]
    shown = _last(turns)
    if more := _more(turns, shown):
        lines.append(f"  ... {more}")
    for turn, items in shown:
        lines += [f"  {label}: {_line(text)}" for label, text in items]
        if note := _note(turn):
            lines.append(f"  [{note}]")
    return "\n".join(lines)


def conversation_html(title: str, turns: Sequence[Turn]) -> str:
    """The last items of a conversation as nested ``<details>``: one a turn, the last one open, and one for each item
    that is neither a question nor an answer."""
    blocks: list[str] = []
    budget = TOTAL
    last = _last(turns)
    for turn, items in reversed(last):
        body = ""
        said = _line(turn.prompt)
        for number, (label, text) in enumerate(items):
            if not number and label == "you" and text == said:
                continue  # the line above says it
            if budget <= 0:
                body += "<div><i>more is not shown</i></div>"
                break
            block = _item(label, text)
            budget -= len(block)
            body += block
        if note := _note(turn):
            body += f"<div><i>{_escape(note)}</i></div>"
        summary = _escape(said or "(continued)")
        state = "" if blocks else " open"
        blocks.append(f"<details{state}><summary>{summary}</summary>{body}</details>")
    more = f"<div><i>{_more(turns, last)}</i></div>" if _more(turns, last) else ""
    head = f"<div><b>{_escape(mask_keys(title))}</b></div>{more}"
    return f'<div class="mmsp-conversation">{head}{"".join(reversed(blocks))}</div>'


def _item(label: str, text: str) -> str:
    block = _block(text, ITEM)
    if not label.endswith(")") and label != "result":
        return f"<div><b>{_escape(label)}</b>{block}</div>"
    line = _line(text)
    return f"<details><summary><b>{_escape(label)}</b> {_escape(line)}</summary>{block}</details>"


def _last(turns: Sequence[Turn]) -> list[tuple[Turn, list[tuple[str, str]]]]:
    """The turns of the last items, each with those of its items."""
    shown: list[tuple[Turn, list[tuple[str, str]]]] = []
    left = ITEMS
    for turn in reversed(turns):
        if left <= 0:
            break
        items = list(_items(turn))
        shown.append((turn, items[-left:]))
        left -= max(len(items), 1)
    return shown[::-1]


def _more(turns: Sequence[Turn], shown: Sequence[tuple[Turn, list[tuple[str, str]]]]) -> str:
    """How much there is before what is shown; empty for nothing."""
    count = sum(len(message["content_items"]) for turn in turns for message in turn.messages)
    count -= sum(len(items) for _, items in shown)
    return f"{count:,} more item{'' if count == 1 else 's'} before" if count > 0 else ""


def answer_text(turn: Turn) -> str:
    """The text of an answer, bounded, with a note when it is not complete."""
    text = _bounded(turn.text, ANSWER)
    note = _note(turn)
    return f"{text}\n[{note}]".lstrip("\n") if note else text


def answer_html(turn: Turn) -> str:
    """The text of an answer, escaped, with a note when it is not complete."""
    note = f"<div><i>{_escape(_note(turn))}</i></div>" if _note(turn) else ""
    return f'<div class="mmsp-answer">{_block(turn.text, ANSWER)}{note}</div>'


def _escape(text: str) -> str:
    """``text`` as HTML, with the marks of TeX set apart: MathJax would make links of it, and formulas of prices."""
    return re.sub(r"[$\\]", lambda mark: f"<span>{mark.group()}</span>", html.escape(text))


def _block(text: str, limit: int) -> str:
    return f'<div style="{_PRE}">{_escape(_bounded(text, limit))}</div>'


def _items(turn: Turn) -> Iterator[tuple[str, str]]:
    for message in turn.messages:
        yield from _labelled(message, turn.model)


def _labelled(message: UniMessage, model: str) -> Iterable[tuple[str, str]]:
    who = "you" if message["role"] == "user" else model
    for item in message["content_items"]:
        kind = item["type"].partition(".")[0]
        if kind == "text":
            yield who, item["text"]
        elif kind == "thinking":
            if item["thinking"].strip():
                yield f"{who} (thinking)", item["thinking"]
        elif kind == "tool_call":
            yield f"{who} (call)", f"{item['name']}({_arguments(item['arguments'])})"
        elif kind == "tool_result":
            images = f" [{len(item['images'])} images]" if item.get("images") else ""
            yield "result", item["text"] + images
        else:
            yield who, _other(kind, item)


def _other(kind: str, item: Item) -> str:
    if kind == "image_url":
        url = item["image_url"]
        return f"[image {url}]" if url[:5].lower() != "data:" else f"[image, {len(url):,} characters]"
    if kind == "embedding":
        return f"[embedding of {len(item['embedding']):,} numbers]"
    if kind in ("inline_data", "inline_thinking"):
        return f"[{item['mime_type']}, {len(item['data']):,} bytes]"
    return f"[{kind}]"  # a server may be newer than we are


def _arguments(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        return repr(arguments)
    written = ((name, json.dumps(value, ensure_ascii=False, default=repr)) for name, value in arguments.items())
    return ", ".join(f"{name}={value}" for name, value in written)


def _note(turn: Turn) -> str:
    """What is not usual about a turn, in a few words; empty for one that was answered."""
    if turn.state == "running":
        return "running"
    if turn.error is not None:
        kind = getattr(turn.error, "kind", None) or type(turn.error).__name__
        return _line(f"{turn.state}: {kind}: {turn.error}")
    if turn.state == "partial":
        return "interrupted"
    if turn.reason == "approval":
        return f"waits for approval: {', '.join(_line(call.name) for call in turn.waiting)}"
    return _LIMITS.get(turn.reason or "", "")


def _line(text: str) -> str:
    return _bounded(" ".join(text[: 10 * LINE].split()), LINE)


def _bounded(text: str, limit: int) -> str:
    """The beginning of ``text``, with key-shaped text hidden, also where the cut goes through it."""
    shown = mask_keys(text[: limit + 300])
    shown = shown.encode("utf-8", "replace").decode("utf-8")  # half an emoji cannot be printed
    return shown if len(shown) <= limit else f"{shown[:limit]}..."
