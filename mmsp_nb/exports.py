"""A conversation as a document: Markdown, HTML, a notebook, and Python code that asks it again.

What a model or a tool wrote is only ever text: fenced in Markdown where it could be taken for more, escaped or
rendered by the safe renderer in HTML, quoted in Python. Key-shaped text is hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmsp_nb import files
from mmsp_nb.masking import mask_keys
from mmsp_nb.media import Picture, sniff
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.turns import Turn

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["FORMATS", "arguments_text", "export", "text_of", "turn_markdown", "turns_python"]

FORMATS = {"markdown": ".md", "html": ".html", "notebook": ".ipynb", "python": ".py"}

_PICTURE = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,[A-Za-z0-9+/=\s]+\Z", re.IGNORECASE)
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
:root{{color-scheme:light dark}}
body{{font:16px/1.55 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}
article{{margin:1.4rem 0}}h2{{font-size:.85rem;opacity:.75;margin:1rem 0 .2rem}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#8882;padding:.6em .8em;border-radius:6px}}
img{{max-width:100%}}details{{margin:.4rem 0}}summary{{cursor:pointer}}.you{{background:#4a8bf51c;padding:.1rem .9rem;
border-radius:10px}}.note{{opacity:.75;font-size:.9em}}table{{border-collapse:collapse}}td,th{{border:1px solid #8886;
padding:.2em .6em}}{css}
</style>
<h1>{title}</h1>
{body}
</html>
"""


def export(conversation: Conversation, path: str | Path | None = None, *, format: str | None = None) -> str:
    """See `Conversation.export`. Raises ValueError for a format that does not exist."""
    target = None if path is None else Path(path).expanduser()
    if format is None:
        suffix = "" if target is None else target.suffix.lower()
        format = next((name for name, ending in FORMATS.items() if ending == suffix), None)
        if format is None:
            known, endings = ", ".join(FORMATS), ", ".join(FORMATS.values())
            what = "" if target is None else f"cannot tell the format of {str(target)!r} by its ending: "
            raise ValueError(f"{what}give a format ({known}), or a path that ends with {endings}")
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}{did_you_mean(format, list(FORMATS))}; there are {', '.join(FORMATS)}")
    turns = [turn for turn in conversation.turns if turn.state != "running"]
    text = {"markdown": _markdown, "html": _html, "notebook": _notebook, "python": _python}[format](conversation, turns)
    if target is not None:
        files.write(target, text)
    return text


# one item as text, also for `diff`


def text_of(message: UniMessage, item: Item) -> tuple[str, str]:
    """A label and the plain text of an item."""
    who = "you" if message["role"] == "user" else "model"
    kind = item["type"].partition(".")[0]
    if kind == "text":
        return who, item["text"]
    if kind == "thinking":
        return "thinking", item["thinking"]
    if kind == "tool_call":
        return "call", f"{item['name']}({arguments_text(item['arguments'])})"
    if kind == "tool_result":
        count = len(item.get("images") or ())
        return "result", item["text"] + (f"\n[{count} pictures]" if count else "")
    if kind == "image_url":
        url = item["image_url"]
        return who, "[picture]" if url[:5].lower() == "data:" else f"[picture {url}]"
    if kind == "embedding":
        return who, f"[embedding of {len(item['embedding']):,} numbers]"
    if kind in ("inline_data", "inline_thinking"):
        return who, f"[{item['mime_type']}, {len(item['data']):,} bytes]"
    return who, f"[{item['type']}]"


def arguments_text(arguments: Any) -> str:
    """The arguments of a call as they would be written in Python, nearly."""
    if not isinstance(arguments, Mapping):
        return repr(arguments)
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=repr)}" for name, value in arguments.items()
    )


# Markdown


def _markdown(conversation: Conversation, turns: list[Turn]) -> str:
    head = f"# {_title(conversation)}\n"
    if conversation.system:
        head += f"\n{_quoted('system', str(conversation.system))}\n"
    return mask_keys(head) + "".join(f"\n{turn_markdown(turn)}" for turn in turns)


def turn_markdown(turn: Turn) -> str:
    """One turn as Markdown."""
    parts: list[str] = []
    speaker = ""
    for message in turn.messages:
        for item in message["content_items"]:
            kind = item["type"].partition(".")[0]
            who = "You" if message["role"] == "user" and kind != "tool_result" else turn.model
            if who != speaker:
                parts.append(f"**{_inline(who)}**")
                speaker = who
            parts.append(_markdown_item(message, item))
    if note := note_of(turn):
        parts.append(f"*{_inline(note)}*")
    return mask_keys("\n\n".join(part for part in parts if part)) + "\n"


def _markdown_item(message: UniMessage, item: Item) -> str:
    kind = item["type"].partition(".")[0]
    label, text = text_of(message, item)
    if kind == "text":
        return text
    if kind in ("thinking", "tool_call", "tool_result"):
        return _quoted(label, text)
    url = _picture(item)
    return f"![picture]({url})" if url else _inline(text)


def _quoted(label: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{label}:\n\n{fence}text\n{text}\n{fence}"


def _inline(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def note_of(turn: Turn) -> str:
    """What is not usual about a turn; empty for one that was answered."""
    notes = []
    if turn.error is not None:
        kind = getattr(turn.error, "kind", None) or type(turn.error).__name__
        notes.append(f"{turn.state}: {kind}: {turn.error}")
    elif turn.state == "partial":
        notes.append("interrupted")
    elif turn.reason == "max_turns":
        notes.append("stopped at the limit of requests")
    if turn.estimated:
        notes.append("tokens estimated")
    notes += [name for name in ("hidden", "stale", "summary") if getattr(turn, name)]
    return ", ".join(notes)


# HTML


def _html(conversation: Conversation, turns: list[Turn]) -> str:
    from mmsp_nb.notebook.markdown import CODE_CSS, TABLE_CSS

    body = "\n".join(_article(turn) for turn in turns)
    if conversation.system:
        system = escape(mask_keys(str(conversation.system)))
        body = f"<details><summary>system prompt</summary><pre>{system}</pre></details>\n{body}"
    return _PAGE.format(title=escape(mask_keys(_title(conversation))), body=body, css=CODE_CSS + TABLE_CSS)


def _article(turn: Turn) -> str:
    parts: list[str] = []
    speaker = ""
    for message in turn.messages:
        for item in message["content_items"]:
            kind = item["type"].partition(".")[0]
            you = message["role"] == "user" and kind != "tool_result"
            who = "You" if you else turn.model
            if who != speaker:
                parts.append(f"<h2>{escape(who)}</h2>")
                speaker = who
            html = _html_item(message, item)
            parts.append(f'<div class="you">{html}</div>' if you else html)
    if note := note_of(turn):
        parts.append(f'<p class="note">{escape(mask_keys(note))}</p>')
    return f"<article>{''.join(parts)}</article>"


def _html_item(message: UniMessage, item: Item) -> str:
    from mmsp_nb.notebook.formulas import mathml
    from mmsp_nb.notebook.markdown import to_html

    kind = item["type"].partition(".")[0]
    label, text = text_of(message, item)
    text = mask_keys(text)
    if kind == "text":
        return to_html(text, formula=mathml)
    if kind in ("thinking", "tool_call", "tool_result"):
        summary = escape(label if kind == "thinking" else " ".join(text.split())[:100])
        html = f"<details><summary>{summary}</summary><pre>{escape(text)}</pre></details>"
        pictures = [url for url in item.get("images") or () if _PICTURE.match(url)]
        return html + "".join(f'<img alt="picture of the result" src="{escape(url)}">' for url in pictures)
    url = _picture(item)
    return f'<img alt="picture" src="{escape(url)}">' if url else f"<p>{escape(text)}</p>"


def _picture(item: Item) -> str | None:
    """A data URL of a picture that an item is; None for all else, addresses in the net included."""
    if item["type"].startswith("image_url"):
        return item["image_url"] if _PICTURE.match(item["image_url"]) else None
    if item["type"].startswith("inline_data") and isinstance(item["data"], bytes):
        mime_type = sniff(item["data"])
        return None if mime_type is None else Picture(mime_type, item["data"]).url
    return None


# a notebook


def _notebook(conversation: Conversation, turns: list[Turn]) -> str:
    cells = [_cell("markdown", f"# {_inline(mask_keys(_title(conversation)))}"), _cell("code", "%load_ext mmsp_nb")]
    options = _options(conversation, turns)
    for number, turn in enumerate(turns):
        if not turn.prompt.strip():
            cells.append(_cell("markdown", turn_markdown(turn)))
            continue
        prompt = turn.prompt.replace("{{", "{{'{{'}}")  # the magic's expressions are not what was meant
        line = "%%mmsp" + (options if number == 0 else "")
        if number and turn.model != turns[number - 1].model:
            line += _model_option(turn)
        answer = mask_keys(turn.text)
        outputs = []
        if answer:
            data = {"text/markdown": answer, "text/plain": answer, "text/html": _article_only(answer)}
            outputs = [{"output_type": "display_data", "data": data, "metadata": {}}]
        cells.append(_cell("code", f"{line}\n{mask_keys(prompt)}", outputs))
    for number, cell in enumerate(cells):
        cell["id"] = f"mmsp-{number}"
    document = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _article_only(text: str) -> str:
    from mmsp_nb.notebook.markdown import stylesheet, to_html

    html = to_html(text)
    return f'<div class="mmsp">{stylesheet(html)}{html}</div>'


def _cell(kind: str, source: str, outputs: Any = ()) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return {**cell, "execution_count": None, "outputs": list(outputs)} if kind == "code" else cell


def _options(conversation: Conversation, turns: list[Turn]) -> str:
    return _model_option(turns[0]) if turns else ""


def _model_option(turn: Turn) -> str:
    client = f" --client-type {turn.client_type}" if turn.client_type else ""
    return f" -m {turn.model}{client}" if re.fullmatch(r"[\w./:@-]+", turn.model) else ""


# Python


def _python(conversation: Conversation, turns: list[Turn]) -> str:
    return turns_python(turns, conversation)


def turns_python(turns: list[Turn], conversation: Any = None) -> str:
    """Code that makes the conversation of ``turns``, asking the models again."""
    names = sorted({name for turn in turns for name in turn.tools})
    first = turns[0] if turns else None
    model = first.model if first is not None else getattr(conversation, "model", "demo")
    lines = ["from mmsp_nb import Conversation", ""]
    if names:
        lines += [f"# the tools are functions of yours: {', '.join(names)}", ""]
    arguments = [repr(model)]
    defaults = _plain(first.config if first is not None else getattr(conversation, "config", {}))
    config = dict(defaults)
    system = config.pop("system_prompt", None)
    client_type = first.client_type if first is not None else None
    if client_type and model not in ("demo", "local"):
        arguments.append(f"client_type={client_type!r}")
    if system:
        arguments.append(f"system={system!r}")
    if names:
        arguments.append(f"tools=[{', '.join(name if name.isidentifier() else repr(name) for name in names)}]")
    if config:
        arguments.append(f"config={config!r}")
    lines.append(f"chat = Conversation({', '.join(arguments)})")
    for turn in turns:
        if turn.model != model:
            model = turn.model
            client = f", client_type={turn.client_type!r}" if turn.client_type else ""
            lines.append(f"chat.switch({model!r}{client})")
        lines.append(_ask(turn, defaults))
        if turn.hidden:
            lines.append("chat.hide(-1)")
    return mask_keys("\n".join(lines)) + "\n"


def _ask(turn: Turn, defaults: Mapping[str, Any]) -> str:
    if turn.summary:
        return f"chat.compact({turn.prompt.partition(chr(10) * 2)[2]!r}, keep=0)"
    if turn.resumes:
        return "chat.ask()"
    items: list[Item] = turn.messages[0]["content_items"] if turn.messages else []
    prompt: Any = items
    if all(item["type"] == "text.done" for item in items):
        prompt = [item["text"] for item in items]
    if len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    own = _plain(turn.config)
    other = {name: value for name, value in own.items() if name not in defaults or defaults[name] != value}
    other |= {name: None for name in defaults if name not in own and defaults[name] is not None}
    return f"chat.ask({prompt!r}, config={other!r})" if other else f"chat.ask({prompt!r})"


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config as it can be written in Python; headers, which may hold keys, are left out."""

    def literal(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: literal(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [literal(inner) for inner in value]
        return value.value if isinstance(value, Enum) else value

    return {name: literal(value) for name, value in config.items() if name != "extra_headers"}


def _title(conversation: Conversation) -> str:
    return f"{conversation.name or 'Conversation'} with {conversation.model}"
