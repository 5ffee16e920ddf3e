"""``--dry-run``: what would be sent, as text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mmsp_nb.keyless import said
from mmsp_nb.money import beyond, dollars
from mmsp_nb.preview import Preview, preview
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.questions import Question
from mmsp_nb.transport.failures import public_url

from .options import OptionError
from .sanitize import shorten

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

    from .asking import Asking

__all__ = ["describe"]

MAX_TEXT = 4_000
"""Characters of one text in the body that are shown."""

MAX_PROMPT = 20_000
"""Characters of the prompt that are shown."""

MAX_ENTRIES = 8
"""Entries of a list in the body that are shown: the first two and the last ones."""

_DATA = re.compile(r"(?P<head>(?:data:[\w.+/-]+(?:;[\w.=+-]+)*;base64,)?[A-Za-z0-9+/]{32})[A-Za-z0-9+/=]{400,}\Z")


def describe(asking: Asking) -> str:
    """What the question would send: an overview, the request's body as the vendor gets it, the prompt.

    The middle of a long history, long texts and data of pictures are left out, and it says so. Neither headers nor keys
    are part of it. Of a comparison it is what each model would get.
    """
    if not asking.options.compare:
        return _one(asking, asking.chat)
    from .comparing import _client

    parts = []
    for label in asking.options.compare:
        try:
            parts.append(_one(asking, asking.chat.fork(client=_client(label, asking))))
        except (MMSPError, TypeError) as error:
            raise OptionError(f"--compare {label}: {error}") from None
    return "\n\n".join(parts)


def _one(asking: Asking, chat: Conversation) -> str:
    given = asking._given()
    tools = chat.tools if asking.tools is None else asking.tools
    config = {**chat.config, **given["config"]}
    lines = [f"model: {chat.model}", f"turns before: {len(chat.turns)}"]
    lines += [f"{key}: {value}" for key, value in config.items() if value is not None]
    lines.append(f"tools: {', '.join(tools.names()) or 'none'}")
    if asking.type is not None:
        lines.append(f"type: {asking.options.type}")
    try:
        seen = preview(chat, Question(asking.prompt, **given))
    except MMSPError as error:
        raise OptionError(str(error)) from None
    lines += _figures(seen)
    if verdict := _budget(asking, chat, seen):
        lines.append(f"budget: {verdict}")
    for method, url, body in seen.requests:
        lines += [f"{method} {public_url(url)}", json.dumps(_short(body), indent=2, ensure_ascii=False, default=repr)]
    if not seen.requests:
        lines.append("the request's body is this client's own business; it gets this config:")
        lines.append(json.dumps(_short(seen.config), indent=2, ensure_ascii=False, default=repr))
    return "\n".join([*lines, "prompt:", shorten(_text(asking.prompt), MAX_PROMPT)])


def _figures(seen: Preview) -> list[str]:
    share = "" if not seen.window else f" of {seen.window:,} ({seen.tokens / seen.window:.1%})"
    lines = [f"tokens: about {seen.tokens:,}{share}"]
    if seen.price is None:
        lines.append("price: unknown")
    else:
        answer = seen.price_of_answer
        rest = "the answer's comes on top" if answer is None else f"up to {dollars(answer)} for the answer"
        lines.append(f"price: about {dollars(seen.price)} for the request, {rest}")
    if seen.masked:
        lines.append(f"keys: {said(seen.masked, ahead=True)}")
    return [*lines, *(f"to be fetched first: {url}" for url in seen.fetched)]


def _budget(asking: Asking, chat: Conversation, seen: Preview) -> str:
    """Whether the limits of cost would let the request go; nothing where there are none."""
    from mmsp_nb.choosing import cost_of

    limits = list(asking.chat._limits(cost_of(chat.client), asking.max_cost(chat)))
    if not limits:
        return ""
    refused = beyond(limits, seen.price)
    return f"would not be sent: {refused}" if refused else "within the limits, so this request would be sent"


def _short(value: Any) -> Any:
    """The same with the data of pictures and long texts cut short, and without the middle of long lists."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        left_out = len(value) - MAX_ENTRIES
        if left_out <= 1:
            return [_short(each) for each in value]
        end = value[2 + left_out :]
        return [*map(_short, value[:2]), f"… {left_out} more, left out here …", *map(_short, end)]
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    if isinstance(value, str) and (match := _DATA.match(value)):
        return f"{match['head']}… ({len(value):,} characters)"
    if isinstance(value, str):
        return shorten(value, MAX_TEXT)
    return value


def _text(prompt: Any) -> str:
    parts = prompt if isinstance(prompt, list) else [prompt or ""]
    return "".join(part if isinstance(part, str) else _said(part) for part in parts)


def _said(part: Any) -> str:
    items = part.get("content_items", [part]) if isinstance(part, dict) else []
    return "".join(str(item["text"]) if "text" in item else "[picture]" for item in items) or "[picture]"
